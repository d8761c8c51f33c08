"""Reading a timeline from a run's events.

An event has the time when something was done, but not when it started. An agent starts with the
event that led to it: the last event of the preceding agents in its run path, or in its lane if a
store has the lanes. A model's reply starts when the agent has all earlier tool results; a tool call
starts with the reply that requested it.

The module needs only events, and also reads runs that are still running or whose start is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..agent.tree import Node
from ..data.chat import Message
from ..data.events import AgentEvent, Interrupted, TransferToAgent
from ..errors import RunCancelled
from ..run.kept.kept_life import KeptEvent, KeptLife
from .svg import shortened
from .timeline_values import (
    BandKind,
    PartKind,
    TimelineBand,
    TimelinePart,
    TimelineRow,
    TimelineSpan,
)

__all__ = ["Cast", "bands_of", "cast_of", "rows_of"]

_LONGEST_NOTE: Final = 120
_FARTHEST: Final = 2_000
"""The most events to search for the one that led to an agent."""

IsBefore = Callable[[KeptEvent, "_Work"], bool]


@dataclass(frozen=True, slots=True)
class Cast:
    """The known facts about the agents of a run."""

    beside: Mapping[str, frozenset[str]]
    """The names of all agents below each agent that runs its children concurrently."""
    without_model: frozenset[str]
    """The agents without a model."""


def cast_of(tree: Node) -> Cast:
    """Return the facts about a tree of agents."""
    beside: dict[str, frozenset[str]] = {}
    without_model: set[str] = set()
    for root in tree.trees():
        for node in root.walk():
            if not node.agent.unique_children:
                beside[node.name] = frozenset(
                    one.name for child in node.children for one in child.walk()
                )
            if not hasattr(node.agent, "model"):
                without_model.add(node.name)
    return Cast(beside, frozenset(without_model))


def rows_of(
    events: Sequence[KeptEvent],
    started: float | None,
    parents: Mapping[str, str],
    cast: Cast | None,
) -> tuple[TimelineRow, ...]:
    """Return the rows, in the order in which their agents started."""
    works = _works(events, started, parents, cast)
    rows: list[tuple[_Work, list[TimelineSpan]]] = []
    by_name: dict[str, list[list[TimelineSpan]]] = {}
    for work in works:
        span = TimelineSpan(
            work.agent, work.path, work.start, work.end, tuple(work.parts), work.failed
        )
        known = by_name.setdefault(work.agent, [])
        free = next((spans for spans in known if spans[-1].end <= span.start), None)
        if free is not None:
            free.append(span)
        else:
            known.append([span])
            rows.append((work, known[-1]))
    rows.sort(key=lambda row: row[1][0].start)
    return tuple(TimelineRow(work.agent, len(work.path) - 1, tuple(spans)) for work, spans in rows)


def bands_of(life: KeptLife, now: float | None = None) -> tuple[TimelineBand, ...]:
    """Return the times when the run stood still, from its journal's marks or from its events.

    No two overlap. `now`: the time up to which it still waits.
    """
    found = _missing_before(life)
    rest: tuple[BandKind, float, str] | None = None

    def add(kind: BandKind, start: float | None, end: float | None, text: str) -> None:
        if start is None or end is None:
            return
        # After an answer, a process was lost: its last event is from before the question.
        start = max(start, found[-1].end) if found else start
        if end >= start:
            found.append(TimelineBand(kind, start, end, text))

    marks = list(life.marks)
    for position, kept in enumerate([*life.events, None]):
        while marks and marks[0].events == position:
            mark = marks.pop(0)
            before, after = (
                life.events[position - 1].event.timestamp if position else None,
                None if kept is None else kept.event.timestamp,
            )
            if mark.kind != "resumed":
                at = mark.at if mark.at is not None else before
                rest = (
                    None
                    if at is None
                    else ("waits" if mark.kind == "interrupted" else "rests", at, mark.kind)
                )
                continue
            end = mark.at if mark.at is not None else after
            kind, start, text = rest or (
                "lost",
                before if before is not None else _started(life),
                "its process was lost",
            )
            add(kind, start, end, text)
            rest = None
        if kept is None or life.marks:
            continue
        if rest is not None:
            add(rest[0], rest[1], max(rest[1], kept.event.timestamp), rest[2])
            rest = None
        rest = _rest_of(kept.event)
    if rest is not None:
        add(rest[0], rest[1], now, rest[2])
    return tuple(found)


def _missing_before(life: KeptLife) -> list[TimelineBand]:
    """Return the time before the last resume, if the events of that part are not stored.

    The run waited for most of it.
    """
    if life.marks or life.result is None or not life.events or life.events[0].event.seq <= 1:
        return []
    start, end = _started(life), life.result.started
    return (
        [TimelineBand("waits", start, end, "interrupted")]
        if start is not None and end > start
        else []
    )


def _rest_of(event: AgentEvent) -> tuple[BandKind, float, str] | None:
    if isinstance(event.action, Interrupted):
        return "waits", event.timestamp, "interrupted"
    return (
        ("rests", event.timestamp, "cancelled")
        if isinstance(event.error, RunCancelled) and not event.invocation_id
        else None
    )


def _started(life: KeptLife) -> float | None:
    return None if life.info is None else life.info.started.timestamp()


@dataclass(slots=True)
class _Work:
    """One running agent, while its events are read."""

    agent: str
    path: tuple[str, ...]
    lane: str | None
    start: float
    end: float
    since: float
    """The time when it had all input for its next model call."""
    parts: list[TimelinePart] = field(default_factory=list)
    called: dict[str, float] = field(default_factory=dict)
    failed: bool = False


def _works(
    events: Sequence[KeptEvent],
    started: float | None,
    parents: Mapping[str, str],
    cast: Cast | None,
) -> list[_Work]:
    works: dict[str, _Work] = {}
    is_before = (
        _by_lane(parents) if any(kept.lane is not None for kept in events) else _by_path(cast)
    )
    for position, kept in enumerate(events):
        event = kept.event
        if not event.invocation_id:  # an event of the run itself, about its end
            continue
        work = works.get(event.invocation_id)
        if work is None:
            work = _Work(
                event.agent_name,
                event.run_path,
                _lane_of(events, position),
                event.timestamp,
                event.timestamp,
                event.timestamp,
            )
            begin = _begin(work, events[max(0, position - _FARTHEST) : position], is_before)
            if begin is None:
                begin = events[0].event.timestamp if started is None else started
            work.start = work.since = min(event.timestamp, begin)
            works[event.invocation_id] = work
        work.end = max(work.end, event.timestamp)
        _read(event, work, cast)
    return list(works.values())


def _lane_of(events: Sequence[KeptEvent], position: int) -> str | None:
    """Return the lane of the agent's first event with one, as events without a message have none."""
    own = events[position].event.invocation_id
    for kept in events[position : position + _FARTHEST]:
        if kept.lane is not None and kept.event.invocation_id == own:
            return kept.lane
    return None


