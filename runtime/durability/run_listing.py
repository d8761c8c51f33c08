"""A run's entry in its store's list of runs.

This module never writes: it returns the writes. The entry's value is only data: reading it builds
values of this library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from ..codec.packing import pack, unpack
from ..data.chat import Usage
from ..data.checkpoint_id import CheckpointId
from ..data.interrupt import InterruptContext
from ..data.run_info import RunInfo
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, UsageError, text_of
from ..stores.run_entries import DropEntry, RunEntry
from ..stores.writes import Write
from .saves.save_slot import SAVES_SECONDS

if TYPE_CHECKING:
    from ..agent.run_state import RunState
    from .open_mark import UnfinishedRun
    from .store_access import StoreAccess

__all__ = [
    "RunEnd",
    "RunListing",
    "checked_labels",
    "label_text",
    "read_entry",
    "restated",
    "session_text",
]

_FORMAT: Final = 1
_MOST_LABELS: Final = 16
_LONGEST_NAME: Final = 64
_LONGEST_VALUE: Final = 256
_LONGEST_SESSION: Final = 300
"""The longest session id, in characters, that is listed verbatim, not by its digest."""
_LONGEST_ERROR: Final = 2000
_BUFFER: Final = 512
"""Initial buffer size in bytes, enough for most entries.

