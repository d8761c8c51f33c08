"""The log record of a failed run.

It is a warning with the place in the program. The error is not changed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from types import TracebackType
from typing import TYPE_CHECKING, Final

from ..errors import ModelError, OffbookError, StoreError, kept_from_logs, text_of
from ..log import loggers

if TYPE_CHECKING:
    from ..data.run_result import RunResult
    from .run_telemetry import WatchedRun

__all__ = ["tell_failure"]

_PACKAGE: Final = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 -- pathlib would have to be imported
_DEEPEST: Final = 8


def tell_failure(context: WatchedRun, root: str, result: RunResult) -> None:
    """Log the failure of a run: its error, and its place.

    The program's own exceptions are logged as ERROR with their traceback. The traceback of others
    is logged at DEBUG. An error that is kept from logs is logged without its text and traceback.
    """
    error = result.error
    if error is None or not loggers.run.isEnabledFor(logging.WARNING):
        return
    agent = getattr(error, "agent", None) or result.last_agent or root
    about = {"run_id": context.run_id, "agent": agent, "session_id": context.session_id}
    text = "Run %s of %s has failed at agent %s%s: %s: %s"
    cause = _cause_of(error)
    # The end of a program cancels all running work on its loop, which is not worth a warning.
    level = (
        logging.INFO
        if isinstance(cause, asyncio.CancelledError)
        else logging.ERROR
        if _is_of_program(error, cause)
        else logging.WARNING
    )
    kept = kept_from_logs(error)
    traceback = error if level == logging.ERROR and kept is None else None
    loggers.run.log(
        level,
        text,
        context.run_id,
        root,
        agent,
        _place_of(error),
        type(error).__name__,
        text_of(error) if kept is None else kept,
        extra=about,
        exc_info=traceback,
    )
    if traceback is None and kept is None:
        loggers.run.debug("The traceback of run %s:", context.run_id, exc_info=error, extra=about)


def _is_of_program(error: BaseException, cause: BaseException) -> bool:
    """Return True if the program's own code raised the error: an agent, a tool, a hook.

    Errors of a provider or a store do not count.
    """
    return (
        not isinstance(cause, OffbookError)
        and not isinstance(error, ModelError | StoreError)
        and bool(_place_of(error))
    )


def _cause_of(error: BaseException) -> BaseException:
    for _ in range(_DEEPEST):
        if error.__cause__ is None:
            break
        error = error.__cause__
    return error


def _place_of(error: BaseException) -> str:
    """Return the line of the program's own code that raised the error or its cause."""
    error = _cause_of(error)
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
