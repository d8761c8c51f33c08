"""One message between a client and an agent.

The ids of the message, its task and its context are strings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias

from ...codec.packing import register_type
from ...data.chat import Message, new_id
from ...errors import UsageError
from .parts import A2APart, Metadata, PartsLike, TextPart, as_parts

__all__ = [
    "A2AMessage",
    "A2ARole",
    "MessageLike",
    "RemoteInterrupt",
    "RemoteQuestion",
    "as_message",
]

A2ARole: TypeAlias = Literal["user", "agent"]


@register_type(name="a2a.Message")
@dataclass(frozen=True, slots=True)
class A2AMessage:
    """A message of a client (`user`), or of an agent (`agent`)."""

    role: A2ARole
    parts: tuple[A2APart, ...] = ()
    task_id: str | None = None
    context_id: str | None = None
    metadata: Metadata = field(default_factory=dict)
    reference_task_ids: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    message_id: str = field(default_factory=new_id, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ("user", "agent"):
            msg = f"A2AMessage: role must be 'user' or 'agent', got {self.role!r}."
            raise UsageError(msg)

    @classmethod
    def user(
        cls, parts: PartsLike, *, task_id: str | None = None, context_id: str | None = None
    ) -> Self:
        """Make a client's message from a string, a part, or several."""
        return cls("user", as_parts(parts), task_id, context_id)

    @classmethod
    def agent(
        cls, parts: PartsLike, *, task_id: str | None = None, context_id: str | None = None
    ) -> Self:
        """Make an agent's message from a string, a part, or several."""
        return cls("agent", as_parts(parts), task_id, context_id)

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


MessageLike: TypeAlias = A2AMessage | Message | str
"""A message, or something that converts to one: a string, or a chat message."""


def as_message(given: MessageLike, role: A2ARole) -> A2AMessage:
    """Convert to a message.

    `role` is the sender, if the value does not specify one.
    """
    if isinstance(given, A2AMessage):
        return given
    if isinstance(given, str):
        return A2AMessage(role, (TextPart(given),))
    if isinstance(given, Message):
        return A2AMessage(role, as_parts(given.content), message_id=given.id)
    msg = f"a message must be a string, a Message or an A2AMessage, got {given!r}."
    raise UsageError(msg)


@register_type(name="a2a.RemoteQuestion")
@dataclass(frozen=True, slots=True)
class RemoteQuestion:
    """One question. Its `id` names it in an answer: `{id: answer}`."""

    id: str
    info: object = None
    options: object = None


@register_type(name="a2a.RemoteInterrupt")
@dataclass(frozen=True, slots=True)
class RemoteInterrupt:
    """A remote task waits for an answer.

    `text` is the question for people; `questions` can be answered by their ids.
    """

    text: str
    questions: tuple[RemoteQuestion, ...] = ()
    task_id: str = ""
    context_id: str = ""
    message: A2AMessage | None = None

    def __str__(self) -> str:
        return self.text
