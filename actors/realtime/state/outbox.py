"""The messages that wait to be sent over the connection.

There are two lanes: input audio with its commits, and all other messages, which overtake the audio.
The amount of audio is limited, and senders wait for space.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, Literal, NamedTuple

from ....runtime.errors import ModelError
from ..audio_formats import PCM16, AudioFormat
from ..model_inputs import RealtimeModelSendAudio, RealtimeModelSendEvent

__all__ = ["Entry", "Outbox"]

_MOST_ENTRIES: Final = 1_000


class Entry(NamedTuple):
    """A message to send, and a function to call once it was sent."""

    event: RealtimeModelSendEvent
    sent: Callable[[], object] | None = None


class Outbox:
    """The output of one session.

    `reserve` may be called from any thread, other methods on the loop.
    """

    def __init__(self, most_ms: int, overflow: Literal["block", "drop_oldest"]) -> None:
        self.format: AudioFormat = PCM16
        self.overflow = overflow
        self.dropped_ms = 0.0
        self._most_ms = most_ms
        self._control: deque[Entry] = deque()
        self._audio: deque[RealtimeModelSendAudio] = deque()
        self._size = 0  # audio size in bytes; guarded by the lock
        self._lock = threading.Lock()
        self._commits = 0
        self._ready = asyncio.Event()
        self._room: list[asyncio.Future[None]] = []
        self._open = False

    @property
    def has_commit(self) -> bool:
        """Whether a commit waits after its audio."""
        return self._commits > 0

    @property
    def is_open(self) -> bool:
        return self._open

    def resume(self) -> None:
        """Start sending, because there is a connection."""
        self._open = True
        self._ready.set()

    def hold(self) -> None:
        """Stop sending, because there is no connection.

        Audio waits, and the oldest is dropped. Other messages are discarded, and their senders make
        them again.
        """
        self._open = False
        self._control.clear()

    def put(self, event: RealtimeModelSendEvent, sent: Callable[[], object] | None = None) -> None:
        """Send this before all waiting audio."""
        self._control.append(Entry(event, sent))
        self._ready.set()

    def put_from_program(self, event: RealtimeModelSendEvent) -> None:
        """Send an event of the program, if the number of waiting messages is below the limit."""
        if len(self._control) >= _MOST_ENTRIES:
            msg = (
                f"the event was not sent, because {len(self._control):,} events already wait for "
                "the connection. Send it again after `connection_status` is 'connected'."
            )
            raise ModelError(msg, kind="connection", retryable=True)
        self.put(event)

    def has_room(self, size: int) -> bool:
        """Return whether audio of that size fits. One chunk always fits into an empty lane."""
        with self._lock:
            return not self._size or self.format.ms(self._size + size) <= self._most_ms

    def reserve(self, size: int) -> bool:
        """Reserve space for audio. Any thread may call this."""
        with self._lock:
            if self._size and self.format.ms(self._size + size) > self._most_ms:
                return False
            self._size += size
            return True

    def put_audio(self, audio: bytes, *, commit: bool) -> None:
        """Send audio for which space was reserved."""
        self._audio.append(RealtimeModelSendAudio(audio, commit))
        self._commits += commit
        self._ready.set()

    def make_room(self, size: int) -> None:
        """Drop the oldest audio until that size fits."""
        while self._audio and not self.has_room(size):
            oldest = self._audio.popleft()
            if oldest.commit:
                self._audio.appendleft(oldest)  # a commit is not dropped
                return
            self._release(len(oldest.audio))
            self.dropped_ms += self.format.ms(len(oldest.audio))

    async def room(self) -> None:
        """Wait until something was sent. Waiters are served in order."""
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
            waiter = self._room.pop(0)
            if not waiter.done():
                waiter.set_result(None)

    async def next(self) -> Entry:
        """Wait for the next message to send."""
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
