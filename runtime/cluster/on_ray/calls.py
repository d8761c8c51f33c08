"""Blocking calls of Ray, each in its own daemon thread, with limits on their number and time.

While Ray's head is unavailable, a call may never return. It must not occupy a thread of the loop's
default executor, which resolves names for the whole program, nor prevent the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import ClusterError

__all__ = ["CALL_SECONDS", "RayCalls"]

T = TypeVar("T")

CALL_SECONDS: Final = 10.0
_MOST: Final = 16
"""The limit of concurrent calls, including those that never return."""


class RayCalls:
    """The blocking calls of one transport."""

    __slots__ = ("_lock", "_running")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0

    async def call(self, what: str, function: Callable[[], T], seconds: float = CALL_SECONDS) -> T:
        """Call a function, and wait for the result.

        Raises `ClusterError` if Ray does not answer in time.
        """
        with self._lock:
            if self._running >= _MOST:
                msg = (
                    f"{what}: {self._running} calls already wait for Ray. Its head node is "
                    "probably down; runs continue without it. Try again later."
                )
                raise ClusterError(msg)
            self._running += 1
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        threading.Thread(
            target=self._run, args=(loop, done, function), name=f"ray {what}", daemon=True
        ).start()
        try:
            async with asyncio.timeout(seconds) as limit:
                return await done
        except TimeoutError:
            if not limit.expired():
                raise
            msg = (
                f"{what}: Ray has not answered within {seconds:g} s. Its head node is probably "
                "down; runs continue without it. Try again later."
            )
            raise ClusterError(msg) from None

    def _run(
        self, loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], function: Callable[[], T]
    ) -> None:
        def tell(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]  # without an error, there is a result

        result: T | None = None
        problem: BaseException | None = None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 -- raised where it is awaited
            problem = error
        with self._lock:
            self._running -= 1
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing waits any more
            loop.call_soon_threadsafe(tell, result, problem)
