"""The script of the local server: replies, faults, and audio for its voice detection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ....runtime.data.chat import new_id

__all__ = [
    "Call",
    "Fault",
    "Gate",
    "Part",
    "Reply",
    "Say",
    "Write",
    "silence",
    "speech",
    "spoken_text",
    "usual_usage",
    "words",
]

_MARK: Final = b"\x7f\x7eSPEECH:"


@dataclass(frozen=True)
class Say:
    """Speech: a transcript and its length in milliseconds.

    `gate` is awaited before each chunk except the first.
    """

    text: str
    ms: int = 200
    chunk_ms: int = 100
    gate: asyncio.Event | None = None


@dataclass(frozen=True)
class Write:
    """A text."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: str = "{}"
    call_id: str = field(default_factory=lambda: f"call_{new_id()}")
    item_id: str | None = None


@dataclass(frozen=True)
class Gate:
    """Waits until the event is set. `reached` is set before the wait."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        """Let the reply continue."""
        self.event.set()


Part: TypeAlias = Say | Write | Call | Gate


@dataclass(frozen=True, init=False)
class Reply:
    """One response, as a list of parts."""

    parts: tuple[Part, ...]
    status: Literal["completed", "failed", "incomplete"] = "completed"
    code: str | None = None
    usage: Mapping[str, Any] | None = None

    def __init__(
        self,
        *parts: Part,
        status: Any = "completed",
        code: str | None = None,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "usage", usage)


@dataclass
class Fault:
    """A fault at the `nth` message of that type, or of any type.

    The action is a close code, a reset, a swallowed or duplicated message, or a function. `side` is
    the sender of the message. The action replaces the handling or sending of the message; with
    `after=True` it follows it.
    """

    action: (
        int
        | Literal["reset", "swallow", "double"]  # noqa: PYI051 -- any other string is sent verbatim
        | str
        | Callable[[Any, dict[str, Any]], Awaitable[object]]
    )
    type: str | None = None
    side: Literal["client", "server"] = "client"
    nth: int = 1
    after: bool = False
    seen: int = 0
    done: bool = False

    def applies(self, side: str, kind: str) -> bool:
        """Return whether the fault applies to this message."""
        if self.done or side != self.side or (self.type is not None and self.type != kind):
            return False
        self.seen += 1
        self.done = self.seen >= self.nth
        return self.done


def speech(text: str, ms: int = 200, *, sample_bytes: int = 2) -> bytes:
    """Return audio in which the server's voice detection finds these words."""
    head = _MARK + text.encode() + b"\0"
    size = ms * (48 if sample_bytes == 2 else 8)  # noqa: PLR2004 -- 16 bits
    body = head + b"\1" * max(0, size - len(head))
    return body + b"\1" * (-len(body) % sample_bytes)


def silence(ms: int = 200, *, sample_bytes: int = 2) -> bytes:
    """Return audio in which the voice detection finds the end of speech."""
    return b"\0" * (ms * (48 if sample_bytes == 2 else 8))  # noqa: PLR2004 -- as above


def spoken_text(audio: bytes) -> str | None:
    """Return the words in a chunk of audio; empty for silence, None for continued speech."""
    if audio.startswith(_MARK):
        return audio[len(_MARK) :].split(b"\0", 1)[0].decode()
    return "" if not any(audio[:64]) else None


def usual_usage() -> dict[str, Any]:
    """Return the default usage of a response."""
    return {
        "total_tokens": 15,
        "input_tokens": 10,
        "output_tokens": 5,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 6, "cached_tokens": 2},
        "output_token_details": {"text_tokens": 2, "audio_tokens": 3},
    }


def words(text: str) -> list[str]:
    """Split a text into words."""
    pieces = text.split(" ")
    return [
        piece + (" " if number < len(pieces) - 1 else "") for number, piece in enumerate(pieces)
    ]
