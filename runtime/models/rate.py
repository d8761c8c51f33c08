"""How many calls may be under way at once and in a minute: the accounts behind `LimitedModel`.

Owns: the buckets, the slots and the queue. All of it is guarded by one lock that is never held while waiting, so callers on any number of loops and threads may
share it. It must never know what a call is: only what it costs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from ..clock import HERE, Clock

__all__ = ["Bucket", "RateLimiter"]


class Bucket:
    """What may be spent: full at first, holding what one minute gives, and filled at an even rate. It may be overdrawn, and then has to fill up first."""

    __slots__ = ("_instant", "_level", "capacity")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = float(per_minute)
        self._level = self.capacity
        self._instant = now

    def delay(self, cost: float, now: float) -> float:
        """Seconds until `cost` may be spent. What costs more than a full bucket needs a full one."""
        self._level = min(self.capacity, self._level + max(0.0, now - self._instant) * self.capacity / 60)
        self._instant = now
        missing = min(cost, self.capacity) - self._level
        # Filling adds up in floats: what is missing by less than a billionth is there.
        return missing * 60 / self.capacity if missing > 1e-9 * self.capacity else 0.0

    def spend(self, cost: float) -> None:
        """Take `cost`, or give back if it is negative."""
        self._level = min(self.capacity, self._level - cost)


class _Waiter:
    """One caller in the queue. `wake` may be called from any thread, any number of times, also after its loop has ended."""

    __slots__ = ("_future", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._future = self._loop.create_future()

    def arm(self) -> asyncio.Future[None]:
        if self._future.done():
            self._future = self._loop.create_future()
        return self._future

    def wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:  # the loop has been closed, and the caller that waited there is gone
            return

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


class RateLimiter:
    """First come, first served: a request that needs more than there is holds up those behind, so none waits for ever."""

    def __init__(self, requests: float | None, tokens: float | None, slots: int | None, clock: Clock | None) -> None:
        self._clock = HERE if clock is None else clock
        now = self._clock.monotonic()
        self._requests = None if requests is None else Bucket(requests, now)
        self._tokens = None if tokens is None else Bucket(tokens, now)
        self._slots = slots
        self._active = 0
        self._queue: deque[_Waiter] = deque()
        self._lock = threading.Lock()

    @property
    def active(self) -> int:
        """How many calls hold a place."""
        return self._active

    @property
    def waiting(self) -> int:
        """How many callers wait for one."""
        return len(self._queue)

    async def acquire(self, tokens: float) -> None:
        """Wait for a place. A caller that is cancelled while waiting leaves the queue, and takes nothing with it."""
        with self._lock:
            if not self._queue and self._delay(tokens) == 0.0:
                self._take(tokens)
                return
            waiter = _Waiter()
            self._queue.append(waiter)
        try:
            while True:
                with self._lock:
                    delay = self._delay(tokens) if self._queue[0] is waiter else None
                    if delay == 0.0:
                        self._take(tokens)
                        return
                    future = waiter.arm()
                timer = None if delay is None else self._clock.call_later(delay, waiter.wake)
                try:
                    await future
                finally:
                    if timer is not None:
                        timer.cancel()
        finally:
            with self._lock:
                self._queue.remove(waiter)
                self._wake_first()

    def release(self, tokens: float) -> None:
        """Give the place back, and settle the account: `tokens` is what the call has cost beyond what was reckoned, or less if negative."""
        with self._lock:
            self._active -= 1
            if self._tokens is not None:
                self._tokens.spend(tokens)
            self._wake_first()

    def _delay(self, tokens: float) -> float | None:
        """Seconds until the first in the queue may go on; None: not before another request gives a place back."""
        if self._slots is not None and self._active >= self._slots:
            return None
        now = self._clock.monotonic()
        by_requests = 0.0 if self._requests is None else self._requests.delay(1, now)
        by_tokens = 0.0 if self._tokens is None else self._tokens.delay(tokens, now)
        return max(by_requests, by_tokens)

    def _take(self, tokens: float) -> None:
        self._active += 1
        if self._requests is not None:
            self._requests.spend(1)
        if self._tokens is not None:
            self._tokens.spend(tokens)

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].wake()
