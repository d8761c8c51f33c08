"""One client for each event loop, because a client's connections belong to the loop on which they
were opened.

It manages only the clients that it has made, never one that the user has passed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary, finalize, ref

__all__ = ["Client", "LoopClients"]


class Client(Protocol):
    """The required methods of a client."""

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=Client)


class _Closing(Generic[C]):
    """Closes a client, once. The second task that closes it waits for the first."""

    def __init__(self, client: C) -> None:
        self._client = client
        self._done: asyncio.Future[None] | None = None
        self.has_left = False  # whether the holder has ended, or is ending

    @property
    def has_begun(self) -> bool:
        return self._done is not None

    async def close(self) -> None:
        if self._done is not None:
            await self._done
            return
        self._done = asyncio.get_running_loop().create_future()
        try:
            await _Uninterrupted(self._client.close())
        finally:
            self._done.set_result(None)


class _Held(NamedTuple, Generic[C]):
    """A client, and the objects that close it: its holder, or if the owner is collected, its
    loop.
    """

    client: C
    holder: AsyncGenerator[C, None]
    when_collected: finalize[..., LoopClients[C]]


class LoopClients(Generic[C]):
    """Makes a client when a loop first needs one.

    Each is held by an asynchronous generator, because event loops close those when they end
    (`loop.shutdown_asyncgens`, which `asyncio.run` calls): so the client is closed on its own loop.
    If this object is garbage-collected before that, its clients are closed then, each by its loop.
    """

    __slots__ = ("__weakref__", "_held", "_lock", "_make")

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, _Held[C]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def here(self) -> C | None:
        """Return the client of the running loop, if it has one."""
        with self._lock:
            held = self._held.get(asyncio.get_running_loop())
        return None if held is None or held.client.is_closed() else held.client

    async def get(self) -> C:
        """Return the client of the running loop, after making it if necessary."""
        client = self.here()
        if client is not None:
            return client
        loop = asyncio.get_running_loop()
        client = self._make()
        closing = _Closing(client)
        holder = _holding(client, closing, loop, ref(self))
        await anext(holder)  # does not suspend, so no other task of this loop runs in between
        with self._lock:
            # The entry of a loop that was closed without closing its generators would keep that
            # loop alive.
            for other in [other for other in self._held if other.is_closed()]:
                self._held.pop(other).when_collected.detach()
            collected = finalize(self, _close_on_its_loop, loop, closing, holder)
            collected.atexit = False
            self._held[loop] = _Held(client, holder, collected)
        return client

    async def aclose(self) -> None:
        """Close the client of the running loop.

        Clients of other loops are closed when those end.
        """
        with self._lock:
            held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            held.when_collected.detach()
            await held.holder.aclose()

    def _forget(self, loop: asyncio.AbstractEventLoop, client: C) -> None:
        with self._lock:
            held = self._held.get(loop)
            if held is not None and held.client is client:
                self._held.pop(loop).when_collected.detach()


async def _holding(
    client: C, closing: _Closing[C], loop: asyncio.AbstractEventLoop, owner: ref[LoopClients[C]]
) -> AsyncGenerator[C, None]:
    try:
        yield client
    finally:
        closing.has_left = True
        clients = owner()
        if clients is not None:
            clients._forget(loop, client)
        await closing.close()


def _close_on_its_loop(
    loop: asyncio.AbstractEventLoop, closing: _Closing[C], holder: AsyncGenerator[C, None]
) -> None:
    """Let a loop close an unused client. May be called from any thread."""
    with contextlib.suppress(RuntimeError):  # the loop is closed, and its connections with it
        loop.call_soon_threadsafe(_close_soon, loop, closing, holder)


def _close_soon(
    loop: asyncio.AbstractEventLoop, closing: _Closing[C], holder: AsyncGenerator[C, None]
) -> None:
    """Close it in a task.

    A loop that ends may cancel the task before it has started: the holder must exist until that
    loop closes its generators.
    """

    async def close() -> None:
        if not closing.has_begun:
            await closing.close()
            if not closing.has_left:
                await holder.aclose()  # does not suspend: nothing is left to close

    def again(task: asyncio.Task[None]) -> None:
        if not closing.has_begun and not loop.is_closed():
            _close_soon(loop, closing, holder)
        elif not task.cancelled() and (error := task.exception()) is not None:
            loop.call_exception_handler(
                {
                    "message": "a client that is not used any more could not be closed",
                    "exception": error,
                    "task": task,
                }
            )

    loop.create_task(close()).add_done_callback(again)


class _Uninterrupted:
    """Awaits the closing of a client without interruption.

    A loop that ends cancels everything that still runs there, and closing must not stop halfway
    through the connections. Closing waits for nothing, it only yields to the loop now and then:
    when it is interrupted, the rest is done at once, without yielding.
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
