"""The stored result of a run, for callers that ask for it later or from another process.

An output of a type that is not registered is stored as its JSON value. This module never accesses a
store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..agent.tree import Node
from ..codec.json_values import as_plain, fits
from ..codec.packing import pack, unpack
from ..data.chat import Message, Usage
from ..data.events import AgentEvent, Interrupted
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, OffbookError, UsageError, text_of
from .checkpoint import LONGEST_KEPT
from .journal import without_objects

__all__ = [
    "belongs_to",
    "pack_outcome",
    "read_outcome",
    "rebuilt",
    "seconds_kept",
    "status_at_end",
    "values_at_end",
]

_FORMAT: Final = 1
"""The version of this format."""

_TEXT: Final = 0
"""Replaces an output that equals the text of the message."""
_PLAIN: Final = "json"
"""Marks an output that is the JSON value of an object."""
_PLAIN_TYPES: Final = frozenset((dict, list, str, int, float, bool))

_A_DAY: Final = 86_400.0


def seconds_kept(keep: object, *, steps: bool = False) -> float | None:
    """Return for how many seconds the result of a run is retained; None: forever.

    `steps`: whether each step is recorded.
    """
    if keep == "all":
        return None
    if keep is None and steps:
        return _A_DAY
    if keep is None or keep == "unfinished":
        return 0.0
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 <= keep <= LONGEST_KEPT:
        msg = (
            "Runner: keep must be 'unfinished', 'all', or the seconds for which a finished run "
            f"is retained (at most {LONGEST_KEPT:,.0f}), got {keep!r:.80}."
        )
        raise UsageError(msg)
    return float(keep)


def pack_outcome(result: RunResult, root: str, input: str | None, *, journaled: bool) -> bytes:  # noqa: A002 -- the natural name
    """Pack a result. `root` and `input` distinguish the run from another one with the same id.

    `journaled`: whether a journal has the events, except those that are shown after the last save.
    """
    events = result.events
    if journaled:
        events = tuple(
            [
                event
                for event in events
                if not event.invocation_id or type(event.action) is Interrupted
            ]
        )
    usage, message = result.usage, result.final_message
    in_journal = _number_of(message, result.events) if journaled and message is not None else None
    said: dict[str, Any] = {
        "outcome": _FORMAT,
        "root": root,
        "status": str(result.status),
        "message": message if in_journal is None else in_journal,
        "usage": (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests),
        "agent": result.last_agent,
    }
    is_text = message is not None and type(result.output) is str and result.output == message.text
    said["output"] = _TEXT if is_text else (result.output,)
    if result.started and events and events[0].seq > 1 and not journaled:
        # Earlier events of this run are not stored, so this records when it started.
        said["started"] = result.started
    if result.error is not None:
        said["error"] = result.error
    if input or result.interrupts or result.session_values or events:
        rest = {
            "input": input,
            "interrupts": result.interrupts,
            "values": result.session_values,
            "events": events,
        }
        said.update((key, value) for key, value in rest.items() if value)
    try:
        return pack(said)
    except CheckpointError:
        plain: dict[str, Callable[[Any], object]] = {
            "error": _as_text,
            "output": _plain_output,
            "values": _packable,
            "events": _packable_events,
        }
        return pack(
            {
                key: value
                if value is None or key not in plain or fits(value)
                else plain[key](value)
                for key, value in said.items()
            }
        )


def _number_of(message: Message, events: tuple[AgentEvent, ...]) -> int | None:
    """Return the number of the event that carries the message, if a journal has that event."""
    for event in reversed(events):
        if event.message is message:
            return (
                event.seq if event.invocation_id and type(event.action) is not Interrupted else None
            )
    return None


def _message_in(number: int, events: tuple[AgentEvent, ...]) -> Message | None:
    for event in reversed(events):
        if event.seq == number:
            return event.message
    msg = f"its journal lacks event {number}, which has its last message"
    raise ValueError(msg)


def _plain_output(output: object) -> object:
    """Return an output of an unregistered type as its JSON value and a mark.

    So it can be rebuilt where the agent is available.
    """
    if not isinstance(output, tuple):
        return output
    try:
        plain = (as_plain(output[0]), _PLAIN)
    except CheckpointError:
        return _TEXT
    return plain if fits(plain) else _TEXT


def _as_text(error: Exception) -> Exception:
    return OffbookError(f"{type(error).__name__}: {text_of(error)}")


def _packable(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if fits(value)}


def _packable_events(events: tuple[AgentEvent, ...]) -> tuple[AgentEvent, ...]:
    return tuple(event for event in map(without_objects, events) if fits(event))


def values_at_end(run_id: str, data: bytes) -> dict[str, Any]:
    """Return the session values of an ended run, without its events. Raises `CheckpointError`."""
    said: Any = unpack(data)
    try:
        return dict(said.get("values", {}))
    except (AttributeError, TypeError, ValueError) as error:
        msg = (
            f"the stored result of run {run_id} is damaged: {type(error).__name__}: {error}. "
            "Restore the store from a backup."
        )
        raise CheckpointError(msg, run=run_id) from error


def read_outcome(run_id: str, data: bytes, events: tuple[AgentEvent, ...]) -> RunResult:
    """Return the result of a run.

    `events` are those of its journal, if it has one. Raises `CheckpointError`.
    """
    said: Any = unpack(data)
    try:
        if said["outcome"] > _FORMAT:
            msg = (
                f"the stored result of run {run_id} was written by a newer version of offbook. "
                "Update offbook in this process."
            )
            raise CheckpointError(msg, run=run_id)
        message, output = said["message"], said["output"]
        if type(message) is int:
            message = _message_in(message, events)
        assert isinstance(message, Message | None)
        output = output[0] if output != _TEXT else None if message is None else message.text
        return RunResult(
            RunStatus(said["status"]),
            said.get("error"),
            message,
            output,
            _merged(events, said.get("events", ())),
            tuple(said.get("interrupts", ())),
            Usage(*said["usage"]),
            dict(said.get("values", {})),
            said["agent"],
            started=float(said.get("started", 0.0)),
            run_id=run_id,
        )
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        msg = (
            f"the stored result of run {run_id} is damaged: {type(error).__name__}: {error}. "
            "Restore the store from a backup."
        )
        raise CheckpointError(msg, run=run_id) from error


def rebuilt(root: Node, result: RunResult | None) -> RunResult | None:
    """Return the result with its output as the `output_type` of the available agent.

    If the agent has changed, the JSON value remains.
    """
    if result is None or result.error is not None or type(result.output) not in _PLAIN_TYPES:
        return result
    message = result.final_message
    if message is None or message.role != "assistant" or result.output == message.text:
        return result
    for node in (
        node for tree in root.trees() for node in tree.walk() if node.name == result.last_agent
    ):
        output = node.agent.answer_of(node, message)
        if output is not None:
            events = tuple(
                event.replace(custom_output=output) if event.message == message else event
                for event in result.events
            )
            return result.replace(output=output, events=events)
    return result


def status_at_end(data: bytes) -> object:
    """Return the status with which the run ended."""
    said: Any = unpack(data)
    return said.get("status") if isinstance(said, dict) else None


def belongs_to(data: bytes) -> tuple[object, object]:
    """Return the agent and the input of the run with this result."""
    said: Any = unpack(data)
    return (said.get("root"), said.get("input")) if isinstance(said, dict) else (None, None)


def _merged(
    journaled: tuple[AgentEvent, ...], others: tuple[AgentEvent, ...]
) -> tuple[AgentEvent, ...]:
    """Merge all events by their numbers."""
    by_number = {event.seq: event for event in (*others, *journaled)}
    return tuple(by_number[number] for number in sorted(by_number))
