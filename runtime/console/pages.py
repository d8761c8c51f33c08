"""The page and its files.

Owns: where they are, and for how long a browser may keep them: it asks each time whether they have changed. It must never put anything of a run into them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Scope

__all__ = ["page", "static_files"]

_FOLDER: Final = Path(__file__).parent / "static"


class _Files(StaticFiles):
    """They change with the version of this library only, which has no part in their addresses."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def static_files() -> StaticFiles:
    """Scripts and styles."""
    return _Files(directory=_FOLDER)


async def page(_request: Request) -> Response:
    """The one page. What it shows, it asks for."""
    return FileResponse(_FOLDER / "index.html", media_type="text/html", headers={"Cache-Control": "no-store"})
