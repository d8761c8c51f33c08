"""A run as plain data: the content of a checkpoint, and the sum of a journal.

This module writes the invocations, lanes and counters of a run into tables, and builds a run from
them. An image contains no definitions: an agent's place in its tree is a list of names, which is
looked up when the agent resumes.

    frames    an invocation that has not ended, by its id
    ended     outcomes of agents that an invocation called, by its id and their slots
    steps     results of `context.step`, by the invocation's id
    lanes     [parent, fork, rows] of each lane, by its id
    paths     the prefixes of long run paths, in a table: see `path_table`
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from ..agent.history import Entry, Lane
from ..agent.input_range import InputRange
from ..agent.invocation import AgentCall, Conversation, Invocation, walk
from ..agent.options import plain_options, restored_options
from ..agent.run_context import RunContext
from ..agent.run_state import RunState
from ..agent.session_values import SessionValues
from ..agent.tree import Node
from ..codec.json_values import fits
from ..data.agent_input import AgentInput
from ..data.chat import Message, ToolCall, Usage
from ..data.interrupt import AddressStep, Answer, InterruptContext, Pending
from ..data.outcome import Outcome, OutcomeKind
from ..data.run_path import Path
from ..errors import CheckpointError, UsageError
from .compatibility import FORMAT, find_nodes, shape_of
from .path_table import PathTable, read_names, read_path, read_paths

__all__ = [
    "APART",
    "NO_COUNTERS",
    "STORED_PATHS",
    "check_image",
    "checked_message",
    "draw",
    "draw_beginning",
    "draw_header",
    "frame_of",
    "rebuild",
    "row_of",
]

STORED_PATHS: Final = "paths"
"""The key for the number of stored path rows, among the numbers of stored rows of each lane.

