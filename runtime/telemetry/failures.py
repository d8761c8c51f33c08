"""What the log says of a run that has failed.

Owns: the warning, and where in the program it happened. It must never change the error.
"""

from __future__ import annotations

import logging
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final

from ..errors import text_of
from ..log import loggers

if TYPE_CHECKING:
    from ..data.run_result import RunResult
    from .watch import WatchedRun

__all__ = ["tell_failure"]

_PACKAGE: Final = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 -- pathlib would have to be imported
_DEEPEST: Final = 8


def tell_failure(context: WatchedRun, root: str, result: RunResult) -> None:
    """Warn of it: what has failed, and where. The traceback is a line at DEBUG."""
    error = result.error
    if error is None or not loggers.run.isEnabledFor(logging.WARNING):
        return
    agent = getattr(error, "agent", None) or result.last_agent or root
    about = {"run_id": context.run_id, "agent": agent, "session_id": context.session_id}
    text = "Run %s of %s has failed at agent %s%s: %s: %s"
    loggers.run.warning(text, context.run_id, root, agent, _place_of(error), type(error).__name__, text_of(error), extra=about)
    loggers.run.debug("The traceback of run %s:", context.run_id, exc_info=error, extra=about)


def _place_of(error: BaseException) -> str:
    """The line of the program's own code in which it was raised, or what has caused it."""
    for _ in range(_DEEPEST):
        if error.__cause__ is None:
            break
        error = error.__cause__
    found: TracebackType | None = None
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    code = found.tb_frame.f_code
    return f", in {code.co_qualname} ({code.co_filename}:{found.tb_lineno})"
