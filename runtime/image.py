"""A run as plain data: what a checkpoint holds, and what a journal adds up to.

Owns: how the tree of invocations, the lanes and the counters of a run are put into tables, and how a run is built of them again. An image holds no
definition: where an agent stands in its tree is a list of names, which is looked up when the agent goes on. It must never start anything.

    frames    an invocation that has not ended, by its id          ended     how those have ended that it cast, by its id and their slots
    steps     results of `context.step`, by the invocation's id    lanes     [parent, fork, rows] of each lane, by its id
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from .chat import Message, Usage
from .definition import AgentInput, Node
from .errors import CheckpointError
from .history import Entry, Lane
from .invocation import Invocation, Scope, Seat
from .options import plain_options, restored_options
from .outcome import Outcome
from .shape import shape_of

if TYPE_CHECKING:
    from .ledger import Ledger

__all__ = ["FORMAT", "draw", "draw_header", "frame_of", "rebuild", "row_of", "walk"]

FORMAT: Final = 1
"""Of images. One that is higher was written by a newer version."""

_NOTHING: Final[Mapping[str, int]] = {}

# Lists all through, and no tuples: what msgpack can write by itself is written and read several times as fast.

# What a frame holds of its invocation, where it is something.
_KEPT: Final = ("state", "notes", "outcome", "transfer", "broke", "pending", "answers", "resumed")


def draw_header(ledger: Ledger, root: Node) -> dict[str, Any]:
    """What does not change in a run, and the counters."""
    context = ledger.context
    return {
        "format": FORMAT,
        "run": context.run_id,
        "agent": root.name,
        "shape": shape_of(root),
        "session_id": context.session_id,
        "fresh": ledger.fresh,
        "input": [[*ledger.given.messages], ledger.given.streaming],
        "options": plain_options(context.options),
        "skip_transfers": context.skip_transfers,
        **counters_of(ledger),
    }


def counters_of(ledger: Ledger) -> dict[str, Any]:
    """What goes up as the run goes on."""
    context = ledger.context
    return {"seq": ledger.seq, "transfers": ledger.transfers, "usage": context.usage, "null_answer": context.null_answer}


def draw(ledger: Ledger, root: Node, stored: Mapping[str, int] = _NOTHING) -> dict[str, Any]:
    """The image of a run, as it is now; without so much of each lane as is stored already."""
    frames: dict[str, Any] = {}
    ended: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    lanes: dict[str, Lane] = {"": ledger.lane}
    for invocation in () if ledger.root is None else walk(ledger.root):  # none, if nobody plays yet
        frames[invocation.id] = frame_of(invocation)
        lanes[invocation.lane.id] = invocation.lane
        for lane in invocation.lanes or ():
            lanes[lane.id] = lane
        outcomes = {slot: one for slot, one in (invocation.seats or {}).items() if isinstance(one, Outcome)}
        if outcomes:
            ended[invocation.id] = outcomes
        if invocation.steps:
            steps[invocation.id] = invocation.steps
    return {
        **draw_header(ledger, root),
        "values": ledger.context.session.to_dict(),
        "frames": frames,
        "ended": ended,
        "steps": steps,
        "lanes": {lane.id: _drawn_lane(lane, stored.get(lane.id, 0)) for lane in lanes.values()},
    }


def _drawn_lane(lane: Lane, start: int) -> list[Any]:
    return [None if lane.parent is None else lane.parent.id, lane.fork, [row_of(entry) for entry in islice(lane.entries, start, None)]]


def walk(seat: Seat) -> Iterator[Invocation]:
    """The invocation in that seat, if there is one, and all that are below it: those above first."""
    invocation = seat.occupant
    if invocation is not None:
        yield invocation
        for below in (invocation.seats or {}).values():
            if isinstance(below, Seat):
                yield from walk(below)


def row_of(entry: Entry) -> list[Any]:
    return [entry.agent_name, [*entry.run_path], entry.invocation_id, entry.message]


def frame_of(invocation: Invocation) -> dict[str, Any]:
    """An invocation and its seat, without those below."""
    seat = invocation.seat
    parent = seat.parent
    frame: dict[str, Any] = {
        "slot": seat.slot,
        "names": [*invocation.names],
        "place": [*(invocation.node.place if invocation.node is not None else invocation.place)],
        "path": [*invocation.run_path],
        "lane": invocation.lane.id,
        "since": invocation.since,
    }
    if parent is not None:
        frame["in"] = parent.id
        if seat.scope is not parent.seat.scope:
            scope = seat.scope
            frame["scope"] = [[*scope.input.messages], scope.input.streaming, scope.shown, scope.last_message]
    places = (("loop", seat.loop), ("seat_broke", seat.broke or None), ("tool", seat.tool))
    frame.update((name, value) for name, value in places if value is not None)
    if invocation.given is not None:
        frame["given"] = [[*invocation.given.messages], invocation.given.streaming]
    frame.update((name, value) for name in _KEPT if (value := getattr(invocation, name)) is not None and value is not False)
    if invocation.lanes:
        frame["lanes"] = [lane.id for lane in invocation.lanes]
    return frame


def rebuild(image: dict[str, Any], ledger: Ledger) -> None:
    """Build the run of an image. Raises CheckpointError if it does not hold together."""
    try:
        _rebuild(image, ledger)
    except CheckpointError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        msg = f"the checkpoint is damaged: its parts do not belong together ({type(error).__name__}: {error})."
        raise CheckpointError(msg) from error


def _rebuild(image: dict[str, Any], ledger: Ledger) -> None:
    context = ledger.context
    ledger.given = AgentInput(_messages(image["input"][0]), bool(image["input"][1]))
    ledger.seq, ledger.transfers = int(image["seq"]), int(image["transfers"])
    ledger.fresh = None if image["fresh"] is None else int(image["fresh"])
    context.usage = cast("Usage", _typed(image["usage"], Usage))
    context.null_answer = image["null_answer"]
    context.session_id = image["session_id"]
    context.skip_transfers = bool(image["skip_transfers"])
    context.options = (*restored_options(image["options"]), *context.options)
    context.session.update({**image["values"], **context.session.to_dict()})
    lanes = _lanes(image["lanes"])
    ledger.lane = lanes[""]
    frames: dict[str, dict[str, Any]] = image["frames"]
    built: dict[str, Invocation] = {}
    scope = Scope(ledger.given, shown=True, recorded=True)
    for invocation_id in frames:
        _build(invocation_id, frames, built, lanes, scope)
    roots = [one for one in built.values() if one.seat.parent is None]
    if not frames and not image["seq"]:
        return  # nobody had begun to play
    if len(roots) != 1:
        msg = f"the checkpoint is damaged: it has {len(roots)} roots."
        raise CheckpointError(msg)
    ledger.root = roots[0].seat
    for invocation_id, outcomes in image["ended"].items():
        seats = built[invocation_id].seats = built[invocation_id].seats or {}
        for slot, outcome in outcomes.items():
            seats[slot] = cast("Outcome", _typed(outcome, Outcome))
    for invocation_id, results in image["steps"].items():
        built[invocation_id].steps = dict(results)


def _lanes(table: dict[str, Any]) -> dict[str, Lane]:
    lanes = {lane_id: Lane(None, lane_id) for lane_id in table}
    for lane_id, (parent, fork, rows) in table.items():
        lane = lanes[lane_id]
        lane.parent = None if parent is None else lanes[parent]
        lane.fork = int(fork)
        lane.entries = [Entry(str(name), tuple(path), str(invocation), cast("Message", _typed(message, Message))) for name, path, invocation, message in rows]
    for lane in lanes.values():
        above, seen = lane.parent, {lane.id}
        while above is not None:
            if above.id in seen:
                raise CheckpointError("the checkpoint is damaged: its lanes form a circle.")
            seen.add(above.id)
            above = above.parent
    return lanes


def _build(invocation_id: str, frames: dict[str, dict[str, Any]], built: dict[str, Invocation], lanes: dict[str, Lane], root_scope: Scope) -> Invocation:
    """One invocation, and first those above it."""
    line = [invocation_id]
    while (above := frames[line[-1]].get("in")) is not None and above not in built:
        if above in line:
            raise CheckpointError("the checkpoint is damaged: its agents form a circle.")
        line.append(above)
    for next_id in reversed(line):
        if next_id not in built:
            built[next_id] = _build_one(next_id, frames[next_id], built, lanes, root_scope)
    return built[invocation_id]


def _build_one(invocation_id: str, frame: dict[str, Any], built: dict[str, Invocation], lanes: dict[str, Lane], root_scope: Scope) -> Invocation:
    above = frame.get("in")
    parent = None if above is None else built[above]
    scope = root_scope if parent is None else parent.seat.scope
    if "scope" in frame:
        messages, streaming, shown, last = frame["scope"]
        scope = Scope(AgentInput(_messages(messages), bool(streaming)), shown=bool(shown), recorded=False)
        scope.last_message = last
    seat = Seat(parent, frame["slot"], scope, frame.get("tool"), frame.get("loop"), None)
    seat.broke = bool(frame.get("seat_broke", False))
    *before, _ = frame["names"]
    seat.names = tuple(before)
    given = frame.get("given")
    invocation = Invocation.restore(invocation_id, frame["names"][-1], tuple(frame["place"]), tuple(frame["path"]), lanes[frame["lane"]], seat)
    invocation.given = None if given is None else AgentInput(_messages(given[0]), bool(given[1]))
    invocation.since = int(frame["since"])
    for name in _KEPT:
        if name in frame:
            setattr(invocation, name, frame[name])
    if "lanes" in frame:
        invocation.lanes = [lanes[lane_id] for lane_id in frame["lanes"]]
    if parent is not None:
        parent.seats = parent.seats or {}
        parent.seats[seat.slot] = seat
    return invocation


def _messages(given: Any) -> tuple[Message, ...]:
    return tuple(cast("Message", _typed(message, Message)) for message in given)


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        msg = f"the checkpoint is damaged: {type(value).__name__} where {kind.__name__} belongs."
        raise CheckpointError(msg)
    return value
