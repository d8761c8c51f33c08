"""What a conversation consists of: messages and calls, as the Agents SDK has them.

Owns: these values. Unknown fields are kept. It must never know in which order they stand: that is the conversation's.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, Field

__all__ = [
    "AssistantAudio",
    "AssistantMessageItem",
    "AssistantText",
    "InputAudio",
    "InputImage",
    "InputText",
    "RealtimeItem",
    "RealtimeMessageItem",
    "RealtimeResponse",
    "RealtimeToolCallItem",
    "SystemMessageItem",
    "UserMessageItem",
    "build_items",
    "text_of_item",
]


class _Open(BaseModel, extra="allow", defer_build=True):
    """Keeps fields that it does not know. What checks them is built when the first session opens (`build_items`): it is half of the package's import."""


class InputText(_Open):
    """Text that was put in."""

    type: Literal["input_text"] = "input_text"
    text: str | None = None


class InputAudio(_Open):
    """Speech that was put in; `transcript` when it is known."""

    type: Literal["input_audio"] = "input_audio"
    audio: str | None = None
    transcript: str | None = None


class InputImage(_Open):
    """A picture that was put in."""

    type: Literal["input_image"] = "input_image"
    image_url: str | None = None
    detail: str | None = None


class AssistantText(_Open):
    """Text that the model wrote."""

    type: Literal["text"] = "text"
    text: str | None = None


class AssistantAudio(_Open):
    """Speech of the model's; `transcript` as far as it is known."""

    type: Literal["audio"] = "audio"
    audio: str | None = None
    transcript: str | None = None


class _Item(_Open):
    item_id: str
    previous_item_id: str | None = None


class SystemMessageItem(_Item):
    """A message of the program's."""

    type: Literal["message"] = "message"
    role: Literal["system"] = "system"
    content: list[InputText]


class UserMessageItem(_Item):
    """A message of the user's."""

    type: Literal["message"] = "message"
    role: Literal["user"] = "user"
    content: list[Annotated[InputText | InputAudio | InputImage, Field(discriminator="type")]]


class AssistantMessageItem(_Item):
    """A message of the model's."""

    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"] | None = None
    content: list[Annotated[AssistantText | AssistantAudio, Field(discriminator="type")]]


RealtimeMessageItem: TypeAlias = Annotated[SystemMessageItem | UserMessageItem | AssistantMessageItem, Field(discriminator="role")]
"""A message of whomever."""


class RealtimeToolCallItem(_Item):
    """A call of a tool, with its output when that was sent."""

    call_id: str | None
    type: Literal["function_call"] = "function_call"
    status: Literal["in_progress", "completed"]
    arguments: str
    name: str
    output: str | None = None


RealtimeItem: TypeAlias = RealtimeMessageItem | RealtimeToolCallItem
"""One entry of a conversation."""


class RealtimeResponse(BaseModel, defer_build=True):
    """What a model has said in one go."""

    id: str
    output: list[RealtimeMessageItem]


def text_of_item(item: SystemMessageItem | UserMessageItem | AssistantMessageItem) -> str:
    """Its text: what was written, and the transcript of what was spoken."""
    pieces: list[str] = []
    for part in item.content:
        text = part.transcript if isinstance(part, InputAudio | AssistantAudio) else getattr(part, "text", None)
        if text:
            pieces.append(text)
    return " ".join(pieces)


def build_items() -> None:
    """Build what checks the items, unless it is there: before the first one comes, which is not to wait for it."""
    for kind in (SystemMessageItem, UserMessageItem, AssistantMessageItem, RealtimeToolCallItem):
        kind.model_rebuild()
