"""The final work for a run: end its session turn, write its end, call its hook.

The module defines this order and what the store tells other processes about the run. All agents
have ended by then.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

from ..agent.hooks import call_hooks, is_overridden
from ..clock import Deadline
from ..data.outcome import Outcome
from ..errors import AgentError, RunLost
from ..log import loggers
from ..tasks import guarded
from .event_log import EventLog
from .phase import Ownership, Promise, RunPhase

__all__ = ["has_last_words", "say_last_words"]

_PATIENCE: Final = 5.0
"""Seconds that `on_run_end` may take in a run that was cancelled or timed out."""


def has_last_words(log: EventLog) -> bool:
    """Return True if there is final work that the supervisor must wait for."""
    persistence = log.persistence
    return (
        is_overridden(log.context.hooks, "on_run_end")
        or (persistence is not None and persistence.is_held)
        or log.progress.turn is not None
    )


def _fail_unrecorded(log: EventLog, error: Exception, *, but: str) -> None:
    """Fail a run without a journal whose end could not be written.

    The store, and the process that may have claimed the run, can report another end.
    """
    progress = log.progress
    if (
        log.persistence is None
        or log.persistence.journal is not None
        or progress.outcome is None
        or progress.outcome.kind in ("failed", but)
    ):
        return
    log.say(error)
    progress.outcome = Outcome("failed", error)


async def say_last_words(log: EventLog, promise: Promise) -> None:
    """Write the end, and call the hook."""
    progress = log.progress
    try:
        if progress.turn is not None:
            waits = (
                log.persistence is not None
                and progress.outcome is not None
                and progress.outcome.kind == "interrupted"
            )
            await progress.turn.end(log, keep=progress.ownership is Ownership.OURS, waits=waits)
    except Exception as error:  # noqa: BLE001 -- a store may raise anything; all waiters are notified
        log.say(error)
        progress.outcome = Outcome("failed", error)
        # the process that finds the run writes its part into the session
        promise = Promise.UNFINISHED
    try:
        if log.waits:
            await log.flush()
        if log.persistence is not None and log.persistence.is_held:
            unfinished = promise is Promise.UNFINISHED
            end = None if unfinished else log.end()
            await log.persistence.finish(unfinished=unfinished, state=log, end=end)
            if end is not None and progress.turn is None and not log.context.hooks:
                progress.written = end.result  # nothing can change the result any more
    except RunLost as error:
        loggers.run.warning("The end of run %s could not be written: %s", log.context.run_id, error)
        _fail_unrecorded(log, error, but="failed")
    except Exception as error:  # noqa: BLE001 -- see above
        loggers.run.exception(
            "The end of run %s could not be stored. It may be listed as unfinished.",
            log.context.run_id,
        )
        _fail_unrecorded(log, error, but="cancelled")
    progress.advance(RunPhase.HOOKS)
    if log.context.hooks:
        await _call_last_hook(log)


async def _call_last_hook(log: EventLog) -> None:
    """Call `on_run_end`.

    The end is already recorded, so an exception from the hook does not change it. For a cancelled
    run the hook has a time limit.
    """
    progress, context = log.progress, log.context
    hooks = guarded(
        call_hooks(context.hooks, None, "on_run_end", None, context, progress.make_result()),
        "on_run_end",
    )
    limit = (
        Deadline(_PATIENCE)
        if progress.outcome is not None and progress.outcome.kind == "cancelled"
        else None
    )
    try:
        async with limit or nullcontext():
            await hooks
    except AgentError:
        loggers.run.exception("on_run_end of run %s crashed.", context.run_id)
    except TimeoutError:
        loggers.run.error(
            "on_run_end of the cancelled run %s took longer than %g s, and was cancelled.",
            context.run_id,
            _PATIENCE,
        )
