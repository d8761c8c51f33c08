"""A run's entry in the list of runs of its store.

Owns: what the entry says, in which form, and how it is read. It must never write: what is to be written is returned. What the entry's value says is only data:
reading it builds values of this library's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from ..codec.packing import pack, unpack
from ..data.chat import Usage
from ..data.interrupt import InterruptContext
from ..data.run_info import RunInfo
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, UsageError, text_of
from ..stores.run_entries import DropEntry, RunEntry
from ..stores.writes import Write

if TYPE_CHECKING:
    from ..agent.run_state import RunState
    from .open_mark import UnfinishedRun
    from .store_access import StoreAccess

__all__ = ["RunEnd", "RunListing", "checked_labels", "label_text", "read_entry", "restated", "session_text"]

_FORMAT: Final = 1
_MOST_LABELS: Final = 16
_LONGEST_NAME: Final = 64
_LONGEST_VALUE: Final = 256
_LONGEST_SESSION: Final = 300
"""Characters of a session's id by which it is found as it is; a longer one is found by its digest."""
_LONGEST_ERROR: Final = 2000
_BUFFER: Final = 512
"""Bytes to begin with: as many as most entries need. By itself, a packer takes a thousand times as many."""


class RunEnd(NamedTuple):
    """How a run has ended, or why it rests."""

    result: RunResult
    packed: bytes | None
    """The same, as it is kept; None, if it is not."""


class RunListing:
    """The entry of one run."""

    __slots__ = ("_is_listed", "_lists", "_started")

    def __init__(self, access: StoreAccess, started: float) -> None:
        self._lists = access.lists_runs
        self._started = int(started * 1e6)
        self._is_listed = False  # as far as is known here

    def known(self) -> None:
        """It comes from the store, where it is listed perhaps."""
        self._is_listed = True

    def put(self, run: UnfinishedRun, state: RunState, status: RunStatus, end: RunEnd | None = None, seconds: float | None = None) -> list[Write]:
        """List it like that."""
        if not self._lists:
            return []
        self._is_listed = True
        context, now, result = state.context, time(), None if end is None else end.result
        session = "" if context.session_id is None else session_text(context.session_id)
        labels = tuple(label_text(*label) for label in run.labels.items()) if run.labels else ()
        if result is None and not state.seq and not run.attempts and not session:  # as nearly all begin
            return [RunEntry(run.id, run.agent, "", str(status), self._started, labels, _packed((_FORMAT, run.checkpoint_id, now)), seconds)]
        usage, waits = context.usage, result is not None and status is RunStatus.INTERRUPTED
        said = (
            _FORMAT,
            run.checkpoint_id,
            now,
            now if status in _ENDED else None,
            run.attempts,
            "" if result is None else result.last_agent,
            None if result is None or result.error is None or status is RunStatus.DRAINED else _said(result.error),
            (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests),
            state.seq,
            pack(result.interrupts) if waits and result is not None else None,
            context.session_id,
        )
        return [RunEntry(run.id, run.agent, session, str(status), self._started, labels, _packed(said), seconds)]

    def end(self, run: UnfinishedRun, state: RunState, end: RunEnd, *, stands: bool) -> list[Write]:
        """It has ended. `stands`: a save of it stays, which can be resumed."""
        status = end.result.status
        if not self._is_listed:
            return []
        if status is RunStatus.CANCELLED and stands:
            return self.put(run, state, status, end)
        if run.keep == 0.0:
            return [DropEntry(run.id)] if self._lists else []
        return self.put(run, state, status, end, run.keep)


_ENDED: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


async def restated(access: StoreAccess, run: UnfinishedRun, status: RunStatus, error: str | None = None) -> list[Write]:
    """The entry of a run that is not at work here, which stands like that from now on."""
    entry = await access.run_entry(run.id) if access.lists_runs else None
    if entry is None:
        return []
    said = _unpacked(entry)
    said[2], said[3], said[4] = time(), time() if status in _ENDED else None, run.attempts
    said[6] = error
    seconds = run.keep if status in _ENDED and run.keep else None
    return [replace(entry, status=status.value, value=_packed(said), seconds=seconds)]


