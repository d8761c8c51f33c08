"""Messages between users, models and tools: their parts, tool calls and usage.

All values are immutable and comparable, and `codec/` can write them. They contain a provider's
reply, never how it was reached.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar, Final, Literal, Self, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ..errors import UsageError
from .readable import readable
from .value import Value, compared
from .well_formed import well_formed

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
    "well_formed_delta",
]

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

_ROLES = frozenset(("system", "user", "assistant", "tool"))


_BLOCK: Final = 128
"""The number of ids generated at once: one system call for each would take four times as long."""
_DIGITS: Final = 24

_drawn: list[str] = []  # unused ids


def new_id() -> str:
    """Return a unique id: 96 bits from the operating system, independent of any random seed.

    A forked process generates its own.
    """
    try:
        return _drawn.pop()
    except IndexError:
        return _draw()


def _draw() -> str:
    process = os.getpid()
    digits = os.urandom(_BLOCK * _DIGITS // 2).hex()
    first, *others = [digits[start : start + _DIGITS] for start in range(0, len(digits), _DIGITS)]
    _drawn.extend(others)
    # A signal handler has forked in the lines above, and both processes have these ids.
    if os.getpid() != process:
        _drawn.clear()
    return first


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


class TextPart(Value, frozen=True, gc=False):
    """A text."""

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is str and not self.text.isascii():
            force_setattr(self, "text", well_formed(self.text))


class _MediaPart(Value, frozen=True, gc=False):
    """Media at a `url` (also a `data:` URL), or included as `data` with its `media_type`."""

    url: str | None = None
    data: bytes | None = None
    media_type: str | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if (self.url is None) == (self.data is None):
            msg = f"{name}: pass either url= or data=, and not both."
            raise UsageError(msg)
        if self.data is not None and self.media_type is None:
            msg = f"{name}: data= needs media_type=, for example 'image/png'."
            raise UsageError(msg)


class ImagePart(_MediaPart, frozen=True):
    """An image, and how closely the model must examine it."""

    detail: Literal["auto", "low", "high"] | None = None


class AudioPart(_MediaPart, frozen=True):
    """A recording."""


class FilePart(_MediaPart, frozen=True):
    """A file, for example a PDF."""

    name: str | None = None


Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart


class ToolCall(Value, frozen=True, gc=False):
    """A tool call that the model requests.

    `arguments` is the JSON text exactly as the model wrote it.
    """

    id: str
    name: str
    arguments: str


class ToolCallDelta(Value, frozen=True, gc=False):
    """A part of a streaming tool call: `index` is the call's position in the message."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class Usage(Value, frozen=True, gc=False):
    """The usage of model calls. Adds with `+`."""

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
    """Slots for the encoded forms of a message, one for each API.

    They are not fields, so they are not compared, copied or stored.
    """

    __slots__ = ("_as_chat", "_as_responses")


class WrittenSlot:
    """The JSON of messages for one API, in their own slots.

    A message never changes, and neither does its JSON.
    """

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


