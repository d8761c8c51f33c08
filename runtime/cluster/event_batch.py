"""The events of a run on their way to another process, many at once, and how it has ended.

Names, run paths and ids are written once for a batch, and a piece of a message as its text.

Owns: that form. It must never keep anything: each batch can be read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..codec.packing import pack, unpack
from ..data.chat import MessageDelta, Usage
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, UnderstudyError, text_of

__all__ = ["pack_events", "pack_rest", "pack_result", "read_events", "read_rest", "read_result", "split"]

_FORMAT: Final = 1
_PLAIN: Final = 4
"""So many items has a row that holds nothing but a text: those of the others come behind."""
_MOST_BYTES: Final = 64 * 1024


def split(events: Sequence[AgentEvent]) -> Iterator[Sequence[AgentEvent]]:
    """Parts of about 64 kB of text at most; one event at least."""
    start, size = 0, 0
    for index, event in enumerate(events):
        size += 200 + len(event.text)
        if size > _MOST_BYTES and index > start:
            yield events[start:index]
            start, size = index, 200 + len(event.text)
    yield events[start:]


def pack_events(events: Sequence[AgentEvent], run_id: str | None = None) -> bytes:
    """The events as bytes; with `run_id`, they say that they are of that run."""
    return pack(_table(events, run_id))


def read_events(data: bytes) -> list[AgentEvent]:
    """Raises `CheckpointError`."""
    return _events(unpack(data))


def _table(events: Sequence[AgentEvent], run_id: str | None) -> list[Any]:
    wheres: dict[tuple[Any, ...], int] = {}
    rows: list[list[Any]] = []
    began = events[0].timestamp if events else 0.0
    for event in events:
        where = (event.agent_name, event.run_path, event.run_id if run_id is None else run_id, event.invocation_id)
        at = wheres.setdefault(where, len(wheres))
        row: list[Any] = [at, event.seq, round((event.timestamp - began) * 1e6)]
        delta = event.delta
        plain = delta is not None and not delta.reasoning and not delta.tool_calls and event.message is None
        if plain and event.custom_output is None and event.action is None and event.error is None:
            assert delta is not None
            row.append(delta.content)
        else:
            row += [event.message, delta, event.custom_output, event.action, event.error]
        rows.append(row)
    return [_FORMAT, began, [[one[0], list(one[1]), *one[2:]] for one in wheres], rows]


def _events(found: Any) -> list[AgentEvent]:
    try:
        written, began, wheres, rows = found
        if written > _FORMAT:
            raise CheckpointError("events were written by a newer version of understudy: update this one.")
        places = [(name, tuple(path), run_id, invocation) for name, path, run_id, invocation in wheres]
        events = []
        for row in rows:
            name, path, run_id, invocation = places[row[0]]
            seq, at = row[1], began + row[2] / 1e6
            if len(row) == _PLAIN:
                events.append(AgentEvent(name, path, None, MessageDelta(row[3]), None, None, None, seq, at, run_id, invocation))
            else:
                message, delta, output, action, error = row[3:]
                events.append(AgentEvent(name, path, message, delta, output, action, error, seq, at, run_id, invocation))
    except (IndexError, TypeError, ValueError) as error:
        msg = f"events are damaged: {type(error).__name__}: {error}"
        raise CheckpointError(msg) from error
    return events


def pack_rest(batches: Sequence[bytes]) -> bytes:
    """Batches of events that no reader has taken."""
    return pack({"rest": list(batches)}, binaries=len(batches))


def read_rest(data: bytes) -> list[AgentEvent]:
    """The events of such batches, in a reply that says how a run has ended, or that it goes on elsewhere."""
    said = unpack(data)
    return [event for batch in said.get("rest", ()) for event in read_events(batch)] if isinstance(said, dict) else []


def pack_result(result: RunResult, run_id: str | None, rest: Sequence[bytes] = ()) -> bytes:
    """How a run has ended. What of it cannot be written is its text."""
    said: dict[str, Any] = {
        "status": result.status.value,
        "error": result.error,
        "message": result.final_message,
        "output": result.output,
        "interrupts": result.interrupts,
        "usage": result.usage,
        "values": result.session_values,
        "agent": result.last_agent,
        "events": _table(result.events, run_id),
        "rest": list(rest),
    }
    try:
        return pack(said)
    except CheckpointError as refused:
        said["output"] = said["output"] if said["output"] is None or _fits(said["output"]) else str(said["output"])
        said["values"] = {key: value for key, value in said["values"].items() if _fits(value)}
        if not _fits(said["error"]):
            said["error"] = UnderstudyError(f"{type(result.error).__name__}: {text_of(result.error or refused)}")
        if not _fits(said["events"]):
            said["events"] = _table([event for event in result.events if _fits(event)], run_id)
        return pack(said)


def _fits(value: object) -> bool:
    try:
        pack(value)
    except CheckpointError:
        return False
    return True


def read_result(data: bytes) -> RunResult:
    """The result. Raises `CheckpointError`."""
    said = unpack(data)
    try:
        usage = said["usage"]
        return RunResult(
            RunStatus(said["status"]),
            said["error"],
            said["message"],
            said["output"],
            tuple(_events(said["events"])),
            tuple(said["interrupts"]),
            usage if isinstance(usage, Usage) else Usage(),
            dict(said["values"]),
            said["agent"],
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = f"the result of a run is damaged: {type(error).__name__}: {error}"
        raise CheckpointError(msg) from error
