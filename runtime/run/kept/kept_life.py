"""Everything that a store has of one run: its events, its pauses, its losses and its end.

Reading it needs neither the run's agents nor the process that ran it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ...codec.packing import unpack
from ...data.events import AgentEvent
from ...data.run_info import RunInfo
from ...data.run_path import Path
from ...data.run_result import RunResult
from ...durability.checkpoint import check_run_id
from ...durability.compatibility import check_format
from ...durability.kept_outcome import read_outcome
from ...durability.path_table import read_path, read_paths
from ...durability.run_row import read_entry
from ...durability.store_access import StoreAccess
from ...durability.store_keys import journal_key
from ...errors import CheckpointError, CheckpointNotFound

__all__ = ["KeptEvent", "KeptLife", "KeptMark", "read_life"]


class KeptEvent(NamedTuple):
    """An event, with its place in the history."""

    event: AgentEvent
    lane: str | None
    """None if it is not stored."""
    is_shown: bool = True
    """True if the consumer saw it; a consumer does not see the events of an agent used as a tool.
    """


class KeptMark(NamedTuple):
    """A point where the run paused or resumed."""

    kind: str
    """`interrupted`, `cancelled`, `drained`, or `resumed`: by an answer, or by a recovery."""
    at: float | None
    """None if an older version wrote it without the time."""
    events: int
    """The number of events before it."""


@dataclass(frozen=True, slots=True)
class KeptLife:
    """Everything that a store has of a run."""

    id: str
    events: tuple[KeptEvent, ...]
    marks: tuple[KeptMark, ...] = ()
    parents: tuple[tuple[str, str], ...] = ()
    """The lanes of parallel agents, each with its parent lane."""
    info: RunInfo | None = None
    """None if the store has no list of runs."""
    result: RunResult | None = None
    """The stored result: how the run ended, or why it is paused."""

    @property
    def shown(self) -> tuple[AgentEvent, ...]:
        """The events that the consumer saw."""
        return tuple(kept.event for kept in self.events if kept.is_shown)


async def read_life(access: StoreAccess, run_id: str) -> KeptLife:
    """Read everything that the store has of a run.

    Raises `CheckpointNotFound` if the run is unknown, and `CheckpointError` if its data is damaged.
    """
    check_run_id(run_id, "")
    entry = await access.run_entry(run_id) if access.lists_runs else None
    records = await access.read(journal_key(run_id))
    ended = await access.get(journal_key(run_id))
    if entry is None and not records and not ended:
        msg = (
            f"the store has no run {run_id!r}: it was never stored there, or its retention is "
            "over. Check the id and the store."
        )
        raise CheckpointNotFound(msg, run=run_id)
    reader = _Reader()
    for position, progress in enumerate(records):
        try:
            reader.read(progress)
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            CheckpointError,
        ) as error:
            msg = (
                f"the journal of run {run_id!r} is damaged at record {position}: "
                f"{type(error).__name__}: {error}. Restore the store from a backup"
            )
            raise CheckpointError(msg, run=run_id) from error
    events, marks = reader.events, reader.marks
    result = (
        read_outcome(run_id, ended, tuple(kept.event for kept in events if kept.is_shown))
        if ended
        else None
    )
    if result is not None:
        events, marks = _merged(events, marks, result.events)
    return KeptLife(
        run_id,
        tuple(events),
        tuple(marks),
        tuple(reader.parents.items()),
        None if entry is None else read_entry(entry),
        result,
    )


class _Reader:
    """The reader for the records of one run, in order."""

    def __init__(self) -> None:
        self.events: list[KeptEvent] = []
        self.marks: list[KeptMark] = []
        self.parents: dict[str, str] = {}
        self._paths: dict[int, Path] = {}
        self._seq = 0

    def read(self, progress: bytes) -> None:
        for kind, *change in unpack(progress):
            if kind == "event":
                self._event(*change)
            elif kind == "mark":
                self.marks.append(KeptMark(change[0], None, len(self.events)))
            elif (
                kind == "counters"
                and self.marks
                and self.marks[-1].at is None
                and type(at := change[0].get("marked")) is float
            ):
                self.marks[-1] = KeptMark(self.marks[-1].kind, at, self.marks[-1].events)
            elif kind == "lane" and change[1] is not None:
                self.parents[change[0]] = change[1]
            elif kind == "path":
                read_paths([change], self._paths)
            elif kind == "start":
                self._start(change[0])

    def _start(self, image: dict[str, Any]) -> None:
        check_format(image)
        self._paths = read_paths(image.get("paths", ()))
        self._seq = image["seq"]
        for lane, (parent, *_) in image["lanes"].items():
            if parent is not None:
                self.parents[lane] = parent

    def _event(self, lane: str | None, event: AgentEvent, path: Any = None) -> None:
        if not isinstance(event, AgentEvent):
            raise TypeError("an event of the journal must be an AgentEvent")
        is_shown = event.seq > self._seq
        self._seq = max(self._seq, event.seq)
        self.events.append(
            KeptEvent(
                event if path is None else event.replace(run_path=read_path(path, self._paths)),
                lane,
                is_shown,
            )
        )


def _merged(
    events: list[KeptEvent], marks: list[KeptMark], others: tuple[AgentEvent, ...]
) -> tuple[list[KeptEvent], list[KeptMark]]:
    """Insert the events that are missing in the journal at their places."""
    known = {kept.event.seq for kept in events if kept.is_shown}
    missing = sorted(
        (event for event in others if event.seq not in known), key=lambda event: event.seq
    )
    found: list[KeptEvent] = []
    moved = list(marks)
    coming = iter(missing)
    following = next(coming, None)
    for position, kept in enumerate([*events, None]):
        while following is not None and (kept is None or following.seq < kept.event.seq):
            # The last events before a pause are written after the pause's own mark.
            moved = [
                KeptMark(mark.kind, mark.at, mark.events + 1)
                if marks[number].events > position
                else mark
                for number, mark in enumerate(moved)
            ]
            found.append(KeptEvent(following, None))
            following = next(coming, None)
        if kept is not None:
            found.append(kept)
    return found, moved
