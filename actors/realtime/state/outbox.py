"""What waits to be written to the connection.

Owns: two lanes: input audio, with its commits, and all else, which overtakes it; the bound of the audio; and who waits for room. It must never write itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from ..audio_formats import PCM16, AudioFormat
from ..model_inputs import RealtimeModelSendAudio, RealtimeModelSendEvent

__all__ = ["Entry", "Outbox"]

_MOST_ENTRIES: Final = 10_000


class Entry(NamedTuple):
    """Something to be written, and what is called when it was."""

    event: RealtimeModelSendEvent
    sent: Callable[[], object] | None = None


class Outbox:
    """One session's way out. `send_nowait` may be called from any thread; all else on the loop."""

    def __init__(self, most_ms: int, overflow: Literal["block", "drop_oldest"]) -> None:
        self.format: AudioFormat = PCM16
        self.overflow = overflow
        self.dropped_ms = 0.0
        self._most_ms = most_ms
        self._control: deque[Entry] = deque()
        self._audio: deque[RealtimeModelSendAudio] = deque()
        self._size = 0  # of the audio, in bytes; guarded
        self._lock = threading.Lock()
        self._commits = 0
        self._ready = asyncio.Event()
        self._room: deque[asyncio.Future[None]] = deque()
        self._open = False

    @property
    def has_commit(self) -> bool:
        """Whether the end of a turn waits behind its audio."""
        return self._commits > 0

    @property
    def is_open(self) -> bool:
        return self._open

    def resume(self) -> None:
        """There is a connection that takes everything."""
        self._open = True
        self._ready.set()

    def hold(self) -> None:
        """There is none. Audio waits, the oldest goes; all else is void, and is made anew by whose it is."""
        self._open = False
        self._control.clear()

    def put(self, event: RealtimeModelSendEvent, sent: Callable[[], object] | None = None) -> None:
        """Write this before all audio that waits."""
        self._control.append(Entry(event, sent))
        self._ready.set()

    def has_room(self, size: int) -> bool:
        """Whether audio of that size fits; one chunk always does where nothing waits."""
        with self._lock:
            return not self._size or self.format.ms(self._size + size) <= self._most_ms

    def reserve(self, size: int) -> bool:
        """Take room for audio. From any thread."""
        with self._lock:
            if self._size and self.format.ms(self._size + size) > self._most_ms:
                return False
            self._size += size
            return True

    def put_audio(self, audio: bytes, *, commit: bool) -> None:
        """Write audio for which room was taken."""
        self._audio.append(RealtimeModelSendAudio(audio, commit))
        self._commits += commit
        self._ready.set()

    def make_room(self, size: int) -> None:
        """Drop the oldest, until audio of that size fits."""
        while self._audio and not self.has_room(size):
            oldest = self._audio.popleft()
            if oldest.commit:
                self._audio.appendleft(oldest)  # the end of a turn is no audio
                return
            self._release(len(oldest.audio))
            self.dropped_ms += self.format.ms(len(oldest.audio))

    async def room(self) -> None:
        """Wait until something was written. In the order in which it was asked for."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(waiter)
        await waiter

    @property
    def has_waiters(self) -> bool:
        return any(not one.done() for one in self._room)

    def _release(self, size: int) -> None:
        with self._lock:
            self._size -= size

    def wake_senders(self) -> None:
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)

    async def next(self) -> Entry:
        """What is to be written now."""
        while True:
            if self._open and self._control:
                return self._control.popleft()
            if self._open and self._audio:
                event = self._audio.popleft()
                self._commits -= event.commit
                return Entry(event, partial(self._written, len(event.audio)))
            self._ready.clear()
            await self._ready.wait()

    def _written(self, size: int) -> None:
        self._release(size)
        self.wake_senders()