By default, a packer allocates a thousand times as much.
"""


class RunEnd(NamedTuple):
    """The result of a run that has ended, or the reason why it pauses."""

    result: RunResult
    packed: bytes | None
    """The stored form of the result; None if it is not stored."""


class RunListing:
    """The entry of one run."""

    __slots__ = ("_is_listed", "_lists", "_started")

    def __init__(self, access: StoreAccess, started: float) -> None:
        self._lists = access.lists_runs
        self._started = int(started * 1e6)
        self._is_listed = False  # as far as this process knows

    def known(self) -> None:
        """Note that the run comes from the store, which may list it."""
        self._is_listed = True

    def put(
        self,
        run: UnfinishedRun,
        state: RunState,
        status: RunStatus,
        end: RunEnd | None = None,
        seconds: float | None = None,
        save: int | None = None,
    ) -> list[Write]:
        """Return the writes that list the run. `save`: the number of the save where it pauses."""
        if not self._lists:
            return []
        self._is_listed = True
        context, now, result = state.context, time(), None if end is None else end.result
        session = "" if context.session_id is None else session_text(context.session_id)
        labels = tuple(label_text(*label) for label in run.labels.items()) if run.labels else ()
        # Nearly all runs start like this.
        if result is None and not state.seq and not run.attempts and not session:
            return [
                RunEntry(
                    run.id,
                    run.agent,
                    "",
                    str(status),
                    self._started,
                    labels,
                    _packed((_FORMAT, run.checkpoint_id, now)),
                    seconds,
                )
            ]
        usage, waits = context.usage, result is not None and status is RunStatus.INTERRUPTED
        said = (
            _FORMAT,
            run.checkpoint_id,
            now,
            now if status in _ENDED else None,
            run.attempts,
            "" if result is None else result.last_agent,
            None
            if result is None or result.error is None or status is RunStatus.DRAINED
            else _said(result.error),
            (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests),
            state.seq,
            pack(result.interrupts) if waits and result is not None else None,
            context.session_id,
            save,
        )
        return [
            RunEntry(
                run.id,
                run.agent,
                session,
                str(status),
                self._started,
                labels,
                _packed(said),
                seconds,
            )
        ]

    def end(self, run: UnfinishedRun, state: RunState, end: RunEnd, *, save: int) -> list[Write]:
        """Return the writes that list the end of the run.

        `save`: the number of its last save, which stays and can be resumed; 0 if there is none.
        """
        status = end.result.status
        if not self._is_listed:
            return []
        if status is RunStatus.CANCELLED and save:
            return self.put(run, state, status, end, save=save)
        if run.keep == 0.0 and not save:
            return [DropEntry(run.id)] if self._lists else []
        return self.put(run, state, status, end, run.keep if run.keep != 0.0 else SAVES_SECONDS)


_ENDED: Final = (RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


async def restated(
    access: StoreAccess,
    run: UnfinishedRun,
    status: RunStatus,
    error: str | None = None,
    *,
    waits_for: Sequence[InterruptContext] = (),
    save: int | None = None,
) -> list[Write]:
    """Return the writes that update the entry of a run that is not running here."""
    entry = await access.run_entry(run.id) if access.lists_runs else None
    if entry is None:
        return []
    said = _unpacked(entry)
    said[2], said[3], said[4] = time(), time() if status in _ENDED else None, run.attempts
    said[6] = error
    if waits_for:
        said[9] = pack(tuple(waits_for))
    if save is not None:
        said[11] = save
    seconds = run.keep if status in _ENDED and run.keep else None
    return [entry.replace(status=status.value, value=_packed(said), seconds=seconds)]


def read_entry(entry: RunEntry) -> RunInfo:
    """Decode an entry. Raises `CheckpointError`."""
    said = _unpacked(entry)
    try:
        (
            _,
            checkpoint_id,
            updated,
            ended,
            attempts,
            last_agent,
            error,
            usage,
            steps,
            waiting,
            session_id,
            save,
        ) = said[:12]
        contexts = () if waiting is None else unpack(waiting)
        if not all(isinstance(context, InterruptContext) for context in contexts):
            raise TypeError("what it waits for is something else")  # noqa: TRY301 -- wrapped below
        return RunInfo(
            entry.key,
            entry.agent,
            session_id,
            CheckpointId(checkpoint_id, entry.key, save) if save else checkpoint_id,
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
    """Raise UsageError if these cannot be a run's labels."""
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        msg = (
            f"{call}(): labels must be a mapping of strings to strings, got {labels!r:.80}. Pass "
            "one such as {'tenant': 'acme'}."
        )
        raise UsageError(msg)
    if len(labels) > _MOST_LABELS:
        msg = (
            f"{call}(): labels must have at most {_MOST_LABELS} entries, got "
            f"{len(labels)}. Put the others into session_values."
        )
        raise UsageError(msg)
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            wrong = name if not isinstance(name, str) else value
            msg = (
                f"{call}(): labels must have strings as names and values, got a "
                f"{type(wrong).__name__} in {name!r:.80}: {value!r:.80}."
            )
            raise UsageError(msg)
        if not 0 < len(name) <= _LONGEST_NAME or "\0" in name:
            msg = (
                f"{call}(): labels must have names of 1 to {_LONGEST_NAME} characters without "
                f"NUL, got {name!r:.80}."
            )
            raise UsageError(msg)
        if len(value) > _LONGEST_VALUE:
            msg = (
                f"{call}(): labels must have values of at most {_LONGEST_VALUE} characters, "
                f"got {len(value):,} for {name!r}. Shorten it."
            )
            raise UsageError(msg)
    return dict(labels)


def label_text(name: str, value: str) -> str:
    """Return a label as the store lists it. Names contain no NUL."""
    return f"{name}\0{value}"


def session_text(session_id: str) -> str:
    """Return a session as the store lists it."""
    if len(session_id) <= _LONGEST_SESSION:
        return session_id
    from hashlib import blake2b  # noqa: PLC0415 -- a part of the standard library that most programs do without

    digest = blake2b(session_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{session_id[:_LONGEST_SESSION]}\0{digest}"


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
        msg = (
            f"the row of run {entry.key!r} was written by a newer version of offbook. Update "
            "offbook in this process."
        )
        raise CheckpointError(msg, run=entry.key)
    return [*said, *_BEGUN[len(said) - _LEAST :]] if len(said) < _LEAST + len(_BEGUN) else said


_LEAST: Final = 3
_BEGUN: Final = (None, 0, "", None, (0, 0, 0, 0), 0, None, None, None)
"""The fields after the first three, for a run that has only started."""


def _damaged(entry: RunEntry) -> CheckpointError:
    return CheckpointError(f"what the store says of run {entry.key!r} is damaged.", run=entry.key)


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
