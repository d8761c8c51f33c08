"""A run, step by step: each record contains the changes since the last step.

`replay.py` reads the records.

A record is a list of changes. Its size is proportional to the step: it contains an agent's own
frame only, and only if that has changed.

    frame id bytes | gone id                 an agent has started or moved (packed by itself); it
                                             has ended
    waits id name bytes                      answers, or open interrupts, that a frame has gained
                                             and lost (packed): the frame is recorded without them
    event lane event                         an event, whose message goes to that lane (None: to
                                             none)
    ended id cast_key outcome | asked id     a called agent has ended; its outcome is not needed
                                             again
    step id name result                      of `context.step`
    lane id parent fork | joined id lanes    the lanes of a Parallel start, and are appended to
                                             their parent
    values changed gone | counters ...       session values; counters that only grow
    start image | mark kind number           the beginning; a save (interrupted, cancelled,
                                             drained), or a resume from one
    path number above names                  a row of the table of paths: see `path_table`

A short run path is part of its event. A long one follows the event, as in a frame, and the event
has none. This module makes records; it never writes to a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import time
from typing import TYPE_CHECKING, Any, Final

from ..codec.json_values import as_plain, fits
from ..codec.kept_values import kept_value
from ..codec.packing import pack
from ..data.events import AgentEvent, CustomAction
from ..errors import CheckpointError
from .image import APART, NO_COUNTERS, counters_of, frame_of
from .path_table import PathTable

if TYPE_CHECKING:
    from ..agent.history import Lane
    from ..agent.invocation import Invocation
    from ..agent.run_state import RunState
    from ..data.outcome import Outcome

__all__ = ["Journal"]

_MISSING: Final = object()
_FIRST_LANE: Final = frozenset(("",))
_SHOWN: Final = ("event", "lane", "path")
"""The changes that readers of an ended run need."""


class Journal:
    """The changes in one run since its last record was made."""

    __slots__ = (
        "_changes",
        "_counters",
        "_drawn",
        "_frames",
        "_lanes",
        "_paths",
        "_problem",
        "_rows",
        "_untouched",
        "_values",
        "_waits",
    )

    def __init__(self) -> None:
        self._changes: list[list[Any]] = []
        self._problem: CheckpointError | None = None  # the reason why no more records can be made
        self._frames: dict[str, bytes] = {}  # the recorded frames
        # Answers and open interrupts as they were recorded; these mappings never change.
        self._waits: dict[tuple[str, str], Mapping[Any, Any]] = {}
        # The session values as they were recorded: plain values, and the bytes of all others.
        self._values: dict[str, Any] = {}
        self._lanes: frozenset[str] | set[str] = _FIRST_LANE
        self._counters: Mapping[str, Any] = NO_COUNTERS
        self._drawn = 0  # number of frames among the changes
        self._paths = PathTable()
        self._rows = 0  # number of path rows already recorded
        # The invocation whose frame may have changed and has not been checked yet.
        self._untouched: Invocation | None = None

    def begin(self, image: dict[str, Any]) -> bytes:
        """Start with that image, in which no agent runs yet. Returns the first record."""
        self._know_values(image)
        if "seq" in image:
            self._counters = _counters_in(image)
        return pack([["start", image]])

    def start(self, image: dict[str, Any], paths: PathTable | None = None) -> None:
        """Continue from an image that was drawn with those paths."""
        self._changes.append(["start", image])
        self.know(image, self._paths if paths is None else paths)
        self._counters = _counters_in(image)

    def know(self, image: dict[str, Any], paths: PathTable) -> None:
        """Note that this image is already recorded."""
        self._paths, self._rows = paths, len(paths.rows)
        self._waits = {
            (key, name): waits
            for key, frame in image.get("frames", {}).items()
            for name in APART
            if (waits := frame.get(name))
        }
        if lanes := image.get("lanes"):
            self._lanes = {*self._lanes, *lanes}
        self._know_values(image)

    def _know_values(self, image: dict[str, Any]) -> None:
        if values := image.get("values"):
            self._values = {key: kept_value(value) for key, value in values.items()}

    def mark(self, kind: str, number: int) -> None:
        """Record a mark that readers search for, and its time.

        The time goes with the counters, where versions that do not know it ignore it.
        """
        self._changes += (["mark", kind, number], ["counters", {"marked": time()}])

    def context(self, context: object) -> None:
        """Record the caller's new context. It goes with the counters, for the same reason."""
        self._changes.append(["counters", {"context": context}])

    def touch(self, invocation: Invocation) -> None:
        """Note that the frame of an invocation may have changed.

        The frame is drawn immediately: by the time the record is made, its agent may be at its next
        step, which is in no record yet.
        """
        if invocation.agent_call.holder is not invocation:
            return  # it has ended in the meantime
        for lane in (invocation.lane, *(invocation.lanes or ())):
            if lane.id not in self._lanes:
                self._lane(lane)
        try:
            packed = pack(frame_of(invocation, self._paths, apart=True))
            waits = [
                (name, packed_news)
                for name in APART
                if (packed_news := self._news_of(invocation, name)) is not None
            ]
        except CheckpointError as error:
            error.agent = invocation.node.name
            self._problem = self._problem or error
            return
        if self._frames.get(invocation.id) != packed:
            self._frames[invocation.id] = packed
            self._note_paths()
            self._changes.append(["frame", invocation.id, packed])
            self._drawn += 1
        for name, packed in waits:
            self._changes.append(["waits", invocation.id, name, packed])
            self._drawn += 1

    def _news_of(self, invocation: Invocation, name: str) -> bytes | None:
        """Return the changes of its answers or open interrupts, packed; None if there are none.

        Each of them is recorded once, however many there are.
        """
        now, before = getattr(invocation, name) or {}, self._waits.get((invocation.id, name), {})
        if now is before or (not now and not before):
            return None
        news = (
            {key: value for key, value in now.items() if before.get(key) is not value},
            [key for key in before if key not in now],
        )
        self._waits[invocation.id, name] = now
        return pack(news) if any(news) else None

    def event(
        self, event: AgentEvent, invocation: Invocation, *, said: bool, is_last: bool = False
    ) -> None:
        """Record an event that was stamped.

        If the event is the agent's last, its frame is needed only if the run does not end with it.
        """
        lane = invocation.lane if said else None
        if lane is not None and lane.id not in self._lanes:
            self._lane(lane)
        path = invocation.run_path
        if type(path) is tuple:
            self._changes.append(["event", None if lane is None else lane.id, event])
        else:
            written = self._paths.write(path)
            self._note_paths()
            lane_id = None if lane is None else lane.id
            self._changes.append(["event", lane_id, event.replace(run_path=()), written])
        if is_last:
            self._untouched = invocation
            return
        self.touch(invocation)
        conversation, agent_call = invocation.agent_call.conversation, invocation.agent_call
        if said and not conversation.recorded:
            # The last message of a conversation is its result, and is stored with the agent that
            # started the conversation.
            while (
                agent_call.parent is not None
                and agent_call.parent.agent_call.conversation is conversation
            ):
                agent_call = agent_call.parent.agent_call
            if agent_call.holder is not None and agent_call.holder is not invocation:
                self.touch(agent_call.holder)

    def _note_paths(self) -> None:
        """Record the new path rows, which the following changes refer to."""
        rows = self._paths.rows
        if len(rows) > self._rows:
            self._changes += [["path", *row] for row in rows[self._rows :]]
            self._rows = len(rows)

    def _lane(self, lane: Lane) -> None:
        if type(self._lanes) is frozenset:
            self._lanes = {*self._lanes}
        self._lanes.add(lane.id)  # type: ignore[union-attr]  # it is a set by now
        self._changes.append(
            ["lane", lane.id, None if lane.parent is None else lane.parent.id, lane.fork]
        )

    def gone(self, invocation: Invocation) -> None:
        """Record that an agent has left its agent call."""
        for name in APART:
            self._waits.pop((invocation.id, name), None)
        if self._frames.pop(invocation.id, None) is not None:
            self._changes.append(["gone", invocation.id])

    def ended(self, parent: Invocation, cast_key: Any, outcome: Outcome) -> None:
        """Record the outcome of an agent that another one called."""
        if parent.id not in self._frames:
            self.touch(parent)
        self._changes.append(["ended", parent.id, cast_key, outcome])

    def asked(self, parent: Invocation) -> None:
        """Record that an agent has continued after the agents that it called ended."""
        self._changes.append(["asked", parent.id])

    def step(self, invocation: Invocation, name: str, result: Any) -> None:
        """Record the result of something that must run only once."""
        self._changes.append(["step", invocation.id, name, result])
        self.touch(invocation)

    def joined(self, invocation: Invocation, lanes: list[Lane]) -> None:
        """Record that lanes were appended to their parent."""
        for lane in lanes:
            if lane.id not in self._lanes:
                self._lane(lane)
        self._changes.append(["joined", invocation.lane.id, [lane.id for lane in lanes]])
        self.touch(invocation)

    def take(self, state: RunState, ahead: int = 0) -> bytes | None:
        """Return all changes as one record; None if there are none.

        `ahead` events are shown right after it is written.
        """
        if self._untouched is not None:
            invocation, self._untouched = self._untouched, None
            self.touch(invocation)
        if self._problem is not None:
            raise self._problem
        self._session(state)
        if not self._changes:
            return None
        counters = counters_of(state, ahead)
        news = {
            key: value
            for key, value in counters.items()
            if self._counters.get(key, _MISSING) != value
        }
        self._counters = counters
        changes, self._changes = self._changes, []
        if news:
            changes.append(["counters", news])
        drawn, self._drawn = self._drawn, 0
        return _packed(changes, drawn)

    def take_last(self) -> bytes | None:
        """Return the last events of a run that ends with them.

        State that only a continued run would need is no longer recorded.
        """
        if self._problem is not None:
            raise self._problem
        changes, self._changes, self._untouched, self._drawn = (
            [change for change in self._changes if change[0] in _SHOWN],
            [],
            None,
            0,
        )
        return _packed(changes) if changes else None

    def drop_changes(self) -> None:
        """Drop what is not written yet: the run has ended."""
        self._changes.clear()

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
        return pack(
            [
                [*change[:2], without_objects(change[2]), *change[3:]]
                if change[0] == "event"
                else change
                for change in changes
            ]
        )


def without_objects(event: AgentEvent) -> AgentEvent:
    """Return an event in a storable form: arbitrary objects for its consumer become JSON values."""
    action = event.action
    if isinstance(action, CustomAction):
        action = CustomAction(_plain(action.value))
    custom = None if event.custom_output is None else _plain(event.custom_output)
    return AgentEvent(
        event.agent_name,
        event.run_path,
        event.message,
        None,
        custom,
        action,
        event.error,
        event.seq,
        event.timestamp,
        event.run_id,
        event.invocation_id,
        event.post,
    )


def _plain(value: Any) -> Any:
    if fits(value):
        return value
    try:
        return as_plain(value)
    except CheckpointError:
        return repr(value)  # an object without any other form
