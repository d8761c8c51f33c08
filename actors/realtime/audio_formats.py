"""Audio formats, in every spelling that programs and servers use.

`AudioFormat` converts between bytes and milliseconds. Audio itself is not converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ...runtime.errors import UsageError

__all__ = [
    "G711_ALAW",
    "G711_ULAW",
    "PCM16",
    "AudioFormat",
    "as_audio_format",
    "to_realtime_audio_format",
]

_PCM_RATE: Final = 24_000


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """One format: its name in the protocol, its sample rate and its sample size."""

    type: str
    rate: int
    sample_bytes: int

    def ms(self, size: int) -> float:
        """Return the duration of that many bytes in milliseconds."""
        return size * 1000 / (self.rate * self.sample_bytes)

    def size(self, ms: float) -> int:
        """Return the number of bytes in at most `ms` milliseconds of audio, in whole samples."""
        return int(ms * self.rate / 1000) * self.sample_bytes

    def wire(self) -> dict[str, object]:
        """Return the format as the protocol spells it."""
        return (
            {"type": self.type, "rate": self.rate} if self.sample_bytes > 1 else {"type": self.type}
        )

    def check(self, audio: bytes) -> None:
        """Raise if these bytes cannot be a chunk of this format."""
        if not isinstance(audio, bytes | bytearray | memoryview):
            msg = (
                f"audio must be bytes, got {type(audio).__name__}. Convert samples first, for "
                "example with array.tobytes()."
            )
            raise UsageError(msg)
        if len(audio) % self.sample_bytes:
            msg = (
                f"a chunk of {len(audio)} bytes ends in the middle of a sample: {self.type} has "
                f"{self.sample_bytes} bytes for each. Send whole samples."
            )
            raise UsageError(msg)


PCM16: Final = AudioFormat("audio/pcm", _PCM_RATE, 2)
G711_ULAW: Final = AudioFormat("audio/pcmu", 8_000, 1)
G711_ALAW: Final = AudioFormat("audio/pcma", 8_000, 1)

_SPELLINGS: Final = {
    **dict.fromkeys(("pcm16", "audio/pcm", "pcm"), PCM16),
    **dict.fromkeys(("g711_ulaw", "audio/pcmu", "pcmu"), G711_ULAW),
    **dict.fromkeys(("g711_alaw", "audio/pcma", "pcma"), G711_ALAW),
}


def as_audio_format(given: object) -> AudioFormat:
    """Return the format for a name, a mapping with `type` and `rate`, or an object of `openai`."""
    if isinstance(given, AudioFormat):
        return given
    name, rate = given, None
    if isinstance(given, Mapping):
        name, rate = given.get("type"), given.get("rate")
    elif not isinstance(given, str):
        name, rate = getattr(given, "type", None), getattr(given, "rate", None)
    found = _SPELLINGS.get(name) if isinstance(name, str) else None
    if found is None:
        msg = f"an audio format must be 'pcm16', 'g711_ulaw' or 'g711_alaw', got {given!r}."
        raise UsageError(msg)
    if rate is not None and rate != found.rate:
        msg = (
            f"{given!r}: {found.type} has {found.rate} samples per second here. Resample the "
            "audio to that rate first."
        )
        raise UsageError(msg)
    return found


def to_realtime_audio_format(input_audio_format: object) -> dict[str, object] | None:
    """Return a format as the protocol spells it. The function has the Agents SDK's name."""
    return None if input_audio_format is None else as_audio_format(input_audio_format).wire()
