"""Reads a stream in a separate task.

The reader may wait for a while, do something else and wait again, without disturbing the stream.
When it has enough, the stream is ended while it waits for the network, so that all its layers are
closed in order. The task lives until `aclose()` has returned, and reads at most one item ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Generic, TypeVar

from ...clock import Deadline

__all__ = ["Pump"]

T = TypeVar("T")

_MOST_DISCARDED: Final = 1_000


class Pump(Generic[T]):
    """One stream that is being read. For one reader at a time."""

    __slots__ = ("_closing", "_error", "_items", "_queue", "_task")

    def __init__(self, items: AsyncIterator[T]) -> None:
        self._items = items
        self._queue: asyncio.Queue[tuple[T] | None] = asyncio.Queue(1)
        self._error: Exception | None = None
        self._closing = False
        self._task = asyncio.create_task(self._read(), name="a2a stream")

    async def _read(self) -> None:
        discarded = 0
        try:
            async for item in self._items:
                await self._hand((item,))
                discarded += self._closing
                if discarded > _MOST_DISCARDED:
                    break  # a stream that never waits cannot be cancelled
        except asyncio.CancelledError:
            if not self._closing:
                raise
        except Exception as error:  # noqa: BLE001 -- the reader raises it
            self._error = error
        if not self._closing:
            await self._hand(None)

    async def _hand(self, item: tuple[T] | None) -> None:
        """Wait until the reader has room.

        If the pump is closed here, the stream is asked for its next item, and ended while it waits
        for that.
        """
        if self._closing:
            return
        try:
            await self._queue.put(item)
        except asyncio.CancelledError:
            if not self._closing:
                raise
            task = asyncio.current_task()
            if task is not None and item is not None:
                task.cancel()  # at its next wait, which is within the stream

    async def next(self, seconds: float | None = None) -> T | None:
        """Return the next item; None at the end.

        Raises the stream's error; `TimeoutError` if nothing arrived in that time: then the next
        call continues to wait.
        """
        if seconds is None:
            found = await self._queue.get()
        else:
            async with Deadline(seconds):
                found = await self._queue.get()
        if found is not None:
            return found[0]
        self._queue.put_nowait(None)  # later calls see the end, too
        if self._error is not None:
            raise self._error
        return None

    async def aclose(self) -> None:
        """End the stream, wherever it is. When this returns, nothing of it is left."""
        self._closing = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
