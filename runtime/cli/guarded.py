"""Error handling of all commands: one line for an error, or a traceback with `--debug`.

Exit codes: 0 success, 1 an error or a failed run, 2 a wrong option, 3 a run that waits for an
answer, 130 Ctrl-C, 141 a closed pipe.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

import typer

from ..errors import OffbookError
from .terminal.screen import clean

__all__ = ["guarded"]

_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141


def guarded(command: Callable[[], int | None], *, debug: bool) -> None:
    """Run a command, and exit with its code."""
    try:
        code = command() or 0
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        # Discards the output that is still to be flushed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(_BROKEN_PIPE) from None
    except OffbookError as error:
        if debug:
            raise
        _say(_one_line(error))
        raise typer.Exit(1) from None
    except Exception as error:
        if debug:
            raise
        _say(f"{type(error).__name__}: {_one_line(error)} (--debug shows the traceback)")
        raise typer.Exit(1) from None
    if code:
        raise typer.Exit(code)


def _say(text: str) -> None:
    line = f"offbook: {clean(text)}"
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    typer.echo(line.encode(encoding, "replace").decode(encoding), err=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
