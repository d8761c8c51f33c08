"""The events of a run, and their actions.

An agent yields events without their place and time; the run's supervisor adds these once, with
`stamp`. No other code may create an event with a place in a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import time
from typing import Any, ClassVar, TypeAlias

from ..errors import RunCancelled
from .chat import Message, MessageDelta
from .interrupt import InterruptContext
from .posts import Posted
from .readable import readable
from .run_path import Path, SharedPath, names_of
from .value import Value, compared

__all__ = [
    "Action",
    "AgentEvent",
    "BreakLoop",
    "CustomAction",
    "Exit",
    "Interrupted",
    "TransferToAgent",
    "stamp",
]


class Exit(Value, frozen=True):
    """The run ends here, including all enclosing agents, up to an agent tool."""


class Interrupted(Value, frozen=True):
    """The run waits for external answers: one context for each root cause.

    `checkpoint_id` is for `resume`; None if the run is not stored.
    """

    contexts: tuple[InterruptContext, ...] = ()
    checkpoint_id: str | None = None


class TransferToAgent(Value, frozen=True):
    """The agent of that name takes over, and control does not return."""

    agent_name: str


class BreakLoop(Value, frozen=True):
    """The nearest loop ends after this child.

    The loop sets `by`, `done` and `iteration` (from 0).
    """

    by: str | None = None
    done: bool = False
    iteration: int | None = None


class CustomAction(Value, frozen=True):
    """A value for the consumer, which the framework only passes on."""

    value: object = None


Action: TypeAlias = Exit | Interrupted | TransferToAgent | BreakLoop | CustomAction


class AgentEvent(Value, frozen=True):
    """One event of a run.

    `delta` is a part of a message that is still streaming: it is shown but never recorded, and its
    text comes again in the whole `message`. An `error` ends the agent that the event names. With a
    `delta`, the error is a `ModelRetry`: drop the text streamed so far.

    `text` is the text of the message or the delta. `print(event)` shows the whole event, including
    errors, in one line.
    """

    NOT_COMPARED: ClassVar = ("timestamp", "run_id", "invocation_id")

    agent_name: str = ""
    run_path: tuple[str, ...] = ()
    message: Message | None = None
    delta: MessageDelta | None = None
    custom_output: Any = None
    action: Action | None = None
    error: Exception | None = None
    seq: int = -1
    timestamp: float = 0.0
    run_id: str = ""
    invocation_id: str = ""
    post: Posted | None = None
    """The post that the message was, if it came from the session's inbox during the run."""

    @staticmethod
    def of(
        message: Message | None = None, action: Action | None = None, custom_output: object = None
    ) -> AgentEvent:
        """Create an event for an agent to yield; the run adds its place and time."""
        return AgentEvent(message=message, action=action, custom_output=custom_output)

    @staticmethod
    def say(text: str) -> AgentEvent:
        """Create an assistant message for an agent to yield."""
        return AgentEvent(message=Message("assistant", text))

    @property
    def text(self) -> str:
        """The text of the message, or of the delta.

        Empty if there is none.
        """
        if self.message is not None:
            return self.message.text
        return "" if self.delta is None else self.delta.content

    __repr__ = readable

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and compared(self) == compared(other)

    def __hash__(self) -> int:
        return hash(compared(self))

    def __str__(self) -> str:
        """Return one readable line: the agent, and its text, calls, actions or errors."""
        who = f"[{self.agent_name}]" if self.agent_name else ""
        what = " | ".join(_parts(self))
        return f"{who} {what}" if who and what else who or what

    @property
    def is_failure(self) -> bool:
        """True if the event ends its agent, rather than reporting a retry."""
        return self.error is not None and self.delta is None


class _ShownPath:
    """The descriptor of an event's run path, which may share its prefix with other paths.

    The reader gets a tuple.
    """

    def __init__(self, slot: Any) -> None:
        self._slot = slot

    def __get__(self, event: object, owner: type | None = None) -> Any:
        if event is None:
            return self
        path = self._slot.__get__(event, owner)
        return names_of(path) if type(path) is SharedPath else path

    def __set__(self, event: object, value: object) -> None:
        self._slot.__set__(event, value)


AgentEvent.run_path = _ShownPath(AgentEvent.run_path)  # type: ignore[assignment]  # the underlying slot


def _parts(event: AgentEvent) -> Iterator[str]:
    """Describe the event in words."""
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
        yield (
            f"cancelled: {error}" if isinstance(error, RunCancelled) else f"failed: {_named(error)}"
        )


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


def stamp(
    event: AgentEvent,
    *,
    agent_name: str,
    run_path: Path,
    action: Action | None,
    error: Exception | None,
    seq: int,
    run_id: str,
    invocation_id: str,
) -> AgentEvent:
    """Return the event with its place and time."""
    return AgentEvent(
        agent_name,
        run_path,  # type: ignore[arg-type]  # `_ShownPath` converts it to a tuple
        event.message,
        event.delta,
        event.custom_output,
        action,
        error,
        seq,
        time(),
        run_id,
        invocation_id,
        event.post,
    )
