"""Actions of an agent for Agent2Agent: each is the value of a `CustomAction`, in an event that it
yields.

    yield AgentEvent.of(action=CustomAction(ArtifactUpdate("report", ["the text"])))

For any other consumer, such an event is ordinary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...codec.packing import register_type
from ...errors import UsageError
from .message import A2AMessage, MessageLike, as_message
from .parts import A2APart, PartsLike, as_parts

__all__ = ["A2AAction", "ArtifactUpdate", "AuthRequired", "Reject", "Reply", "Status"]


@register_type(name="a2a.Reply")
@dataclass(frozen=True, slots=True, init=False)
class Reply:
    """The answer is this message alone: the client gets no task.

    It must be the agent's first output.
    """

    message: A2AMessage

    def __init__(self, message: MessageLike) -> None:
        object.__setattr__(self, "message", as_message(message, "agent"))


@register_type(name="a2a.Reject")
@dataclass(frozen=True, slots=True)
class Reject:
    """The agent refuses: the task is REJECTED. The client is shown the reason."""

    reason: str = ""

    def __post_init__(self) -> None:
        _check_text("Reject", "reason", self.reason)


@register_type(name="a2a.ArtifactUpdate")
@dataclass(frozen=True, slots=True, init=False)
class ArtifactUpdate:
    """An artifact of that name, or a chunk of it.

    With `append`, its parts follow the existing ones; `last`: no more follow.
    """

    name: str
    parts: tuple[A2APart, ...]
    append: bool = False
    last: bool = True

    def __init__(
        self,
        name: str,
        parts: PartsLike,
        append: bool = False,  # noqa: FBT001, FBT002 -- the public contract
        last: bool = True,  # noqa: FBT001, FBT002 -- the public contract
    ) -> None:
        _check_text("ArtifactUpdate", "name", name)
        if not name:
            raise UsageError(
                "ArtifactUpdate: name must not be empty, because it identifies the chunks of one "
                "artifact. Pass name=."
            )
        for field, value in (
            ("name", name),
            ("parts", as_parts(parts)),
            ("append", append),
            ("last", last),
        ):
            object.__setattr__(self, field, value)


@register_type(name="a2a.Status")
@dataclass(frozen=True, slots=True)
class Status:
    """The task is WORKING, and the client is shown this text."""

    text: str = ""

    def __post_init__(self) -> None:
        _check_text("Status", "text", self.text)


@register_type(name="a2a.AuthRequired")
@dataclass(frozen=True, slots=True)
class AuthRequired:
    """The task waits for credentials: AUTH_REQUIRED.

    Use it as the `info` of an interrupt, or as the value of a `CustomAction` before one.
    """

    info: object = None


A2AAction: TypeAlias = Reply | Reject | ArtifactUpdate | Status | AuthRequired


def _check_text(kind: str, field: str, value: object) -> None:
    if not isinstance(value, str):
        msg = f"{kind}: {field} must be a string, got {value!r}."
        raise UsageError(msg)
