"""A run, step by step: what has changed since the last step, as one record; and the image that such records add up to.

A record is a list of changes. What it costs is proportional to the step: of an agent only its own frame is in it, and only if that has changed.

    frame id bytes | gone id                 an agent has begun, or stands elsewhere now (packed by itself); it has ended
    event lane event                         an event, whose message goes to that lane (None: to none)
    ended id slot outcome | asked id         what an agent cast has ended; it will not ask for that again
    step id name result                      of `context.step`
    lane id parent fork | joined id lanes    the lanes of a Parallel begin, and are put behind the one that they came from
    values changed gone | counters ...       session values; what only goes up
    start image | mark kind number           the beginning; an interrupt, a cancellation, the end
    path number above names                  a row of the table of paths: see `path_table`

The run path of an event is its own, if it is short. Else it stands behind the event, as in a frame, and the event has none.

Owns: the making and the reading of records. It must never write to a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final

from ..codec.kept_values import kept_value
from ..codec.packing import pack, unpack
from ..data.events import AgentEvent, CustomAction, with_path
from ..errors import CheckpointError, UsageError
from .compatibility import check_format
from .image import NO_COUNTERS, counters_of, frame_of
from .path_table import PathTable, read_path, read_paths

if TYPE_CHECKING:
    from ..agent.history import Lane
    from ..agent.invocation import Invocation
    from ..agent.run_state import RunState
    from ..data.outcome import Outcome
    from ..data.run_path import Path

__all__ = ["EventReader", "Journal", "replay"]

_MISSING: Final = object()
_FIRST_LANE: Final = frozenset(("",))
_SHOWN: Final = ("event", "lane", "path")
"""What those read who look at a run that has ended."""
_DAMAGE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UsageError)


class Journal:
    """What has happened in one run since its last record was made."""

    __slots__ = ("_changes", "_counters", "_drawn", "_frames", "_lanes", "_paths", "_problem", "_rows", "_untouched", "_values")

    def __init__(self) -> None:
        self._changes: list[list[Any]] = []
        self._problem: CheckpointError | None = None  # why there will be no record any more
        self._frames: dict[str, bytes] = {}  # as they were recorded
        self._values: dict[str, Any] = {}  # the session values as they were recorded: plain ones, and the bytes of others
        self._lanes: frozenset[str] | set[str] = _FIRST_LANE
        self._counters: Mapping[str, Any] = NO_COUNTERS
        self._drawn = 0  # frames among the changes
        self._paths = PathTable()
        self._rows = 0  # how many of its rows were recorded
        self._untouched: Invocation | None = None  # whose frame may have changed: it was not looked at yet

    def begin(self, image: dict[str, Any]) -> bytes:
        """The run begins with that image, in which no agent plays yet. It is the first record."""
        self._know_values(image)
        if "seq" in image:
            self._counters = _counters_in(image)
        return pack([["start", image]])

    def start(self, image: dict[str, Any], paths: PathTable | None = None) -> None:
        """The run goes on from an image that was drawn with those paths."""
        self._changes.append(["start", image])
        self.know(image, self._paths if paths is None else paths)
        self._counters = _counters_in(image)

    def know(self, image: dict[str, Any], paths: PathTable) -> None:
        """This has been recorded already."""
        self._paths, self._rows = paths, len(paths.rows)
        if lanes := image.get("lanes"):
            self._lanes = {*self._lanes, *lanes}
        self._know_values(image)

    def _know_values(self, image: dict[str, Any]) -> None:
        if values := image.get("values"):
            self._values = {key: kept_value(value) for key, value in values.items()}

    def mark(self, kind: str, number: int) -> None:
        """Something that a reader looks for, and when it was: beside the counters, where versions that do not know it leave it alone."""
        self._changes += (["mark", kind, number], ["counters", {"marked": time()}])

    def touch(self, invocation: Invocation) -> None:
        """Its frame may have changed. It is drawn here and now: when the record is made its agent may be at its next step, which is in no record yet."""
        if invocation.assignment.holder is not invocation:
            return  # it has ended meanwhile
        for lane in (invocation.lane, *(invocation.lanes or ())):
            if lane.id not in self._lanes:
                self._lane(lane)
        try:
            packed = pack(frame_of(invocation, self._paths))
        except CheckpointError as error:
            error.agent = invocation.node.name
            self._problem = self._problem or error
            return
        if self._frames.get(invocation.id) != packed:
            self._frames[invocation.id] = packed
            self._note_paths()
            self._changes.append(["frame", invocation.id, packed])
            self._drawn += 1

    def event(self, event: AgentEvent, invocation: Invocation, *, said: bool, is_last: bool = False) -> None:
        """An event was stamped. Of an agent that does nothing behind it the frame is needed only if the run does not end with that."""
        lane = invocation.lane if said else None
        if lane is not None and lane.id not in self._lanes:
            self._lane(lane)
        path = invocation.run_path
        if type(path) is tuple:
            self._changes.append(["event", None if lane is None else lane.id, event])
        else:
            written = self._paths.write(path)
            self._note_paths()
            self._changes.append(["event", None if lane is None else lane.id, with_path(event, ()), written])
        if is_last:
            self._untouched = invocation
            return
        self.touch(invocation)
        dialogue, assignment = invocation.assignment.dialogue, invocation.assignment
        if said and not dialogue.recorded:
            # What was said last in a conversation is its result: it is kept with the agent that it was begun with.
            while assignment.parent is not None and assignment.parent.assignment.dialogue is dialogue:
                assignment = assignment.parent.assignment
            if assignment.holder is not None and assignment.holder is not invocation:
                self.touch(assignment.holder)

    def _note_paths(self) -> None:
        """What stands behind refers to them."""
        rows = self._paths.rows
        if len(rows) > self._rows:
            self._changes += [["path", *row] for row in rows[self._rows :]]
            self._rows = len(rows)

    def _lane(self, lane: Lane) -> None:
        if type(self._lanes) is frozenset:
            self._lanes = {*self._lanes}
        self._lanes.add(lane.id)  # type: ignore[union-attr]  # it is a set by now
        self._changes.append(["lane", lane.id, None if lane.parent is None else lane.parent.id, lane.fork])

    def gone(self, invocation: Invocation) -> None:
        """An agent has left its assignment."""
        if self._frames.pop(invocation.id, None) is not None:
            self._changes.append(["gone", invocation.id])

    def ended(self, parent: Invocation, cast_key: Any, outcome: Outcome) -> None:
        """What an agent has cast has ended."""
        if parent.id not in self._frames:
            self.touch(parent)
        self._changes.append(["ended", parent.id, cast_key, outcome])

    def asked(self, parent: Invocation) -> None:
        """An agent has gone on behind those that have ended."""
        self._changes.append(["asked", parent.id])

    def step(self, invocation: Invocation, name: str, result: Any) -> None:
        """Something was done that is to be done once."""
        self._changes.append(["step", invocation.id, name, result])
        self.touch(invocation)

    def joined(self, invocation: Invocation, lanes: list[Lane]) -> None:
        """Lanes were put behind the one that they came from."""
        for lane in lanes:
            if lane.id not in self._lanes:
                self._lane(lane)
        self._changes.append(["joined", invocation.lane.id, [lane.id for lane in lanes]])
        self.touch(invocation)

    def take(self, state: RunState, ahead: int = 0) -> bytes | None:
        """All of it, as one record; None if nothing has happened. `ahead` events are to be shown right after it was written."""
        if self._untouched is not None:
            invocation, self._untouched = self._untouched, None
            self.touch(invocation)
        if self._problem is not None:
            raise self._problem
        self._session(state)
        if not self._changes:
            return None
        counters = counters_of(state, ahead)
        news = {key: value for key, value in counters.items() if self._counters.get(key, _MISSING) != value}
        self._counters = counters
        changes, self._changes = self._changes, []
        if news:
            changes.append(["counters", news])
        drawn, self._drawn = self._drawn, 0
        return _packed(changes, drawn)

    def take_last(self) -> bytes | None:
        """What is left of a run that ends with it: its events. What only one that goes on would need is not recorded any more."""
        if self._problem is not None:
            raise self._problem
        changes, self._changes, self._untouched, self._drawn = [change for change in self._changes if change[0] in _SHOWN], [], None, 0
        return _packed(changes) if changes else None

    def _session(self, state: RunState) -> None:
        known = self._values
        if not known and not state.context.session:
            return
        values = state.context.session.to_dict()
        changed = {}
        for key, value in values.items():
            kept = kept_value(value)
            before = known.get(key, _MISSING)
            if before is _MISSING or type(before) is not type(kept) or before != kept:
                changed[key] = value
                known[key] = kept
        gone = [key for key in known if key not in values]
        for key in gone:
            del known[key]
        if changed or gone:
            self._changes.append(["values", changed, gone])


def _counters_in(image: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: image[name] for name in NO_COUNTERS} if "seq" in image else NO_COUNTERS


def _packed(changes: list[list[Any]], frames: int = 0) -> bytes:
    try:
        return pack(changes, binaries=frames)
    except CheckpointError:
        return pack([_without_display(change) if change[0] == "event" else change for change in changes])


def _without_display(change: list[Any]) -> list[Any]:
    """An event in a form that can be kept: what only its consumer is to see may be any object."""
    event = change[2]
    action = event.action
    if isinstance(action, CustomAction):
        action = CustomAction(_text(action.value))
    custom = None if event.custom_output is None else _text(event.custom_output)
    shown = AgentEvent(
        event.agent_name, event.run_path, event.message, None, custom, action, event.error, event.seq, event.timestamp, event.run_id, event.invocation_id
    )
    return [change[0], change[1], shown, *change[3:]]


def _text(value: Any) -> Any:
    try:
        pack(value)
    except CheckpointError:
        return repr(value)
    return value


class EventReader:
    """Reads the events out of the records of one run, which it is given in their order."""

    __slots__ = ("_paths",)

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}

    def read(self, record: bytes) -> list[AgentEvent]:
        events: list[AgentEvent] = []
        for kind, *change in unpack(record):
            if kind == "start":
                self._paths = read_paths(change[0].get("paths", ()))
            elif kind == "path":
                read_paths([change], self._paths)
            elif kind == "event" and isinstance(change[1], AgentEvent):
                events.append(with_path(change[1], read_path(change[2], self._paths)) if len(change) > 2 else change[1])  # noqa: PLR2004 -- with a path
        return events


def replay(records: list[bytes]) -> dict[str, Any]:
    """The image that the records add up to, with `mark` (the last one), and `events`. Raises CheckpointError if they do not."""
    image: dict[str, Any] = {}
    for position, record in enumerate(records):
        try:
            for change in unpack(record):
                _apply(image, change)
        except CheckpointError as error:
            msg = f"record {position} of the journal: {error}"
            raise CheckpointError(msg) from error
        except _DAMAGE as error:
            msg = f"the journal is damaged at record {position}: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error
    if not image:
        raise CheckpointError("the journal is damaged: it does not begin with the start of a run.")
    try:
        _prune(image)
    except _DAMAGE as error:
        msg = f"the journal is damaged: its records do not belong together ({type(error).__name__}: {error})."
        raise CheckpointError(msg) from error
    return image


def _apply(image: dict[str, Any], change: list[Any]) -> None:
    kind = change[0]
    if kind == "start":
        check_format(change[1])
        image.clear()
        image.update(change[1], mark=None)
    elif not image:
        raise CheckpointError("it does not begin with the start of a run.")
    else:
        _CHANGES[kind](image, *change[1:])


def _event(image: dict[str, Any], lane: str | None, event: AgentEvent, path: list[Any] | None = None) -> None:
    if lane is not None:
        image["lanes"][lane][2].append((event.agent_name, event.run_path if path is None else path, event.invocation_id, event.message))


def _path(image: dict[str, Any], *row: Any) -> None:
    image.setdefault("paths", []).append(row)


def _ended(image: dict[str, Any], parent: str, cast_key: Any, outcome: Outcome) -> None:
    image["ended"].setdefault(parent, {})[cast_key] = outcome


def _values(image: dict[str, Any], changed: dict[str, Any], gone: list[str]) -> None:
    image["values"].update(changed)
    for key in gone:
        image["values"].pop(key, None)


def _joined(image: dict[str, Any], lane: str, children: list[str]) -> None:
    lanes = image["lanes"]
    for child in children:
        rows, lanes[child][2] = lanes[child][2], []
        lanes[lane][2].extend(rows)


def _mark(image: dict[str, Any], kind: str, number: int) -> None:
    if type(kind) is not str or type(number) is not int:
        raise TypeError("a mark is a word and a number")
    image["mark"] = (kind, number)


_CHANGES: Final[dict[str, Any]] = {
    "path": _path,
    "frame": lambda image, key, packed: image["frames"].__setitem__(key, unpack(packed)),
    "gone": lambda image, key: image["frames"].pop(key, None),
    "event": _event,
    "ended": _ended,
    "asked": lambda image, parent: image["ended"].pop(parent, None),
    "step": lambda image, key, name, result: image["steps"].setdefault(key, {}).__setitem__(name, result),
    "lane": lambda image, key, parent, fork: image["lanes"].__setitem__(key, [parent, fork, []]),
    "joined": _joined,
    "values": _values,
    "counters": lambda image, news: image.update(news),
    "mark": _mark,
}


def _prune(image: dict[str, Any]) -> None:
    """Drop what belongs to agents that are no more."""
    frames: dict[str, Any] = image["frames"]
    changed = True
    while changed:
        orphans = [key for key, frame in frames.items() if "in" in frame and frame["in"] not in frames]
        for key in orphans:
            del frames[key]
        changed = bool(orphans)
    for table in ("ended", "steps"):
        image[table] = {key: value for key, value in image[table].items() if key in frames}
    lanes: dict[str, Any] = image["lanes"]
    used: set[str] = {""}
    for frame in frames.values():
        used.update((frame["lane"], *frame.get("lanes", ())))
    for key in tuple(used):
        above: Any = lanes.get(key)
        while above is not None and above[0] is not None and above[0] not in used:
            used.add(above[0])
            above = lanes.get(above[0])
    image["lanes"] = {key: lane for key, lane in lanes.items() if key in used}