No lane has this name.
"""

NO_COUNTERS: Final = MappingProxyType(
    {"seq": 0, "transfers": 0, "usage": Usage(), "null_answer": None}
)
"""The value of `counters_of` for a new run."""

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

# Lists throughout, and no tuples: msgpack writes and reads natively supported types several times
# as fast.

# The fields of an invocation that its frame holds, if they are set.
_KEPT: Final[dict[str, type]] = {
    "state": dict,
    "notes": dict,
    "outcome": Outcome,
    "transfer": str,
    "broke": bool,
    "pending": dict,
    "answers": dict,
    "resumed": bool,
}

# Fields that a journal records apart from the frame, because there may be hundreds of each.
APART: Final = (
    "pending",
    "answers",
)

_NO_TEXTS: Final = (None, None, None)

_KINDS: Final = get_args(OutcomeKind)

_FIELDS: Final = tuple(name for name in _KEPT if name not in ("state", "notes"))
_FIELDS_BESIDE: Final = tuple(name for name in _FIELDS if name not in APART)

# Errors that a malformed structure can raise.
_DAMAGE: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    UsageError,
)


def draw_header(state: RunState, root: Node, ahead: int = 0) -> dict[str, Any]:
    """Return the header of an image: fixed facts of the run and its counters.

    The counters are `ahead` events further than they are now. Empty values are omitted.
    """
    context, messages = state.context, [*state.input.messages]
    header = {
        "format": FORMAT,
        "run": context.run_id,
        "agent": root.name,
        "shape": shape_of(root),
        "input": [messages, state.input.streaming],
    }
    if (
        context.session_id is not None
        or state.new_input_count is not None
        or state.begins_with is not None
    ):
        header["session_id"], header["fresh"] = context.session_id, state.new_input_count
        header["seen"], header["begins_with"] = state.session_records_before, state.begins_with
    if context.options:
        header["options"] = plain_options(context.options)
    if context.context is not None and fits(context.context):
        header["context"] = context.context
    if context.skip_transfers:
        header["skip_transfers"] = True
    usage = context.usage
    has_used = usage.requests or usage.input_tokens or usage.output_tokens or usage.cached_tokens
    if ahead or state.seq or state.transfers or has_used or context.null_answer is not None:
        header.update(counters_of(state, ahead))
    return header


def draw_beginning(state: RunState, root: Node) -> dict[str, Any]:
    """Return the image of a new run: no agent has started yet."""
    header = draw_header(state, root)
    if len(state.context.session):
        header["values"] = state.context.session.to_dict()
    if state.opening_events:
        header["posts"] = list(state.opening_events)
    return header


def counters_of(state: RunState, ahead: int = 0) -> dict[str, Any]:
    """Return the counters that grow during a run.

    `ahead` is the number of events that are shown right after they were written.
    """
    context = state.context
    return {
        "seq": state.seq + ahead,
        "transfers": state.transfers,
        "usage": context.usage,
        "null_answer": context.null_answer,
    }


def draw(
    state: RunState,
    root: Node,
    stored: Mapping[str, int] = _NOTHING,
    paths: PathTable | None = None,
    *,
    ahead: int = 0,
) -> dict[str, Any]:
    """Return the image of a run, including `ahead` events that are about to be shown.

    Rows of a lane that are already stored are omitted.
    """
    paths = PathTable() if paths is None else paths
    frames: dict[str, Any] = {}
    ended: dict[str, Any] = {}
    steps: dict[str, Any] = {}
    lanes: dict[str, Lane] = {"": state.lane}
    # none, if no agent has started
    for invocation in () if state.root is None else walk(state.root):
        frames[invocation.id] = frame_of(invocation, paths)
        lanes[invocation.lane.id] = invocation.lane
        for lane in invocation.lanes or ():
            lanes[lane.id] = lane
        outcomes = {
            cast_key: one
            for cast_key, one in (invocation.agent_calls or {}).items()
            if isinstance(one, Outcome)
        }
        if outcomes:
            ended[invocation.id] = outcomes
        if invocation.steps:
            steps[invocation.id] = invocation.steps
    image = draw_header(state, root, ahead)
    if values := state.context.session.to_dict():
        image["values"] = values
    image.update(
        (name, table)
        for name, table in (("frames", frames), ("ended", ended), ("steps", steps))
        if table
    )
    if len(lanes) > 1 or state.lane.entries:
        image["lanes"] = {
            lane.id: _drawn_lane(lane, stored.get(lane.id, 0), paths) for lane in lanes.values()
        }
    if paths.rows:
        image["paths"] = paths.rows[stored.get(STORED_PATHS, 0) :]
    return image


def _drawn_lane(lane: Lane, start: int, paths: PathTable) -> list[Any]:
    return [
        None if lane.parent is None else lane.parent.id,
        lane.fork,
        [row_of(entry, paths) for entry in lane.entries[start:]],
    ]


def row_of(entry: Entry, paths: PathTable) -> list[Any]:
    return [entry.agent_name, paths.write(entry.run_path), entry.invocation_id, entry.message]


def frame_of(invocation: Invocation, paths: PathTable, *, apart: bool = False) -> dict[str, Any]:
    """Return an invocation and its agent call, without those below. With `apart`, omit the fields
    that a journal records separately.
    """
    agent_call, input_range = invocation.agent_call, invocation.input_range
    parent = agent_call.parent
    frame: dict[str, Any] = {
        "slot": agent_call.cast_key,
        "names": paths.write(invocation.names),
        "place": [
            *(invocation.node.tree_path if invocation.node is not None else invocation.tree_path)
        ],
        "path": paths.write(invocation.run_path),
        "lane": invocation.lane.id,
        "since": input_range.since,
    }
    if parent is not None:
        frame["in"] = parent.id
        if agent_call.conversation is not parent.agent_call.conversation:
            conversation = agent_call.conversation
            frame["scope"] = [
                [*conversation.input.messages],
                conversation.input.streaming,
                conversation.shown,
                conversation.last_message,
            ]
    places = (
        ("loop", agent_call.loop),
        ("seat_broke", agent_call.broke or None),
        ("tool", agent_call.tool),
        ("apart", apart or None),
    )
    frame.update((name, value) for name, value in places if value is not None)
    if input_range.input is not None:
        frame["given"] = [[*input_range.input.messages], input_range.input.streaming]
    # As of its last step: no event contains its later changes yet.
    frame.update(
        (name, value)
        for name, value in zip(("state", "notes"), invocation.saved, strict=True)
        if value is not None
    )
    frame.update(
        (name, value)
        for name in (_FIELDS_BESIDE if apart else _FIELDS)
        if (value := getattr(invocation, name)) is not None and value is not False
    )
    if input_range.verbatim_from is not None:
        frame["told_from"] = input_range.verbatim_from
    if input_range.retold_from is not None:
        frame["retold_from"] = input_range.retold_from
    if input_range.asked is not None:
        frame["asked"] = input_range.asked
    if invocation.lanes:
        frame["lanes"] = [lane.id for lane in invocation.lanes]
    return frame


def check_image(image: dict[str, Any], root: Node) -> None:
    """Raise CheckpointError if no run that fits that tree can be built from this image."""
    rebuild(image, RunState(RunContext("", None, SessionValues(), (), ()), AgentInput()), root)


def rebuild(image: dict[str, Any], state: RunState, root: Node) -> Mapping[int, Path]:
    """Build the run of an image, with every agent in its place of the tree.

    Raises CheckpointError if the image is inconsistent, or does not fit that tree.

    Returns the run paths that have numbers.
    """
    try:
        paths = read_paths(image.get("paths", ()))
        _rebuild(image, state, paths)
        find_nodes(root, image["shape"], [] if state.root is None else list(walk(state.root)))
    except CheckpointError:
        raise
    except _DAMAGE as error:
        msg = (
            "the checkpoint is damaged: its parts do not belong together "
            f"({type(error).__name__}: {error}). Restore the store from a backup."
        )
        raise CheckpointError(msg) from error
    return paths


def _rebuild(image: dict[str, Any], state: RunState, paths: Mapping[int, Path]) -> None:
    context = state.context
    state.input = AgentInput(_messages(image["input"][0]), bool(image["input"][1]))
    state.seq, state.transfers = _count(image["seq"]), _count(image["transfers"])
    state.new_input_count = None if image["fresh"] is None else _count(image["fresh"])
    state.session_records_before = None if image.get("seen") is None else _count(image["seen"])
    state.begins_with = None if image.get("begins_with") is None else _text(image["begins_with"])
    context.usage = _usage(image["usage"])
    context.null_answer = _text(image["null_answer"])
    context.session_id = _text(image["session_id"])
    context.skip_transfers = bool(image["skip_transfers"])
    context.options = (*restored_options(image["options"]), *context.options)
    if context.context is None:
        context.context = image.get("context")
    context.session.update({**image["values"], **context.session.to_dict()})
    lanes = _lanes(image["lanes"], paths)
    state.lane = lanes[""]
    frames: dict[str, dict[str, Any]] = image["frames"]
    built: dict[str, Invocation] = {}
    conversation = Conversation(state.input, shown=True, recorded=True)
    for invocation_id in frames:
        _build(invocation_id, frames, built, lanes, paths, conversation)
    roots = [one for one in built.values() if one.agent_call.parent is None]
    state.root = None
    stopped = (image.get("mark") or ("",))[0] in ("cancelled", "drained")
    shown = len(image.get("posts", ()))  # the events that come before those of agents
    if not frames and not state.lane.entries and (stopped or state.seq == shown):
        return  # no agent had started
    if len(roots) != 1:
        msg = (
            f"the checkpoint is damaged: it must have one root agent, got {len(roots)}. Restore "
            "the store from a backup."
        )
        raise CheckpointError(msg)
    state.root = roots[0].agent_call
    for invocation_id, outcomes in image["ended"].items():
        agent_calls = built[invocation_id].agent_calls = built[invocation_id].agent_calls or {}
        for cast_key, outcome in outcomes.items():
            agent_calls[cast_key] = _outcome(outcome)
    for invocation_id, results in image["steps"].items():
        built[invocation_id].steps = dict(results)


def _lanes(table: dict[str, Any], paths: Mapping[int, Path]) -> dict[str, Lane]:
    lanes = {lane_id: Lane(None, lane_id) for lane_id in table}
    for lane_id, (parent, fork, rows) in table.items():
        lane = lanes[lane_id]
        lane.parent = None if parent is None else lanes[parent]
        lane.fork = _count(fork)
        lane.entries = [
            Entry(str(name), read_path(path, paths), str(invocation), checked_message(message))
            for name, path, invocation, message in rows
        ]
    sound: set[str] = set()
    for lane in lanes.values():
        above: Lane | None = lane
        seen: set[str] = set()
        while above is not None and above.id not in sound:
            if above.id in seen:
                raise CheckpointError(
                    "the checkpoint is damaged: its lanes form a cycle. Restore the store from a "
                    "backup."
                )
            seen.add(above.id)
            above = above.parent
        sound |= seen
    return lanes


def _build(
    invocation_id: str,
    frames: dict[str, dict[str, Any]],
    built: dict[str, Invocation],
    lanes: dict[str, Lane],
    paths: Mapping[int, Path],
    root_scope: Conversation,
) -> Invocation:
    """Build one invocation, after those above it."""
    line = {invocation_id: None}
    above: Any = invocation_id
    while (above := frames[above].get("in")) is not None and above not in built:
        if above in line:
            raise CheckpointError(
                "the checkpoint is damaged: its agents form a cycle. Restore the store from a "
                "backup."
            )
        line[above] = None
    for next_id in reversed(line):
        if next_id not in built:
            built[next_id] = _build_one(next_id, frames[next_id], built, lanes, paths, root_scope)
    return built[invocation_id]


def _build_one(
    invocation_id: str,
    frame: dict[str, Any],
    built: dict[str, Invocation],
    lanes: dict[str, Lane],
    paths: Mapping[int, Path],
    root_scope: Conversation,
) -> Invocation:
    above = frame.get("in")
    parent = None if above is None else built[above]
    conversation = root_scope if parent is None else parent.agent_call.conversation
    if "scope" in frame:
        messages, streaming, shown, last = frame["scope"]
        conversation = Conversation(
            AgentInput(_messages(messages), bool(streaming)), shown=bool(shown), recorded=False
        )
        conversation.last_message = None if last is None else checked_message(last)
    tool, loop = frame.get("tool"), frame.get("loop")
    tool = None if tool is None else _typed(tool, AddressStep)
    agent_call = AgentCall(
        parent,
        _typed(frame["slot"], int | str),
        conversation,
        tool=tool,
        loop=None if loop is None else _count(loop),
    )
    agent_call.broke = bool(frame.get("seat_broke", False))
    names, tree_path, path = (
        read_path(frame["names"], paths),
        read_names(frame["place"]),
        read_path(frame["path"], paths),
    )
    invocation = Invocation.restore(
        _typed(invocation_id, str),
        names,
        tree_path,
        path,
        lanes[frame["lane"]],
        agent_call,
        _input_range(frame),
    )
    for name, kind in _KEPT.items():
        if name in frame:
            setattr(invocation, name, _typed(frame[name], kind))
    invocation.remember()
    if invocation.outcome is not None:
        _outcome(invocation.outcome)
    for answer in (invocation.answers or {}).values():
        _check_pending(_typed(answer, Answer).pending)
    for pending in (invocation.pending or {}).values():
        _check_pending(pending)
    if "lanes" in frame:
        invocation.lanes = [lanes[lane_id] for lane_id in frame["lanes"]]
    if parent is not None:
        parent.agent_calls = parent.agent_calls or {}
        parent.agent_calls[agent_call.cast_key] = agent_call
    return invocation


def _input_range(frame: dict[str, Any]) -> InputRange:
    outright = frame.get("given")
    return InputRange(
        _count(frame["since"]),
        None if outright is None else AgentInput(_messages(outright[0]), bool(outright[1])),
        _count(frame["told_from"]) if "told_from" in frame else None,
        _count(frame["retold_from"]) if "retold_from" in frame else None,
        asked=_count(frame["asked"]) if "asked" in frame else None,
    )


# --- validation: stored bytes may hold a value of any type in any place


def _typed(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        msg = (
            f"the checkpoint is damaged: expected {getattr(kind, '__name__', kind)}, got "
            f"{type(value).__name__}. Restore the store from a backup."
        )
        raise CheckpointError(msg)
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        msg = (
            f"the checkpoint is damaged: expected a number, got {value!r:.40}. Restore the store "
            "from a backup."
        )
        raise CheckpointError(msg)
    return value


def _text(value: Any) -> str | None:
    text: str | None = None if value is None else _typed(value, str)
    return text


def _usage(value: Any) -> Usage:
    usage: Usage = _typed(value, Usage)
    for number in (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests):
        _typed(number, int)
    return usage


def _messages(given: Any) -> tuple[Message, ...]:
    return tuple(checked_message(message) for message in given)


def checked_message(value: Any) -> Message:
    """Return the message. Raises CheckpointError if it is not a valid one."""
    message: Message = _typed(value, Message)
    calls, texts = message.tool_calls, (message.tool_call_id, message.tool_name, message.reasoning)
    if (
        type(calls) is tuple
        and not calls
        and message.usage is None
        and texts == _NO_TEXTS
        and type(message.id) is str
    ):
        return message  # most messages
    for call in _typed(message.tool_calls, tuple):
        _typed(call, ToolCall)
        read_names((call.id, call.name, call.arguments))
    if message.usage is not None:
        _usage(message.usage)
    for text in texts:
        _text(text)
    _typed(message.id, str)
    return message


def _outcome(value: Any) -> Outcome:
    outcome: Outcome = _typed(value, Outcome)
    if outcome.kind not in _KINDS:
        msg = (
            f"the checkpoint is damaged: an agent has the unknown outcome {outcome.kind!r:.40}. "
            "Restore the store from a backup."
        )
        raise CheckpointError(msg)
    if outcome.error is not None:
        _typed(outcome.error, Exception)
    if outcome.message is not None:
        checked_message(outcome.message)
    for context in _typed(outcome.contexts, tuple):
        _check_context(context)
    return outcome


def _check_pending(pending: Any) -> None:
    _typed(pending, Pending)
    _check_context(pending.context)
    _text(pending.call_id)
    for told in _typed(pending.earlier, tuple):
        was_approval, _, *shown = told
        _typed(was_approval, bool)
        for form in shown:
            _typed(form, bytes | None)


def _check_context(context: Any) -> None:
    while context is not None:
        _typed(context, InterruptContext)
        _typed(context.id, str)
        for step in _typed(context.address, tuple):
            _typed(step, AddressStep)
        context = context.parent
