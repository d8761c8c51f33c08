"""The entry point of the command `understudy`.

Owns: what is said where the extra is missing. It must not import typer before that.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command."""
    try:
        from .commands import app  # noqa: PLC0415 -- it needs the extra
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "click", "rich"):
            raise
        sys.exit("understudy: the command needs typer, which is not installed: pip install 'understudy[cli]'.")
    app()
