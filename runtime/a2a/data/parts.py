"""The parts of messages and artifacts: text, data with a media type, a file by its bytes or its
address.

All values are representable in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ...codec.packing import register_type
from ...data import chat
from ...errors import UsageError

__all__ = [
    "A2APart",
    "DataPart",
    "FilePart",
    "Metadata",
    "PartLike",
    "PartsLike",
    "TextPart",
    "as_part",
    "as_parts",
]

Metadata: TypeAlias = Mapping[str, object]
"""Metadata of a message, part, artifact or task: JSON values."""


@register_type(name="a2a.TextPart")
@dataclass(frozen=True, slots=True)
class TextPart:
    """Text; `media_type` if it is not plain: `text/markdown`."""

    text: str
    media_type: str | None = None
    metadata: Metadata = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            msg = (
                f"TextPart: text must be a string, got {self.text!r}. Use DataPart for other data."
            )
            raise UsageError(msg)


@register_type(name="a2a.DataPart")
@dataclass(frozen=True, slots=True)
class DataPart:
    """Any JSON value.

    A number of more than 53 bits is refused when it is sent, because it would change. Send it as a
    string.
    """

    data: object
    media_type: str | None = None
    name: str | None = None
    metadata: Metadata = field(default_factory=dict)


@register_type(name="a2a.FilePart")
@dataclass(frozen=True, slots=True)
class FilePart:
    """A file: its bytes as `data`, or its `url`."""

    url: str | None = None
    data: bytes | None = None
    media_type: str | None = None
    name: str | None = None
    metadata: Metadata = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.url is None) == (self.data is None):
            msg = "FilePart: pass either url= or data=, and not both."
            raise UsageError(msg)
        if self.data is not None and not isinstance(self.data, bytes):
            msg = f"FilePart: data must be bytes, got a {type(self.data).__name__}."
            raise UsageError(msg)


A2APart: TypeAlias = TextPart | DataPart | FilePart
PartLike: TypeAlias = A2APart | chat.Part | str
"""A part, or something that converts to one: a string, or a part of a chat message."""
PartsLike: TypeAlias = PartLike | Iterable[PartLike]


def as_part(given: PartLike) -> A2APart:
    """Convert to a part."""
    match given:
        case TextPart() | DataPart() | FilePart():
            return given
        case str():
            return TextPart(given)
        case chat.TextPart(text):
            return TextPart(text)
        case chat.FilePart(url, data, media_type):
            return FilePart(url, data, media_type, given.name)
        case chat.ImagePart(url, data, media_type) | chat.AudioPart(url, data, media_type):
            return FilePart(url, data, media_type)
    msg = f"a part must be a string, TextPart, DataPart or FilePart, got {given!r}."
    raise UsageError(msg)


def as_parts(given: PartsLike) -> tuple[A2APart, ...]:
    """Convert one or several values to parts."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(as_part(one) for one in given)
    return (as_part(given),)
