"""The worker threads of a system: where single calls that block are made.

Owns: the pool, which is made with the first call, and how much of it is busy. It never has more threads than it was told.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

__all__ = ["Workers"]

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """A pool that is there when it is needed."""

    __slots__ = ("_busy", "_most", "_name", "_pool")

    def __init__(self, name: str, most: int | None) -> None:
        self._name = name
        self._most = most
        self._pool: ThreadPoolExecutor | None = None
        self._busy = 0  # calls whose function has not returned; counted on the loop

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in one of the threads, with the caller's context variables."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, thread_name_prefix=f"{self._name}-worker")
        call = partial(contextvars.copy_context().run, _call, function, args, kwargs)
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        self._busy += 1
        try:
            result = await future
        except asyncio.CancelledError:
            # Nobody can cut short what runs in a thread: that one stays busy, and is not waited for.
            raise
        except BaseException:
            self._busy -= 1
            raise
        self._busy -= 1
        return result

    def release(self) -> None:
        """Let the threads go; wait for them, which takes no time, if none has anything to do."""
        pool, self._pool = self._pool, None
        idle, self._busy = not self._busy, 0
        if pool is not None:
            pool.shutdown(wait=idle, cancel_futures=True)

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
