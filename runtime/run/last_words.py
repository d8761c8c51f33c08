"""The last that is done for a run: its turn is written, its end is kept, its hook is called.

Owns: that order, and what is said of the run to other processes. It must never start or end an agent: none is at work any more.
"""

from __future__ import annotations

from ..agent.hooks import call_hooks, is_overridden
from ..data.outcome import Outcome
from ..errors import RunLost
from ..log import loggers
from .event_log import EventLog
from .phase import Ownership, Promise, RunPhase

__all__ = ["has_last_words", "say_last_words"]


def has_last_words(log: EventLog) -> bool:
    """Whether there is something to be done for which the supervisor has to wait."""
    persistence = log.persistence
    return is_overridden(log.context.hooks, "on_run_end") or (persistence is not None and persistence.is_held) or log.record.turn is not None


async def say_last_words(log: EventLog, promise: Promise) -> None:
    """Write the end, and call the hook."""
    record = log.record
    try:
        if record.turn is not None:
            waits = log.persistence is not None and record.outcome is not None and record.outcome.kind == "interrupted"
            await record.turn.end(log, keep=record.ownership is Ownership.OURS, waits=waits)
    except Exception as error:  # noqa: BLE001 -- whatever a store raises, all that wait for the run are told
        log.say(error)
        record.outcome = Outcome("failed", error)
        promise = Promise.UNFINISHED  # the process that finds it puts its part into the session
    try:
        if log.waits:
            await log.flush()
        if log.persistence is not None and log.persistence.is_held:
            unfinished = promise is Promise.UNFINISHED
            end = None if unfinished else log.end()
            await log.persistence.finish(unfinished=unfinished, state=log, end=end)
            if end is not None and record.turn is None and not log.context.hooks:
                record.written = end.result  # nothing is done any more that could change it
    except RunLost as error:
        loggers.run.warning("The end of run %s is not written: %s", log.context.run_id, error)
        if log.persistence is not None and log.persistence.journal is None and record.outcome is not None and record.outcome.kind != "failed":
            # What it says is recorded nowhere, and the process that has the run by now may say something else.
            log.say(error)
            record.outcome = Outcome("failed", error)
    except Exception:  # noqa: BLE001 -- as above
        loggers.run.exception("The end of run %s could not be kept; it may be found as unfinished.", log.context.run_id)
    record.advance(RunPhase.HOOKS)
    if log.context.hooks:
        await call_hooks(log.context.hooks, None, "on_run_end", None, log.context, record.make_result())
