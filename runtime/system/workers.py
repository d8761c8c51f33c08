"""The worker threads of a system, for single calls that block.

Owns: the pool, which is made with the first call, and the count of its busy threads. It must never have more threads than its limit, except for those that
are stuck in calls that were given up: these threads cannot be ended, and must not delay other calls.
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

# So many threads may be stuck before the pool stops growing.
_MOST_STUCK: Final = 200


class _Pool(ThreadPoolExecutor):
    """A pool whose limit can be moved."""

    def widen(self, by: int) -> None:
        self._max_workers += by


class Workers:
    """A pool that is made when it is first needed."""

    __slots__ = ("_busy", "_most", "_name", "_pool", "_stuck")

    def __init__(self, name: str, most: int | None) -> None:
        self._name = name
        self._most = most
        self._pool: _Pool | None = None
        self._busy = 0  # calls with a caller that waits; counted on the loop
        self._stuck = 0  # calls that were given up and have not returned; counted on the loop

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in one of the threads, with the caller's context variables."""
        if self._pool is None:
            self._pool = _Pool(self._most, thread_name_prefix=f"{self._name}-worker")
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

    def _give_up(self, pool: _Pool, working: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Give the pool one more thread until the call returns, because a call in a thread cannot be cancelled."""
        if self._stuck >= _MOST_STUCK:
            logger.error("%s: %d calls that were given up have not returned. Give what they wait for a timeout of its own.", self._name, self._stuck)
            return
        self._stuck += 1
        pool.widen(1)

        def returned() -> None:
            self._stuck -= 1
            pool.widen(-1)

        def tell(_future: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(returned)

        working.add_done_callback(tell)

    def release(self) -> None:
        """Release the threads. If none is busy, wait for them to end, which takes no time."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=not self._busy and not self._stuck, cancel_futures=True)

    def abandon(self) -> None:
        """Release the threads, and wait for none of them."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _call(function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]) -> T:
    try:
        return function(*args, **kwargs)
    except StopIteration as stopped:  # futures refuse it, and the caller would wait for ever
        msg = f"{getattr(function, '__name__', function)} raised StopIteration"
        raise RuntimeError(msg) from stopped
