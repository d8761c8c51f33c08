"""The page and its files.

A browser revalidates them each time. They contain no data of runs.
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
    """The files, which change with the library's version, although their addresses do not."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def static_files() -> StaticFiles:
    """Return the scripts and styles."""
    return _Files(directory=_FOLDER)


async def page(_request: Request) -> Response:
    """Return the page. It requests its data by itself."""
    return FileResponse(
        _FOLDER / "index.html", media_type="text/html", headers={"Cache-Control": "no-store"}
    )
