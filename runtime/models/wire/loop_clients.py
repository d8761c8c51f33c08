"""One client for each event loop, because a client's connections belong to the loop on which they were opened.

Owns: the clients that it has made, until their loops end. It must never touch one that the user has given.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, ref

__all__ = ["Client", "LoopClients"]


class Client(Protocol):
    """What is needed of a client: how to tell that it is closed, and how to close it."""

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=Client)


class LoopClients(Generic[C]):
    """Makes a client when a loop first needs one.

    Each is held by an asynchronous generator. That is what event loops close when they end (`loop.shutdown_asyncgens`, which `asyncio.run` calls), and what
    they are handed when it is garbage-collected: either way the client is closed on its own loop.
    """

    __slots__ = ("__weakref__", "_held", "_lock", "_make")

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[AsyncGenerator[C, None], C]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def here(self) -> C | None:
        """The client of the running loop, if it has one."""
        with self._lock:
            held = self._held.get(asyncio.get_running_loop())
        return None if held is None or held[1].is_closed() else held[1]

    async def get(self) -> C:
        """The client of the running loop, which is made if there is none."""
        client = self.here()
        if client is not None:
            return client
        loop = asyncio.get_running_loop()
        holder = _holding(self._make(), loop, ref(self))
        client = await anext(holder)  # does not suspend, so no other task of this loop comes in between
        with self._lock:
            # A loop that was closed without an end to its generators would be kept by its own entry.
            for other in [other for other in self._held if other.is_closed()]:
                del self._held[other]
            self._held[loop] = (holder, client)
        return client

    async def aclose(self) -> None:
        """Close the client of the running loop. Clients of other loops are closed when those end."""
        with self._lock:
            held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held[0].aclose()

    def _forget(self, loop: asyncio.AbstractEventLoop, client: C) -> None:
        with self._lock:
            held = self._held.get(loop)
            if held is not None and held[1] is client:
                del self._held[loop]


async def _holding(client: C, loop: asyncio.AbstractEventLoop, owner: ref[LoopClients[C]]) -> AsyncGenerator[C, None]:
    try:
        yield client
    finally:
        clients = owner()
        if clients is not None:
            clients._forget(loop, client)
        await _Uninterrupted(client.close())


class _Uninterrupted:
    """Awaits what closes a client.

    A loop that ends cancels all that still runs there, and what has begun to close must not stop at half of its connections. Closing waits for nobody, it
    only lets the loop take a turn now and then: when it is interrupted, the rest is done at once, without those turns.
    """

    def __init__(self, closing: Awaitable[None]) -> None:
        self._closing = closing

    def __await__(self) -> Generator[object, None, None]:
        steps = self._closing.__await__()
        try:
            yield from iter(lambda: next(steps, _Uninterrupted), _Uninterrupted)
        except BaseException:
            while next(steps, _Uninterrupted) is None:
                pass
            raise
