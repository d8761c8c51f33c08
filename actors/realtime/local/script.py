"""What the local server is to say, and what is to go wrong.

Owns: replies, their parts, faults, and speech that the server's voice detection understands. It must never send anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from ....runtime.data.chat import new_id

__all__ = ["Call", "Fault", "Gate", "Part", "Reply", "Say", "Write", "silence", "speech", "spoken_text", "usual_usage", "words"]

_MARK: Final = b"\x7f\x7eSPEECH:"


@dataclass(frozen=True)
class Say:
    """Speech: so many milliseconds, and its transcript. `word_gate` is awaited before each word but the first."""

    text: str
    ms: int = 200
    chunk_ms: int = 100
    gate: asyncio.Event | None = None


@dataclass(frozen=True)
class Write:
    """Text."""

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
    """Go on when this is set. `reached` is set before the wait."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        """Let it go on."""
        self.event.set()


Part: TypeAlias = Say | Write | Call | Gate


@dataclass(frozen=True, init=False)
class Reply:
    """One response, part by part."""

    parts: tuple[Part, ...]
    status: Literal["completed", "failed", "incomplete"] = "completed"
    code: str | None = None
    usage: Mapping[str, Any] | None = None

    def __init__(self, *parts: Part, status: Any = "completed", code: str | None = None, usage: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "status", status)
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "usage", usage)


@dataclass
class Fault:
    """What happens at the `nth` message of that type, or of any: a close with a code, a reset, a message that is swallowed or doubled, or a function of yours.

    `side` says whose message it is; it is acted upon in place of handling or sending the message, with `after=True` behind it.
    """

    action: int | Literal["reset", "swallow", "double"] | str | Callable[[Any, dict[str, Any]], Awaitable[object]]  # noqa: PYI051 -- a text is sent as it is
    type: str | None = None
    side: Literal["client", "server"] = "client"
    nth: int = 1
    after: bool = False
    seen: int = 0
    done: bool = False

    def applies(self, side: str, kind: str) -> bool:
        """Whether this is the message."""
        if self.done or side != self.side or (self.type is not None and self.type != kind):
            return False
        self.seen += 1
        self.done = self.seen >= self.nth
        return self.done


def speech(text: str, ms: int = 200, *, sample_bytes: int = 2) -> bytes:
    """Audio in which the server's voice detection finds these words."""
    head = _MARK + text.encode() + b"\0"
    size = ms * (48 if sample_bytes == 2 else 8)  # noqa: PLR2004 -- 16 bits
    body = head + b"\1" * max(0, size - len(head))
    return body + b"\1" * (-len(body) % sample_bytes)


def silence(ms: int = 200, *, sample_bytes: int = 2) -> bytes:
    """Audio in which it finds the end of what was spoken."""
    return b"\0" * (ms * (48 if sample_bytes == 2 else 8))  # noqa: PLR2004 -- as above


def spoken_text(audio: bytes) -> str | None:
    """The words in a chunk of audio; empty for silence, None for speech that goes on."""
    if audio.startswith(_MARK):
        return audio[len(_MARK) :].split(b"\0", 1)[0].decode()
    return "" if not any(audio[:64]) else None


def usual_usage() -> dict[str, Any]:
    """What each response costs."""
    return {
        "total_tokens": 15,
        "input_tokens": 10,
        "output_tokens": 5,
        "input_token_details": {"text_tokens": 4, "audio_tokens": 6, "cached_tokens": 2},
        "output_token_details": {"text_tokens": 2, "audio_tokens": 3},
    }


def words(text: str) -> list[str]:
    """A text, word by word."""
    pieces = text.split(" ")
    return [piece + (" " if number < len(pieces) - 1 else "") for number, piece in enumerate(pieces)]
