"""What is said between users, models and tools: messages, their parts, tool calls and what they cost.

Owns: these values. All are frozen, slotted and comparable, and all can be written by `codec/`. They hold what a provider said, never how it was reached.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias

from ..errors import UsageError
from ..quick_init import maker, quick
from .readable import readable

__all__ = [
    "AudioPart",
    "FilePart",
    "ImagePart",
    "Message",
    "MessageDelta",
    "Part",
    "Role",
    "TextPart",
    "ToolCall",
    "ToolCallDelta",
    "Usage",
    "WrittenSlot",
    "new_id",
    "new_message",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

_ROLES = frozenset(("system", "user", "assistant", "tool"))


_BLOCK: Final = 128
"""How many ids are made at once: one call of the operating system for each would take four times as long."""
_DIGITS: Final = 24

_drawn: list[str] = []  # ids that nothing has yet


def new_id() -> str:
    """A name that nothing else has: 96 bits from the operating system, which no seed repeats. A forked process draws its own."""
    try:
        return _drawn.pop()
    except IndexError:
        return _draw()


def _draw() -> str:
    process = os.getpid()
    digits = os.urandom(_BLOCK * _DIGITS // 2).hex()
    first, *others = [digits[start : start + _DIGITS] for start in range(0, len(digits), _DIGITS)]
    _drawn.extend(others)
    if os.getpid() != process:  # a signal's handler has forked in the lines above, and both processes have these
        _drawn.clear()
    return first


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class _MediaPart:
    """Where the bytes are: at a `url` (a `data:` one, too), or here, as `data` with its `media_type`."""

    url: str | None = None
    data: bytes | None = None
    media_type: str | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if (self.url is None) == (self.data is None):
            msg = f"{name}: give either url= or data=, and not both."
            raise UsageError(msg)
        if self.data is not None and self.media_type is None:
            msg = f"{name}: data= needs media_type=, for example 'image/png'."
            raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class ImagePart(_MediaPart):
    """An image, and how closely the model is to look at it."""

    detail: Literal["auto", "low", "high"] | None = None


@dataclass(frozen=True, slots=True)
class AudioPart(_MediaPart):
    """A recording."""


@dataclass(frozen=True, slots=True)
class FilePart(_MediaPart):
    """A file, for example a PDF."""

    name: str | None = None


Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants called. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call that is still streaming: `index` says of which one of the message."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@quick
@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls have cost. Adds with `+`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
        )


class _Written:
    """Room for what a message is written as, once for each API: it is no field, so that it is neither compared, copied nor stored."""

    __slots__ = ("_as_chat", "_as_responses")


class WrittenSlot:
    """The JSON of messages for one API, in their own slots. A message never changes, and neither does what it is written as."""

    __slots__ = ("get", "put")

    get: Callable[[Message], bytes | None]
    put: Callable[[Message, bytes], None]

    def __init__(self, name: Literal["chat", "responses"]) -> None:
        slot = vars(_Written)[f"_as_{name}"]
        read = slot.__get__

        def get(message: Message) -> bytes | None:
            try:
                text: bytes = read(message)
            except AttributeError:
                return None
            return text

        self.get = get
        self.put = slot.__set__


@quick
@dataclass(frozen=True, slots=True, repr=False)
class Message(_Written):
    """One message of a conversation. Two are equal if they say the same: the `id`, which the framework makes, is not compared."""

    role: Role
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    reasoning: str | None = None
    usage: Usage | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    id: str = field(default_factory=new_id, compare=False)

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            msg = f"Message: role={self.role!r} is none of 'system', 'user', 'assistant' and 'tool'."
            raise UsageError(msg)
        if not isinstance(self.content, str):
            _check_parts(self.content)

    __repr__ = readable

    @classmethod
    def system(cls, text: str) -> Self:
        return cls("system", text)

    @classmethod
    def user(cls, content: str | Part | tuple[Part | str, ...] | list[Part | str]) -> Self:
        """What the user says: a text, or parts of which those that are plain texts become `TextPart`s."""
        return cls("user", content if isinstance(content, str) else _as_parts(content))

    @classmethod
    def assistant(
        cls, text: str = "", tool_calls: tuple[ToolCall, ...] | list[ToolCall] = (), *, reasoning: str | None = None, usage: Usage | None = None
    ) -> Self:
        return cls("assistant", text, tuple(tool_calls), reasoning=reasoning, usage=usage)

    @classmethod
    def tool(cls, content: str | tuple[Part, ...], call_id: str | None = None, name: str | None = None) -> Self:
        """The result of a tool call."""
        return cls("tool", content, (), call_id, name)

    @property
    def text(self) -> str:
        """The content as text: of several parts, those that are text, joined."""
        content = self.content
        return content if isinstance(content, str) else "".join(part.text for part in content if isinstance(part, TextPart))


new_message: Final = maker(Message)
"""As `Message(...)`, for this package's own code."""


@quick
@dataclass(frozen=True, slots=True)
class MessageDelta:
    """A piece of a message that is still streaming."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()


def _as_parts(content: Part | tuple[Part | str, ...] | list[Part | str]) -> tuple[Part, ...]:
    if isinstance(content, Part):
        return (content,)
    return tuple(TextPart(part) if isinstance(part, str) else part for part in content)


def _check_parts(content: object) -> None:
    if not isinstance(content, tuple) or not all(isinstance(part, Part) for part in content):
        msg = f"Message: content={content!r} is neither text nor a tuple of parts (TextPart, ImagePart, AudioPart, FilePart)."
        raise UsageError(msg)
