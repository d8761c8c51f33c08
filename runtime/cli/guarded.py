"""How every command ends: one line for an error, or a traceback with `--debug`.

Owns: that, and the exit codes: 0 done, 1 an error or a failed run, 2 a wrong option, 3 a run that waits for an answer, 130 Ctrl-C, 141 a pipe without a reader
any more. It must never hide what went wrong.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

import typer

from ..errors import UnderstudyError
from .terminal.screen import clean

__all__ = ["guarded"]

_INTERRUPTED: Final = 130
_BROKEN_PIPE: Final = 141


def guarded(command: Callable[[], int | None], *, debug: bool) -> None:
    """Run a command, and end as it says."""
    try:
        code = command() or 0
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still to be flushed goes nowhere
        raise typer.Exit(_BROKEN_PIPE) from None
    except UnderstudyError as error:
        if debug:
            raise
        _say(_one_line(error))
        raise typer.Exit(1) from None
    except Exception as error:
        if debug:
            raise
        _say(f"{type(error).__name__}: {_one_line(error)} (--debug shows where)")
        raise typer.Exit(1) from None
    if code:
        raise typer.Exit(code)


def _say(text: str) -> None:
    line = f"understudy: {clean(text)}"
    encoding = getattr(sys.stderr, "encoding", None) or "ascii"
    typer.echo(line.encode(encoding, "replace").decode(encoding), err=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
