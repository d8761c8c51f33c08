"""What a run shows: one event after the other, and the actions in them.

Owns: `AgentEvent` and the actions. An agent yields events without the fields that say where and when; the run supervisor fills those in, once, with `stamp`.
Nothing else may make an event that claims a place in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ..errors import RunCancelled
from ..quick_init import draft_of, quick
from .chat import Message, MessageDelta
from .interrupt import InterruptContext
from .readable import readable
from .run_path import Path, SharedPath, names_of

__all__ = [
    "Action",
    "AgentEvent",
    "BreakLoop",
    "CustomAction",
    "Exit",
    "Interrupted",
    "TransferToAgent",
    "stamp",
    "stamp_delta",
    "unstamped",
    "whole",
    "with_delta",
    "with_path",
]


@dataclass(frozen=True, slots=True)
class Exit:
    """The run ends here, with all that encloses the agent, up to an agent tool."""


@quick
@dataclass(frozen=True, slots=True)
class Interrupted:
    """The run waits for something from outside: one context for each root cause. `checkpoint_id` is what `resume` takes; None if the run is not kept."""

    contexts: tuple[InterruptContext, ...] = ()
    checkpoint_id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class TransferToAgent:
    """The agent of that name goes on, and control does not come back."""

    agent_name: str


@dataclass(frozen=True, slots=True)
class BreakLoop:
    """The nearest loop ends after this child. `by`, `done` and `iteration` (from 0) are filled in by that loop."""

    by: str | None = None
    done: bool = False
    iteration: int | None = None


@dataclass(frozen=True, slots=True)
class CustomAction:
    """Something for the consumer: the framework only carries it."""

    value: object = None


Action: TypeAlias = Exit | Interrupted | TransferToAgent | BreakLoop | CustomAction


@quick
@dataclass(frozen=True, slots=True, repr=False)
class AgentEvent:
    """One thing that happened in a run.

    `delta` is a piece of a message that is still streaming: it is shown, but never recorded, and what is in it comes again in the whole `message`.
    An `error` is the end of the agent that it names; but beside a `delta` it is a `ModelRetry`: drop what was streamed.

    `text` is what is said in it; `print(event)` shows all that happened, errors included, in one line.
    """

    agent_name: str = ""
    run_path: tuple[str, ...] = ()
    message: Message | None = None
    delta: MessageDelta | None = None
    custom_output: Any = None
    action: Action | None = None
    error: Exception | None = None
    seq: int = -1
    timestamp: float = field(default=0.0, compare=False)
    run_id: str = field(default="", compare=False)
    invocation_id: str = field(default="", compare=False)

    @staticmethod
    def of(message: Message | None = None, action: Action | None = None, custom_output: object = None) -> AgentEvent:
        """An event for an agent to yield: where and when are filled in by the run."""
        return _draft(message, action, custom_output)

    @staticmethod
    def say(text: str) -> AgentEvent:
        """An assistant message for an agent to yield."""
        return _draft(Message("assistant", text), None, None)

    @property
    def text(self) -> str:
        """What is said: the text of the message, or of the piece of one that is still streaming. Empty if nothing is."""
        if self.message is not None:
            return self.message.text
        return "" if self.delta is None else self.delta.content

    __repr__ = readable

    def __str__(self) -> str:
        """One line, for people to read: who, and what is said, called, done or has gone wrong."""
        who = f"[{self.agent_name}]" if self.agent_name else ""
        what = " | ".join(_parts(self))
        return f"{who} {what}" if who and what else who or what

    @property
    def is_failure(self) -> bool:
        """Whether this is the end of its agent, and no mere retry."""
        return self.error is not None and self.delta is None


_Draft: Final[Any] = draft_of(AgentEvent)
"""Of an event that is being filled in. By this an event takes 0.4 µs; through the constructor of a frozen dataclass, 1.5 µs."""


class _ShownPath:
    """Where an event keeps its run path, which may be one that shares its beginning with others. The reader sees a tuple."""

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, event: object, owner: type | None = None) -> Any:
        if event is None:
            return self
        path = self._slot.__get__(event, owner)
        return names_of(path) if type(path) is SharedPath else path

    def __set__(self, event: object, value: object) -> None:
        self._slot.__set__(event, value)


AgentEvent.run_path = _ShownPath(AgentEvent.run_path)  # type: ignore[assignment, misc]  # the slot that it stands in front of


def _parts(event: AgentEvent) -> Iterator[str]:
    """What happened, in words."""
    message, error = event.message, event.error
    if event.delta is not None:
        yield f"begins again: {_named(error)}" if error is not None else f"...{event.delta.content}"
        return
    if message is not None:
        said = " ".join(message.text.split())
        if message.role == "tool":
            yield f"{message.tool_name or 'tool'} -> {said}"
        elif said or not message.tool_calls:
            yield said or "(no text)"
        for call in message.tool_calls:
            yield f"calls {call.name}({call.arguments})"
    elif event.custom_output is not None:
        yield repr(event.custom_output)
    if event.action is not None:
        yield from _of_action(event.action)
    if error is not None:
        yield f"cancelled: {error}" if isinstance(error, RunCancelled) else f"failed: {_named(error)}"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _of_action(action: Action) -> Iterator[str]:
    match action:
        case Exit():
            yield "ends the run"
        case TransferToAgent(name):
            yield f"transfers to {name}"
        case BreakLoop():
            yield "breaks the loop"
        case Interrupted(()):
            yield "waits"
        case Interrupted(contexts):
            yield from (f"waits: {context.info}" for context in contexts)
        case _:
            yield repr(action)


def unstamped(message: Message, action: Action | None = None, custom_output: object = None) -> AgentEvent:
    """An event of an agent of this package, which is stamped at once and seen by nothing before: it becomes one only then, and is not copied."""
    draft = _Draft()
    draft.message = message
    draft.delta = draft.error = None
    draft.custom_output = custom_output
    draft.action = action
    return draft  # type: ignore[no-any-return]  # it will be one


def whole(event: AgentEvent) -> AgentEvent:
    """The event as others may see it, if it is `unstamped`."""
    made: Any = event
    return _draft(event.message, event.action, event.custom_output) if type(made) is _Draft else event


def _draft(message: Message | None, action: Action | None, custom_output: object) -> AgentEvent:
    draft = _Draft()
    draft.agent_name = draft.run_id = draft.invocation_id = ""
    draft.run_path = ()
    draft.message = message
    draft.delta = draft.error = None
    draft.custom_output = custom_output
    draft.action = action
    draft.seq = -1
    draft.timestamp = 0.0
    draft.__class__ = AgentEvent  # of the same layout
    return draft  # type: ignore[no-any-return]  # it is one now


def stamp(
    event: AgentEvent,
    agent_name: str,
    run_path: Path,
    action: Action | None,
    error: Exception | None,
    seq: int,
    timestamp: float,
    run_id: str,
    invocation_id: str,
) -> AgentEvent:
    """The event with where and when it happened: a copy, unless it is `unstamped`."""
    draft: Any = event
    if type(draft) is not _Draft:
        draft = _Draft()
        draft.message = event.message
        draft.delta = event.delta
        draft.custom_output = event.custom_output
    draft.agent_name = agent_name
    draft.run_path = run_path
    draft.action = action
    draft.error = error
    draft.seq = seq
    draft.timestamp = timestamp
    draft.run_id = run_id
    draft.invocation_id = invocation_id
    draft.__class__ = AgentEvent  # of the same layout
    stamped: AgentEvent = draft
    return stamped


def stamp_delta(delta: MessageDelta, agent_name: str, run_path: Path, seq: int, timestamp: float, run_id: str, invocation_id: str) -> AgentEvent:
    """The event of a piece of a message."""
    draft = _Draft()
    draft.agent_name = agent_name
    draft.run_path = run_path
    draft.delta = delta
    draft.message = draft.action = draft.error = None
    draft.custom_output = None
    draft.seq = seq
    draft.timestamp = timestamp
    draft.run_id = run_id
    draft.invocation_id = invocation_id
    draft.__class__ = AgentEvent  # of the same layout
    return draft  # type: ignore[no-any-return]  # it is one now


def with_delta(event: AgentEvent, delta: MessageDelta) -> AgentEvent:
    """A copy of a stamped event with another piece of a message in it."""
    run_path: Path = event.run_path
    return stamp_delta(delta, event.agent_name, run_path, event.seq, event.timestamp, event.run_id, event.invocation_id)


def with_path(event: AgentEvent, path: Path) -> AgentEvent:
    """A copy of a stamped event with another run path."""
    return stamp(event, event.agent_name, path, event.action, event.error, event.seq, event.timestamp, event.run_id, event.invocation_id)
