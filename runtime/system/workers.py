"""The worker threads of a system: where single calls that block are made.

Owns: the pool, which is made with the first call, and how much of it is busy. It never has more threads than it was told, but for those that are stuck
in calls which nobody waits for any more: they cannot be ended, and must not keep others from their turn.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, ParamSpec, TypeVar

from ..log import logger

__all__ = ["Workers"]

P = ParamSpec("P")
T = TypeVar("T")

# Threads that may be stuck before the pool grows no more: whatever they wait for, it does not come.
_MOST_STUCK: Final = 200


class Workers:
    """A pool that is there when it is needed."""

    __slots__ = ("_busy", "_most", "_name", "_pool", "_stuck")

    def __init__(self, name: str, most: int | None) -> None:
        self._name = name
        self._most = most
        self._pool: ThreadPoolExecutor | None = None
        self._busy = 0  # calls that somebody waits for; counted on the loop
        self._stuck = 0  # calls that nobody waits for any more, and that have not returned; counted on the loop

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in one of the threads, with the caller's context variables."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, thread_name_prefix=f"{self._name}-worker")
        pool, loop = self._pool, asyncio.get_running_loop()
        context = contextvars.copy_context()
        working = pool.submit(context.run, _call, function, args, kwargs)
        self._busy += 1
        try:
            return await asyncio.wrap_future(working, loop=loop)
        except asyncio.CancelledError:
            if not working.cancel() and not working.done():
                self._give_up(pool, working, loop)
            raise
        finally:
            self._busy -= 1

    def _give_up(self, pool: ThreadPoolExecutor, working: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody can cut short what runs in a thread. Let the pool have another one in its place, until it returns."""
        if self._stuck >= _MOST_STUCK:
            logger.error("%s: %d calls that were given up have not returned. Give what they wait for a timeout of its own.", self._name, self._stuck)
            return
        self._stuck += 1
        pool._max_workers += 1

        def returned() -> None:
            self._stuck -= 1
            pool._max_workers -= 1

        def tell(_future: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(returned)

        working.add_done_callback(tell)

    def release(self) -> None:
        """Let the threads go; wait for them, which takes no time, if none has anything to do."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=not self._busy and not self._stuck, cancel_futures=True)

    def abandon(self) -> None:
        """Let the threads go, and wait for none of them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    try:
        return function(*args, **kwargs)
    except StopIteration as stopped:  # which no future takes: whoever waits would wait for ever
        msg = f"{getattr(function, '__name__', function)} raised StopIteration"
        raise RuntimeError(msg) from stopped
