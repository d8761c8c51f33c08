"""The items of a conversation: messages and calls, in the form of the Agents SDK.

Unknown fields are preserved.
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
    """Preserves unknown fields.

    The validators are built when the first session opens (`build_items`), because building them
    would take half of the package's import time.
    """


class InputText(_Open):
    """A text input."""

    type: Literal["input_text"] = "input_text"
    text: str | None = None


class InputAudio(_Open):
    """A speech input, with its `transcript` once that is known."""

    type: Literal["input_audio"] = "input_audio"
    audio: str | None = None
    transcript: str | None = None


class InputImage(_Open):
    """An image input."""

    type: Literal["input_image"] = "input_image"
    image_url: str | None = None
    detail: str | None = None


class AssistantText(_Open):
    """A text written by the model."""

    type: Literal["text"] = "text"
    text: str | None = None


class AssistantAudio(_Open):
    """Speech of the model, with the `transcript` received so far."""

    type: Literal["audio"] = "audio"
    audio: str | None = None
    transcript: str | None = None


class _Item(_Open):
    item_id: str
    previous_item_id: str | None = None


class SystemMessageItem(_Item):
    """A message of the program."""

    type: Literal["message"] = "message"
    role: Literal["system"] = "system"
    content: list[InputText]


class UserMessageItem(_Item):
    """A message of the user."""

    type: Literal["message"] = "message"
    role: Literal["user"] = "user"
    content: list[Annotated[InputText | InputAudio | InputImage, Field(discriminator="type")]]


class AssistantMessageItem(_Item):
    """A message of the model."""

    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"] | None = None
    content: list[Annotated[AssistantText | AssistantAudio, Field(discriminator="type")]]


RealtimeMessageItem: TypeAlias = Annotated[
    SystemMessageItem | UserMessageItem | AssistantMessageItem, Field(discriminator="role")
]
"""A message of any role."""


class RealtimeToolCallItem(_Item):
    """A call of a tool, with its output once that was sent."""

    call_id: str | None
    type: Literal["function_call"] = "function_call"
    status: Literal["in_progress", "completed"]
    arguments: str
    name: str
    output: str | None = None


RealtimeItem: TypeAlias = RealtimeMessageItem | RealtimeToolCallItem
"""One item of a conversation."""


class RealtimeResponse(BaseModel, defer_build=True):
    """One response of a model."""

    id: str
    output: list[RealtimeMessageItem]


def text_of_item(item: SystemMessageItem | UserMessageItem | AssistantMessageItem) -> str:
    """Return the text of an item: its texts, and the transcripts of its speech."""
    pieces: list[str] = []
    for part in item.content:
        text = (
            part.transcript
            if isinstance(part, InputAudio | AssistantAudio)
            else getattr(part, "text", None)
        )
        if text:
            pieces.append(text)
    return " ".join(pieces)


def build_items() -> None:
    """Build the validators of the items, unless they are built.

    So the first item does not wait for them.
    """
    for kind in (SystemMessageItem, UserMessageItem, AssistantMessageItem, RealtimeToolCallItem):
        kind.model_rebuild()