def _begin(work: _Work, earlier: Sequence[KeptEvent], is_before: IsBefore) -> float | None:
    """Return the time of the event that led to it; None if there is none."""
    return next(
        (
            kept.event.timestamp
            for kept in reversed(earlier)
            if kept.event.invocation_id and is_before(kept, work)
        ),
        None,
    )


def _by_lane(parents: Mapping[str, str]) -> IsBefore:
    by_path = _by_path(None)

    def line_of(lane: str) -> list[str]:
        line = [lane]
        while (above := parents.get(line[-1])) is not None and above not in line:
            line.append(above)
        return line

    def is_before(kept: KeptEvent, work: _Work) -> bool:
        if kept.lane is None or work.lane is None:
            return by_path(kept, work)
        one, other = line_of(kept.lane), line_of(work.lane)
        if one[-1] != other[-1]:  # one of them was called as a tool, and has a separate history
            return by_path(kept, work)
        return kept.lane in other or work.lane in one

    return is_before


def _by_path(cast: Cast | None) -> IsBefore:
    beside = None if cast is None else cast.beside

    def is_before(kept: KeptEvent, work: _Work) -> bool:
        path, own = kept.event.run_path, work.path
        if own[: len(path)] == path:
            return len(path) < len(own)
        if beside is None:
            return False  # called by another one, or running concurrently
        shared = 0
        for one, other in zip(path, own, strict=False):
            if one != other:
                break
            shared += 1
        if shared == len(own) or not shared:
            return False
        together = beside.get(own[shared - 1], frozenset())
        return not (path[shared] in together and own[shared] in together)

    return is_before


def _read(event: AgentEvent, work: _Work, cast: Cast | None) -> None:
    message, at = event.message, event.timestamp
    if event.error is not None and event.delta is None:
        work.failed = True
        work.parts.append(
            TimelinePart(
                "own",
                type(event.error).__name__,
                work.since,
                at,
                failed=True,
                note=shortened(str(event.error), _LONGEST_NOTE),
            )
        )
    elif message is None:
        return
    elif message.role == "tool":
        start = work.called.pop(message.tool_call_id or "", work.since)
        name = message.tool_name or "tool"
        if at > start and not isinstance(event.action, TransferToAgent):
            work.parts.append(
                TimelinePart("tool", name, start, at, note=shortened(message.text, _LONGEST_NOTE))
            )
    elif message.role == "assistant":
        kind: PartKind = (
            "model"
            if cast is None or work.agent not in cast.without_model or message.usage is not None
            else "own"
        )
        if at > work.since:
            work.parts.append(TimelinePart(kind, work.agent, work.since, at, note=_note(message)))
        work.called.update((call.id, at) for call in message.tool_calls)
    work.since = max(work.since, at)


def _note(message: Message) -> str:
    said: Iterable[str] = ([message.text] if message.text else []) + [
        f"calls {call.name}({call.arguments})" for call in message.tool_calls
    ]
    tokens = (
        ""
        if message.usage is None
        else f" ({message.usage.input_tokens:,} tokens in, {message.usage.output_tokens:,} out)"
    )
    return shortened(" | ".join(said), _LONGEST_NOTE) + tokens
