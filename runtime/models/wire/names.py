"""Host name lookup by the operating system, in separate threads.

The loop's default executor is not used: lookups that hang would fill it, and block everything else
that the program runs there.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import aiohttp

__all__ = ["resolver"]

T = TypeVar("T")


def resolver() -> aiohttp.ThreadedResolver:
    """Return a resolver for the running loop.

    A connector looks up a name once at a time, so there is at most one thread per name.
    """
    return aiohttp.ThreadedResolver(cast("asyncio.AbstractEventLoop", _LookUp()))


class _LookUp:
    """The methods of an event loop that the resolver calls."""

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> list[Any]:
        return await _in_thread(partial(socket.getaddrinfo, host, port, **options))

    async def getnameinfo(self, address: Any, flags: int = 0) -> tuple[str, str]:
        return await _in_thread(partial(socket.getnameinfo, address, flags))


async def _in_thread(function: Callable[[], T]) -> T:
    loop = asyncio.get_running_loop()
    found: asyncio.Future[T] = loop.create_future()

    def tell(value: Any, problem: Exception | None) -> None:
        if found.done():
            return
        if problem is None:
            found.set_result(value)
        else:
            found.set_exception(problem)

    def work() -> None:
        value, problem = None, None
        try:
            value = function()
        except Exception as error:  # noqa: BLE001 -- it is raised where the name is needed
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(tell, value, problem)

    threading.Thread(target=work, name="offbook-name", daemon=True).start()
    return await found
