"""The row of a run: the one place in a store that has the run's status.

It says what the run is, what it waits for, how it ended, and whether a process has to continue it.
This module never writes: it returns the rows. Reading one builds values of this library only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from ..clock import boottime_of
from ..codec.packing import pack, unpack
from ..data.chat import Usage, new_id
from ..data.checkpoint_id import CheckpointId
from ..data.interrupt import InterruptContext
from ..data.run_info import RunInfo
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, text_of
from ..stores.run_entries import RunEntry
from .run_labels import label_text, session_text
from .store_keys import open_key
from .unfinished_run import UnfinishedRun, labels_of, trace_of

if TYPE_CHECKING:
    from ..agent.run_state import RunState
    from ..clock import Clock

__all__ = ["RunEnd", "RunRow", "cancelled", "closed", "read_entry", "read_run", "restated"]

_FORMAT: Final = 1
_PARTS: Final = 5
"""The items of a row's value: format, session, number of the save, interrupts, how to continue."""
_OPEN_SECONDS: Final = 30.0
"""Seconds after which a running run rewrites its row.

Pruning a store may delete rows that are this old, but not newer ones.
"""
_LONGEST_ID: Final = 2000
_LONGEST_ERROR: Final = 2000
_BUFFER: Final = 512
"""Initial buffer size in bytes, enough for most rows.

By default, a packer allocates a thousand times as much.
"""
_ENDED: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class RunEnd(NamedTuple):
    """The result of a run that has ended, or the reason why it pauses."""

    result: RunResult
    packed: bytes | None
    """The stored form of the result; None if it is not stored."""