def read_entry(entry: RunEntry) -> RunInfo:
    """What it says. Raises `CheckpointError`."""
    said = _unpacked(entry)
    try:
        _, checkpoint_id, updated, ended, attempts, last_agent, error, usage, steps, waiting, session_id = said[:11]
        contexts = () if waiting is None else unpack(waiting)
        if not all(isinstance(context, InterruptContext) for context in contexts):
            raise TypeError("what it waits for is something else")  # noqa: TRY301 -- told below
        return RunInfo(
            entry.key,
            entry.agent,
            session_id,
            checkpoint_id,
            RunStatus(entry.status),
            _at(entry.started / 1e6),
            _at(updated),
            None if ended is None else _at(ended),
            attempts,
            tuple(contexts),
            last_agent,
            error,
            Usage(*usage),
            steps,
            dict(label.split("\0", 1) for label in entry.labels),
        )
    except (TypeError, ValueError, OverflowError) as problem:
        raise _damaged(entry) from problem


def checked_labels(call: str, labels: object) -> dict[str, str]:
    """Raise, if these cannot be a run's labels."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        msg = f"{call}(labels={labels!r:.80}): give a mapping of texts to texts, such as {{'tenant': 'acme'}}."
        raise UsageError(msg)
    if len(labels) > _MOST_LABELS:
        msg = f"{call}(labels=...): a run has {_MOST_LABELS} labels at most, and these are {len(labels)}. What is more belongs into session_values."
        raise UsageError(msg)
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            wrong = name if not isinstance(name, str) else value
            msg = f"{call}(labels=...): {name!r:.80}: {value!r:.80} has a {type(wrong).__name__} in it; names and values of labels are texts."
            raise UsageError(msg)
        if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
            msg = f"{call}(labels=...): {name!r:.80} is no name of a label: it has 1 to {_LONGEST_NAME} characters, and no NUL."
            raise UsageError(msg)
        if len(value) > _LONGEST_VALUE:
            msg = f"{call}(labels=...): the value of {name!r} has {len(value):,} characters, and {_LONGEST_VALUE} at most can be looked for."
            raise UsageError(msg)
    return dict(labels)


def label_text(name: str, value: str) -> str:
    """A label as the store lists it. No name has a NUL."""
    return f"{name}\0{value}"


def session_text(session_id: str) -> str:
    """A session as the store lists it."""
    if len(session_id) <= _LONGEST_SESSION:
        return session_id
    from hashlib import blake2b  # noqa: PLC0415 -- a part of the standard library that most programs do without

    return f"{session_id[:_LONGEST_SESSION]}\0{blake2b(session_id.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {text_of(error)}"[:_LONGEST_ERROR]


def _packed(said: Sequence[Any]) -> bytes:
    packed: bytes = msgpack.Packer(unicode_errors="surrogatepass", buf_size=_BUFFER).pack(said)
    return packed


def _unpacked(entry: RunEntry) -> list[Any]:
    try:
        said = msgpack.unpackb(entry.value, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException) as problem:
        raise _damaged(entry) from problem
    if not isinstance(said, list) or len(said) < _LEAST or type(said[0]) is not int:
        raise _damaged(entry)
    if said[0] > _FORMAT:
        msg = f"what the store says of run {entry.key!r} was written by a newer version of understudy: update."
        raise CheckpointError(msg, run=entry.key)
    return [*said, *_BEGUN[len(said) - _LEAST :]] if len(said) < _LEAST + len(_BEGUN) else said


_LEAST: Final = 3
_BEGUN: Final = (None, 0, "", None, (0, 0, 0, 0), 0, None, None)
"""What is true of one that has only begun, behind the first three."""


def _damaged(entry: RunEntry) -> CheckpointError:
    return CheckpointError(f"what the store says of run {entry.key!r} is damaged.", run=entry.key)


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
