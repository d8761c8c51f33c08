"""How a run has ended, as it is kept in a store for callers that ask for it later, or from another process.

Owns: the form of it, and for how long a user may ask for it. What cannot be written (an output of a type that is not registered) is kept as its text. It must
never reach a store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..codec.packing import pack, unpack
from ..data.chat import Message, Usage
from ..data.events import AgentEvent, Interrupted
from ..data.run_result import RunResult, RunStatus
from ..errors import CheckpointError, UnderstudyError, UsageError, text_of
from .checkpoint import LONGEST_KEPT

__all__ = ["belongs_to", "pack_outcome", "read_outcome", "seconds_kept", "values_at_end"]

_FORMAT: Final = 3
"""The first one held what was empty as well, and the usage as a value of its class; the second one the message, also where the journal holds it."""

_TEXT: Final = 0
"""In place of an output: it is the text of the message."""

_A_DAY: Final = 86_400.0


def seconds_kept(keep: object, *, steps: bool = False) -> float | None:
    """For how many seconds it is kept how a run has ended; None: for ever. `steps`: whether each step is recorded."""
    if keep == "all":
        return None
    if keep is None and steps:
        return _A_DAY
    if keep is None or keep == "unfinished":
        return 0.0
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not 0 <= keep <= LONGEST_KEPT:
        msg = f"Runner(keep={keep!r:.80}): give 'unfinished', 'all', or for how many seconds it is kept how a run has ended, {LONGEST_KEPT:,.0f} at most."
        raise UsageError(msg)
    return float(keep)


def pack_outcome(result: RunResult, root: str, input: str | None, *, journaled: bool) -> bytes:  # noqa: A002 -- what it is
    """`root` and `input` tell the run from another one that a caller gives the same id.

    `journaled`: whether a journal has the events, but for those that are shown after the last save.
    """
    events = result.events
    if journaled:
        events = tuple([event for event in events if not event.invocation_id or type(event.action) is Interrupted])
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
    if result.error is not None:
        said["error"] = result.error
    if input or result.interrupts or result.session_values or events:
        rest = {"input": input, "interrupts": result.interrupts, "values": result.session_values, "events": events}
        said.update((key, value) for key, value in rest.items() if value)
    try:
        return pack(said)
    except CheckpointError:
        plain: dict[str, Callable[[Any], object]] = {"error": _as_text, "output": _output_as_text, "values": _packable, "events": _packable_events}
        return pack({key: value if value is None or key not in plain or _fits(value) else plain[key](value) for key, value in said.items()})


def _number_of(message: Message, events: tuple[AgentEvent, ...]) -> int | None:
    """The number of the event that says it, if a journal has that."""
    for event in reversed(events):
        if event.message is message:
            return event.seq if event.invocation_id and type(event.action) is not Interrupted else None
    return None


def _message_in(number: int, events: tuple[AgentEvent, ...]) -> Message | None:
    for event in reversed(events):
        if event.seq == number:
            return event.message
    msg = f"its last message is that of event {number}, which is not in its journal"
    raise ValueError(msg)


def _output_as_text(output: object) -> object:
    return (str(output[0]),) if isinstance(output, tuple) else output


def _as_text(error: Exception) -> Exception:
    return UnderstudyError(f"{type(error).__name__}: {text_of(error)}")


def _packable(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if _fits(value)}


def _packable_events(events: tuple[AgentEvent, ...]) -> tuple[AgentEvent, ...]:
    return tuple(event for event in events if _fits(event))


def _fits(value: object) -> bool:
    try:
        pack(value)
    except CheckpointError:
        return False
    return True


def values_at_end(run_id: str, data: bytes) -> dict[str, Any]:
    """The session values of a run at its end, without its events. Raises `CheckpointError`."""
    said: Any = unpack(data)
    try:
        return dict(said.get("values", {}))
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"how run {run_id} has ended is damaged in the store: {type(error).__name__}: {error}"
        raise CheckpointError(msg, run=run_id) from error


def read_outcome(run_id: str, data: bytes, events: tuple[AgentEvent, ...]) -> RunResult:
    """The result of a run. `events` are those of its journal, if it has one. Raises `CheckpointError`."""
    said: Any = unpack(data)
    try:
        if said["outcome"] > _FORMAT:
            msg = f"how run {run_id} has ended was written by a newer version of understudy: update."
            raise CheckpointError(msg, run=run_id)
        message, usage, output = said["message"], said["usage"], said["output"]
        if said["outcome"] > 1:
            usage = Usage(*usage)
            if type(message) is int:
                message = _message_in(message, events)
            assert isinstance(message, Message | None)
            output = message.text if output == _TEXT and message is not None else output[0]
        assert isinstance(message, Message | None)
        assert isinstance(usage, Usage)
        return RunResult(
            RunStatus(said["status"]),
            said.get("error"),
            message,
            output,
            _merged(events, said.get("events", ())),
            tuple(said.get("interrupts", ())),
            usage,
            dict(said.get("values", {})),
            said["agent"],
        )
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"how run {run_id} has ended is damaged in the store: {type(error).__name__}: {error}"
        raise CheckpointError(msg, run=run_id) from error


def belongs_to(data: bytes) -> tuple[object, object]:
    """The agent and the input of the run that has ended so."""
    said: Any = unpack(data)
    return (said.get("root"), said.get("input")) if isinstance(said, dict) else (None, None)


def _merged(journaled: tuple[AgentEvent, ...], others: tuple[AgentEvent, ...]) -> tuple[AgentEvent, ...]:
    """All events by their numbers."""
    by_number = {event.seq: event for event in (*others, *journaled)}
    return tuple(by_number[number] for number in sorted(by_number))