class RunRow:
    """The row of one run, as this process writes it."""

    __slots__ = (
        "_started",
        "_until",
        "_writer",
        "is_known",
        "is_open",
        "key",
        "run",
        "stored",
        "trace_before",
    )

    def __init__(self, run: UnfinishedRun, trace_before: str | None = None) -> None:
        self.run = run
        # The span of the run that this one continues, in any process.
        self.trace_before = trace_before or run.trace
        self.key = open_key(run.agent, run.id)
        """The key that the run's owner claims."""
        self.is_open = False  # whether the stored row says that a process has to continue the run
        self.is_known = False  # whether the store may have a row of it, as far as is known here
        self.stored: RunEntry | None = None  # the row of a run that was taken from another process
        self._started = int(time() * 1e6)
        self._until = math.inf
        # Makes the bytes unique, so that another process's row is never taken for this one's.
        self._writer = new_id()

    def of_saved(
        self,
        content: Mapping[str, Any],
        checkpoint_id: str,
        keep: float | None,
        input: str | None,  # noqa: A002 -- the natural name
    ) -> RunRow:
        """Return the row of the run that a save belongs to."""
        run, agent = self.run, content.get("agent")
        agent, keep = (
            agent if isinstance(agent, str) else run.agent,
            run.keep if keep == 0.0 else keep,
        )
        own = UnfinishedRun(
            content["run"],
            agent,
            checkpoint_id,
            run.steps,
            run.session_id,
            run.version,
            run.attempts,
            keep,
            input,
            labels_of(content),
            run.trace,
            app=run.app,
            definitions=run.definitions,
        )
        return RunRow(own, trace_of(content))

    # --- the rows ---

    def entry(
        self,
        state: RunState,
        status: RunStatus,
        end: RunEnd | None = None,
        seconds: float | None = None,
        save: int | None = None,
        *,
        is_open: bool,
    ) -> RunEntry:
        """Return the row. `save`: the number of the save where the run pauses.

        `is_open`: whether a process has to continue the run.
        """
        self.is_known = True
        run, context, now = self.run, state.context, int(time() * 1e6)
        result, usage, session_id = None, context.usage, context.session_id
        waits = error = None
        if end is not None:
            result = end.result
            error = None if status is RunStatus.DRAINED else result.error
            waits = pack(result.interrupts) if status is RunStatus.INTERRUPTED else None
        continued = self._continued() if is_open else None
        return RunEntry(
            run.id,
            run.agent,
            "" if session_id is None else session_text(session_id),
            status.value,
            self._started,
            tuple([label_text(*label) for label in run.labels.items()]) if run.labels else (),
            _packed((_FORMAT, session_id, save, waits, continued)),
            seconds,
            self.key if is_open else "",
            run.checkpoint_id,
            "" if result is None else result.last_agent,
            "" if error is None else f"{type(error).__name__}: {text_of(error)}"[:_LONGEST_ERROR],
            now,
            now if status in _ENDED else 0,
            run.attempts,
            state.seq,
            usage.input_tokens,
            usage.output_tokens,
            usage.cached_tokens,
            usage.requests,
        )

    def _continued(self) -> tuple[Any, ...]:
        """Return what a process must know to continue the run."""
        run = self.run
        return (
            run.steps,
            self._writer,
            run.version,
            run.keep,
            run.input,
            run.trace,
            run.unwritten,
            run.failure,
            run.progressed,
            run.app,
            None if run.app is not None else run.definitions,
        )

    # --- what is known of the run ---

    def know(self, row: RunEntry, run: UnfinishedRun) -> None:
        """Take over what the stored row says of earlier attempts."""
        self.stored, self.is_known = row, True
        self.trace_before = run.trace
        self.run = self.run.replace(
            progressed=run.progressed,
            unwritten=run.unwritten,
            failure=run.failure if run.unwritten else self.run.failure,
        )

    def queue(self, *, queued: bool) -> None:
        """Record whether it waits for its turn."""
        if queued != self.run.queued:
            self.run = self.run.replace(queued=queued)

    def note_trace(self, trace: str) -> None:
        """Record the name of its span, for the run that continues it."""
        self.run = self.run.replace(trace=trace)

    def kept_with_saves(self) -> dict[str, Any]:
        """Return the fields that a save repeats."""
        run = self.run
        return ({"labels": dict(run.labels)} if run.labels else {}) | (
            {} if run.trace is None else {"trace": run.trace}
        )

    def progress(self, attempt: int) -> None:
        """Record that this attempt, by the store's count, has recorded a step."""
        self.run = self.run.replace(attempts=0, progressed=attempt)

    def count(self, attempts: int) -> None:
        """Set the number of attempts, this one included, since the last progress or orderly
        release.
        """
        if attempts == 0 and self.run.progressed:
            self.run = self.run.replace(progressed=0)
        before = max(0, attempts - 1)
        if before != self.run.attempts:
            self.run = self.run.replace(attempts=before)

    def not_written(self, failure: str, *, has_progressed: bool) -> None:
        """Record that an attempt ends because a step could not be written.

        Only attempts that have recorded nothing before that add up.
        """
        self.run = self.run.replace(
            unwritten=1 if has_progressed else self.run.unwritten + 1, failure=failure
        )

    def opened(self, clock: Clock | None) -> None:
        """Record that the store has the row of a run that a process has to continue."""
        self.is_open = True
        self._until = math.inf if clock is None else boottime_of(clock) + _OPEN_SECONDS

    def is_due(self, clock: Clock | None) -> bool:
        """Return whether it must be rewritten."""
        return self.is_open and clock is not None and boottime_of(clock) > self._until


def restated(
    row: RunEntry,
    run: UnfinishedRun,
    status: RunStatus,
    error: str | None = None,
    *,
    waits_for: Sequence[InterruptContext] = (),
    save: int | None = None,
) -> RunEntry:
    """Return a stored row with another status: no process has to continue the run from now on."""
    _, session_id, saved, waits, continued = _unpacked(row)
    now = int(time() * 1e6)
    return row.replace(
        status=status.value,
        value=_packed(
            (
                _FORMAT,
                session_id,
                saved if save is None else save,
                pack(tuple(waits_for)) if waits_for else waits,
                continued if status is RunStatus.STUCK else None,
            )
        ),
        seconds=run.keep if status in _ENDED and run.keep else None,
        claim="",
        error="" if error is None else error[:_LONGEST_ERROR],
        updated=now,
        ended=now if status in _ENDED else 0,
        attempts=run.attempts,
    )