class Message(Value, _Written, frozen=True, gc=False):
    """One message of a conversation.

    Messages with the same content are equal: the generated `id` is not compared.
    """

    NOT_COMPARED: ClassVar = ("id",)

    role: Role
    content: str | tuple[Part, ...] = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    reasoning: str | None = None
    usage: Usage | None = None
    refusal: str | None = None
    finish_reason: str | None = None
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        if self.role not in _ROLES:
            msg = (
                f"Message: role must be 'system', 'user', 'assistant' or 'tool', got {self.role!r}."
            )
            raise UsageError(msg)
        if not isinstance(self.content, str):
            _check_parts(self.content)
        elif not self.content.isascii():
            force_setattr(self, "content", well_formed(self.content))
        has_more = (
            self.tool_call_id is not None or self.reasoning is not None or self.refusal is not None
        )
        if (
            has_more
            and not f"{self.tool_call_id}{self.tool_name}{self.reasoning}{self.refusal}".isascii()
        ):
            _make_well_formed(self)
        if self.tool_calls and type(self.tool_calls) is tuple:
            for call in self.tool_calls:
                if (
                    type(call) is not ToolCall
                    or not f"{call.id}{call.name}{call.arguments}".isascii()
                ):
                    force_setattr(
                        self,
                        "tool_calls",
                        tuple([_well_formed_call(call) for call in self.tool_calls]),
                    )
                    break

    __repr__ = readable

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and compared(self) == compared(other)

    def __hash__(self) -> int:
        return hash(compared(self))

    @classmethod
    def system(cls, text: str) -> Self:
        return cls("system", text)

    @classmethod
    def user(cls, content: str | Part | tuple[Part | str, ...] | list[Part | str]) -> Self:
        """Create a user message: a text, or parts.

        Plain strings among the parts become `TextPart`s.
        """
        return cls("user", content if isinstance(content, str) else _as_parts(content))

    @classmethod
    def assistant(
        cls,
        text: str = "",
        tool_calls: tuple[ToolCall, ...] | list[ToolCall] = (),
        *,
        reasoning: str | None = None,
        usage: Usage | None = None,
    ) -> Self:
        return cls("assistant", text, tuple(tool_calls), reasoning=reasoning, usage=usage)

    @classmethod
    def tool(
        cls, content: str | tuple[Part, ...], call_id: str | None = None, name: str | None = None
    ) -> Self:
        """Create the result of a tool call."""
        return cls("tool", content, (), call_id, name)

    @property
    def text(self) -> str:
        """The content as text: the text parts, joined."""
        content = self.content
        return (
            content
            if isinstance(content, str)
            else "".join(part.text for part in content if isinstance(part, TextPart))
        )


class MessageDelta(Value, frozen=True, gc=False):
    """A part of a message that is still streaming."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallDelta, ...] = ()


def well_formed_delta(delta: MessageDelta) -> MessageDelta:
    """Replace lone surrogates in a delta, for display.

    A message is built from the original deltas, because a surrogate pair may span two of them.
    """
    if not delta.tool_calls and delta.content.isascii() and delta.reasoning.isascii():
        return delta
    content, reasoning = well_formed(delta.content), well_formed(delta.reasoning)
    calls = (
        tuple([_well_formed_part(call) for call in delta.tool_calls]) if delta.tool_calls else ()
    )
    return (
        delta
        if (content, reasoning, calls) == (delta.content, delta.reasoning, delta.tool_calls)
        else MessageDelta(content, reasoning, calls)
    )


def _well_formed_part(call: ToolCallDelta) -> ToolCallDelta:
    if call.arguments.isascii() and call.name.isascii() and call.id.isascii():
        return call
    return ToolCallDelta(
        call.index, well_formed(call.id), well_formed(call.name), well_formed(call.arguments)
    )


def _make_well_formed(message: Message) -> None:
    """Repair the text fields of a message, except its calls.

    Other types stay as they are: they are an error elsewhere.
    """
    for name in ("tool_call_id", "tool_name", "reasoning", "refusal"):
        text = getattr(message, name)
        if type(text) is str:
            force_setattr(message, name, well_formed(text))


def _well_formed_call(call: ToolCall) -> ToolCall:
    texts = (call.id, call.name, call.arguments) if type(call) is ToolCall else ()
    return (
        ToolCall(*map(well_formed, texts))
        if texts and all(type(text) is str for text in texts)
        else call
    )


def _as_parts(content: Part | tuple[Part | str, ...] | list[Part | str]) -> tuple[Part, ...]:
    if isinstance(content, Part):
        return (content,)
    return tuple(TextPart(part) if isinstance(part, str) else part for part in content)


def _check_parts(content: object) -> None:
    if not isinstance(content, tuple) or not all(isinstance(part, Part) for part in content):
        msg = (
            "Message: content must be a string or a tuple of parts (TextPart, ImagePart, "
            f"AudioPart, FilePart), got {content!r}."
        )
        raise UsageError(msg)
