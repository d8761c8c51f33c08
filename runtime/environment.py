"""The variables of the environment, with those of a `.env` file.

Owns: where they are looked for. The process's own environment wins over a file, and is never changed.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["environment"]


def environment() -> dict[str, str]:
    """The environment, and what the nearest `.env` in the current folder or one of its parents adds to it."""
    here = Path.cwd()
    file = next((path for folder in (here, *here.parents) if (path := folder / ".env").is_file()), None)
    if file is None:
        return dict(os.environ)
    import dotenv  # noqa: PLC0415 -- only who has such a file needs it

    return {**{name: value for name, value in dotenv.dotenv_values(file).items() if value is not None}, **os.environ}
