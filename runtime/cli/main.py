"""The entry point of the command `offbook`. It reports a missing extra before it imports typer."""

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
        sys.exit(
            "offbook: the command needs typer, which is not installed: pip install 'offbook[cli]'."
        )
    app()
