"""Server-sent events for a client's stream, as plain chunks of a response.

A short stream has no separate task: pending events are sent in one chunk. A long one is passed to
sse-starlette, which detects disconnects, sends pings, and ends with the server. The status 200 is
not sent before the first event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final

from sse_starlette.sse import EventSourceResponse

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from ..tasks.subscription import Shown, Subscription

__all__ = ["send_events"]

_SOON: Final = 0.1
"""Seconds for which a stream is written directly."""
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
    (b"content-type", b"text/event-stream; charset=utf-8"),
)
"""The same as those of sse-starlette."""


class _Written:
    """The events of a subscription, as bytes."""

    def __init__(
        self, shows: Subscription, event: Callable[[Shown], str], error: Callable[[Exception], str]
    ) -> None:
        self._shows = shows
        self._event = event
        self._error = error

    def take(self) -> bytes:
        """Return all pending events, and the error if that is the end."""
        shows = self._shows
        text = "".join([f"data: {self._event(shown)}\r\n\r\n" for shown in shows.take()])
        if shows.is_over and shows.error is not None:
            text += f"event: error\r\ndata: {self._error(shows.error)}\r\n\r\n"
        return text.encode()

    async def rest(self) -> AsyncIterator[bytes]:
        shows = self._shows
        while True:
            await shows.wait()
            # While the client reads, its stream may end with an error, which must still be sent.
            chunk, is_over = (
                self.take(),
                shows.is_over,
            )
            if chunk:
                yield chunk
            if is_over:
                return


async def send_events(
    shows: Subscription,
    event: Callable[[Shown], str],
    error: Callable[[Exception], str],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Respond with all events.

    Raises the error that ended the subscription, if there was nothing else: nothing was sent then.
    """
    await shows.wait()
    if shows.is_over and shows.error is not None:
        raise shows.error
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    written, loop = _Written(shows, event, error), asyncio.get_running_loop()
    until = loop.time() + _SOON
    timer = loop.call_later(_SOON, shows.wake)
    try:
        while True:
            chunk, is_over = written.take(), shows.is_over
            if chunk or is_over:
                await send({"type": "http.response.body", "body": chunk, "more_body": not is_over})
            if is_over:
                return
            if loop.time() >= until:
                break
            await shows.changed()
    finally:
        timer.cancel()

    async def send_on(message: Message) -> None:
        if message["type"] != "http.response.start":
            await send(message)

    await EventSourceResponse(written.rest())(scope, receive, send_on)
