"""What a client's stream is written from: server-sent events, as plain chunks of an answer.

Owns: one stream from its first event to its end. A stream that is over soon has no task of its own: what is shown at once goes in one chunk. One that lasts is
handed over to sse-starlette, which looks whether the client is there, pings it, and ends with the server. It must never answer 200 before something is shown.
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
"""For how long a stream is written by itself."""
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
    (b"content-type", b"text/event-stream; charset=utf-8"),
)
"""As sse-starlette has them."""


class _Written:
    """What a subscription shows, as bytes."""

    def __init__(self, shows: Subscription, event: Callable[[Shown], str], error: Callable[[Exception], str]) -> None:
        self._shows = shows
        self._event = event
        self._error = error

    def take(self) -> bytes:
        """All that waits to be read, and the error if that is the end."""
        shows = self._shows
        text = "".join([f"data: {self._event(shown)}\r\n\r\n" for shown in shows.take()])
        if shows.is_over and shows.error is not None:
            text += f"event: error\r\ndata: {self._error(shows.error)}\r\n\r\n"
        return text.encode()

    async def rest(self) -> AsyncIterator[bytes]:
        shows = self._shows
        while True:
            await shows.wait()
            if chunk := self.take():
                yield chunk
            if shows.is_over:
                return


async def send_events(
    shows: Subscription, event: Callable[[Shown], str], error: Callable[[Exception], str], scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer with all that is shown. Raises what the subscription was ended with, if that was all: nothing was sent then."""
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
