"""The events of a run as bytes, many in a batch, and the form of its result.

Names, run paths and ids are written once for each batch, and a plain delta as its text. Each batch
can be read by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..codec.json_values import as_plain, fits
from ..codec.packing import pack, unpack
from ..data.chat import MessageDelta, Usage
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..durability.journal import without_objects
from ..errors import CheckpointError, OffbookError, text_of

__all__ = [
    "pack_events",
    "pack_rest",
    "pack_result",
    "read_events",
    "read_rest",
    "read_result",
    "split",
]

_FORMAT: Final = 1
_PLAIN: Final = 4
"""The length of a row that contains only a text. Other rows are longer."""
_MOST_BYTES: Final = 64 * 1024


def split(events: Sequence[AgentEvent]) -> Iterator[Sequence[AgentEvent]]:
    """Split events into parts of about 64 kB of text at most, with at least one event each."""
    start, size = 0, 0
    for index, event in enumerate(events):
        size += 200 + len(event.text)
        if size > _MOST_BYTES and index > start:
            yield events[start:index]
            start, size = index, 200 + len(event.text)
    yield events[start:]


def pack_events(events: Sequence[AgentEvent], run_id: str | None = None) -> bytes:
    """Pack events. With `run_id`, each event gets that id as its run's."""
    return pack(_table(events, run_id))


def read_events(data: bytes) -> list[AgentEvent]:
    """Unpack events. Raise `CheckpointError`."""
    return _events(unpack(data, opaque=True))


def _table(events: Sequence[AgentEvent], run_id: str | None) -> list[Any]:
    wheres: dict[tuple[Any, ...], int] = {}
    rows: list[list[Any]] = []
    began = events[0].timestamp if events else 0.0
    for event in events:
        where = (
            event.agent_name,
            event.run_path,
            event.run_id if run_id is None else run_id,
            event.invocation_id,
        )
        at = wheres.setdefault(where, len(wheres))
        row: list[Any] = [at, event.seq, round((event.timestamp - began) * 1e6)]
        delta = event.delta
        plain = (
            delta is not None
            and not delta.reasoning
            and not delta.tool_calls
            and event.message is None
        )
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
            raise CheckpointError(
                "a host sent events in the format of a newer version of offbook. Update offbook "
                "in this process."
            )
        places = [
            (name, tuple(path), run_id, invocation) for name, path, run_id, invocation in wheres
        ]
        events = []
        for row in rows:
            name, path, run_id, invocation = places[row[0]]
            seq, at = row[1], began + row[2] / 1e6
            if len(row) == _PLAIN:
                events.append(
                    AgentEvent(
                        name,
                        path,
                        None,
                        MessageDelta(row[3]),
                        None,
                        None,
                        None,
                        seq,
                        at,
                        run_id,
                        invocation,
                    )
                )
            else:
                message, delta, output, action, error = row[3:]
                events.append(
                    AgentEvent(
                        name,
                        path,
                        message,
                        delta,
                        output,
                        action,
                        error,
                        seq,
                        at,
                        run_id,
                        invocation,
                    )
                )
    except (IndexError, TypeError, ValueError) as error:
        msg = (
            f"the events that a host sent are damaged: {type(error).__name__}: {error}. Check "
            "that all hosts run the same version of offbook"
        )
        raise CheckpointError(msg) from error
    return events


def pack_rest(batches: Sequence[bytes]) -> bytes:
    """Pack the batches of events that no reader has taken."""
    return pack({"rest": list(batches)}, binaries=len(batches))


def read_rest(data: bytes) -> list[AgentEvent]:
    """Read the events that came with a reply, of a run that ended or continues elsewhere."""
    said = unpack(data, opaque=True)
    return (
        [event for batch in said.get("rest", ()) for event in read_events(batch)]
        if isinstance(said, dict)
        else []
    )


def pack_result(result: RunResult, run_id: str | None, rest: Sequence[bytes] = ()) -> bytes:
    """Pack the result of a run. Values that cannot be packed are replaced or omitted."""
    said: dict[str, Any] = {
        "status": result.status.value,
        "error": result.error,
        "message": result.final_message,
        "output": result.output,
        "interrupts": result.interrupts,
        "usage": result.usage,
        "values": result.session_values,
        "agent": result.last_agent,
        "run": result.run_id,
        "events": _table(result.events, run_id),
        "rest": list(rest),
    }
    try:
        return pack(said)
    except CheckpointError as refused:
        said["output"] = _plain(said["output"])
        said["values"] = {key: value for key, value in said["values"].items() if fits(value)}
        if not fits(said["error"]):
            said["error"] = OffbookError(
                f"{type(result.error).__name__}: {text_of(result.error or refused)}"
            )
        if not fits(said["events"]):
            said["events"] = _table(
                [event for event in map(without_objects, result.events) if fits(event)], run_id
            )
        return pack(said)


def _plain(output: object) -> object:
    """Return the output, or the JSON value of an object of an unregistered type."""
    if fits(output):
        return output
    try:
        return as_plain(output)
    except CheckpointError:
        return None


def read_result(data: bytes) -> RunResult:
    """Unpack a result. Raise `CheckpointError`."""
    said = unpack(data, opaque=True)
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
            run_id=said.get("run", ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"the result that a host sent is damaged: {type(error).__name__}: {error}. Check "
            "that all hosts run the same version of offbook"
        )
        raise CheckpointError(msg) from error