def cancelled(row: RunEntry) -> RunEntry:
    """Return the row of an interrupted run that nobody may answer any more."""
    _, session_id, *_ = _unpacked(row)
    now = int(time() * 1e6)
    return row.replace(
        status=RunStatus.CANCELLED.value,
        value=_packed((_FORMAT, session_id, None, None, None)),
        claim="",
        error="RunCancelled: it was stopped while it waited for an answer",
        updated=now,
        ended=now,
    )


def closed(row: RunEntry, run: UnfinishedRun) -> RunEntry:
    """Return a stored row that says that no process has to continue the run, as it is otherwise."""
    return row.replace(claim="", seconds=run.keep if row.ended and run.keep else None)


def read_run(row: RunEntry) -> UnfinishedRun:
    """Return the unfinished or stuck run of a row. Raises `CheckpointError`."""
    session_id, continued = _unpacked(row)[1::3]
    match continued:
        case [
            bool() as steps,
            str(),
            str() | None as version,
            int() | float() | None as keep,
            str() | None as asked,
            trace,
            int() as unwritten,
            str() | None as failure,
            int() as progressed,
            str() | None as app,
            str() | None as definitions,
        ] if 0 < len(row.checkpoint) <= _LONGEST_ID and isinstance(session_id, str | None):
            return UnfinishedRun(
                row.key,
                row.agent,
                row.checkpoint,
                steps,
                session_id,
                version,
                row.attempts,
                keep,
                asked,
                _labels_of(row),
                trace_of({"trace": trace}),
                row.status == RunStatus.PENDING.value,
                unwritten,
                failure,
                app,
                definitions,
                progressed,
            )
    msg = (
        f"the stored row of the unfinished run {row.key} is damaged. Restore the store from a "
        "backup."
    )
    raise CheckpointError(msg, run=row.key)


def read_entry(row: RunEntry) -> RunInfo:
    """Decode a row. Raises `CheckpointError`."""
    _, session_id, save, waiting, _ = _unpacked(row)
    try:
        contexts = () if waiting is None else unpack(waiting)
        if not all(isinstance(context, InterruptContext) for context in contexts):
            raise TypeError("its interrupts must be InterruptContexts")  # noqa: TRY301 -- wrapped below
        return RunInfo(
            row.key,
            row.agent,
            session_id,
            CheckpointId(row.checkpoint, row.key, save) if save else row.checkpoint,
            RunStatus(row.status),
            _at(row.started),
            _at(row.updated),
            _at(row.ended) if row.ended else None,
            row.attempts,
            tuple(contexts),
            row.last_agent,
            row.error or None,
            Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.requests),
            row.steps,
            _labels_of(row),
        )
    except (TypeError, ValueError, OverflowError) as problem:
        raise _damaged(row) from problem


def _labels_of(row: RunEntry) -> dict[str, str]:
    return dict(label.split("\0", 1) for label in row.labels)


def _packed(parts: Sequence[Any]) -> bytes:
    packed: bytes = msgpack.Packer(unicode_errors="surrogatepass", buf_size=_BUFFER).pack(parts)
    return packed


def _unpacked(row: RunEntry) -> list[Any]:
    try:
        parts = msgpack.unpackb(row.value, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException) as problem:
        raise _damaged(row) from problem
    if not isinstance(parts, list) or not parts or type(parts[0]) is not int:
        raise _damaged(row)
    if parts[0] > _FORMAT:
        msg = (
            f"the row of run {row.key!r} was written by a newer version of offbook. Update "
            "offbook in this process."
        )
        raise CheckpointError(msg, run=row.key)
    if len(parts) != _PARTS:
        raise _damaged(row)
    return parts


def _damaged(row: RunEntry) -> CheckpointError:
    return CheckpointError(
        f"the stored row of run {row.key!r} is damaged. Restore the store from a backup.",
        run=row.key,
    )


def _at(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)
