"""Limits on concurrent calls and on calls and tokens per minute, for `LimitedModel`.

One lock guards the buckets, the slots and the queue. It is never held while waiting, so callers on
any number of loops and threads may share them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from ..clock import HERE, Clock

__all__ = ["Bucket", "RateLimiter"]


class Bucket:
    """A token bucket: full at first, with the capacity of one minute, and refilled at an even rate.

    It may be overdrawn, and must then refill first.
    """

    __slots__ = ("_instant", "_level", "capacity")

    def __init__(self, per_minute: float, now: float) -> None:
        self.capacity = float(per_minute)
        self._level = self.capacity
        self._instant = now

    def delay(self, cost: float, now: float) -> float:
        """Return the seconds until `cost` may be spent.

        A cost above the capacity needs a full bucket.
        """
        self._level = min(
            self.capacity, self._level + max(0.0, now - self._instant) * self.capacity / 60
        )
        self._instant = now
        missing = min(cost, self.capacity) - self._level
        # Floats accumulate rounding errors: a deficit below a billionth counts as none.
        return missing * 60 / self.capacity if missing > 1e-9 * self.capacity else 0.0

    def spend(self, cost: float) -> None:
        """Take `cost`; a negative one is a refund."""
        self._level = min(self.capacity, self._level - cost)


class _Waiter:
    """One caller in the queue.

    `wake` may be called from any thread, any number of times, even after its loop has ended.
    """

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
        except RuntimeError:  # the loop is closed, and the caller that waited there is gone
            return

    def _set(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


class RateLimiter:
    """A fair limiter, in which no request waits forever.

    A request that needs more than is available blocks those after it.
    """

    def __init__(
        self, requests: float | None, tokens: float | None, slots: int | None, clock: Clock | None
    ) -> None:
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
        """The number of calls that hold a slot."""
        return self._active

    @property
    def waiting(self) -> int:
        """The number of callers that wait for one."""
        return len(self._queue)

    async def acquire(self, tokens: float) -> None:
        """Wait for a slot.

        A caller that is cancelled while waiting leaves the queue without taking anything.
        """
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
        """Return the slot, and correct the estimate.

        `tokens` is the cost beyond the estimate, or below it if negative.
        """
        with self._lock:
            self._active -= 1
            if self._tokens is not None:
                self._tokens.spend(tokens)
            self._wake_first()

    def _delay(self, tokens: float) -> float | None:
        """Return the seconds until the first in the queue may continue.

        None: not before another request returns a slot.
        """
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
