"""The events of a stream of the `openai` client, one after the other, to its very end.

Owns: the reading, and the leaving. The client's own iterator is not used where it can be avoided: it stops in the middle of a chain of generators, which the
event loop then has to close, later, in tasks of its own; and it does not tell whether the stream was ended or cut off.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeGuard

from ..errors import ModelError
from .openai_errors import event_error, model_errors

if TYPE_CHECKING:
    from openai import AsyncStream

__all__ = ["DONE", "EventDecoder", "read"]

DONE: Final = object()
"""What comes after the last event, if the provider says that it was the last."""

_OF_EVENTS: Final = (b"data:", b"event:", b":", b"id:", b"retry:")
_MOST_OF_A_HEAD: Final = 200
_LINE_END: Final = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
_SECONDS_TO_THE_END: Final = 0.1
_WINDING_DOWN: Final = 1000


class EventDecoder:
    """Server-sent events out of bytes, wherever those are cut: the data of each event that is complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self.head: bytes | None = b""
        """What the stream begins with, as long as no line of it is one of a stream of events."""

    def feed(self, chunk: bytes) -> list[bytes]:
        events: list[bytes] = []
        # A carriage return at the end may be half of a line end: it waits there.
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        if self.head is not None:
            self.head = None if any(line.startswith(_OF_EVENTS) for line in lines) else (self.head + chunk)[:_MOST_OF_A_HEAD]
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events


async def read(stream: AsyncIterator[object], who: str) -> AsyncGenerator[object, None]:
    """The items of the stream. When this is closed, the stream is, too, and its connection."""
    # Whoever has wrapped the client, to watch it or to take its place in a test, has to be asked for the items.
    own = stream if _is_plain(stream) else None
    pieces: AsyncIterator[object] = stream if own is None else own.response.aiter_bytes()
    decoder = EventDecoder()
    try:
        while True:
            with model_errors(who):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    _check_head(decoder, who)
                    return
                items = _decoded(decoder.feed(piece), who) if own is not None and isinstance(piece, bytes) else [piece]
            for item in items:
                yield item
                if item is DONE:
                    await _to_the_end(pieces)
                    return
    except GeneratorExit:
        # With the connection closed, the innermost of the generators fails when it is asked for more, and that ends all of them here and now.
        await _close(stream)
        with suppress(Exception):
            for _ in range(_WINDING_DOWN):
                await anext(pieces)
        raise
    finally:
        await _close(stream)


def _check_head(decoder: EventDecoder, who: str) -> None:
    """Raise, if what has ended is no stream of events at all, but a page."""
    head = (decoder.head or b"").strip()
    if head and not head.startswith(_OF_EVENTS):
        msg = f"{who}: the provider's answer is no stream of events, but {head.decode(errors='replace')!r}. Check the base_url."
        raise ModelError(msg, kind="malformed", retryable=True)


def _is_plain(stream: object) -> TypeGuard[AsyncStream[object]]:
    """Whether it is the client's own, whose bytes can be read. The class is known by its name, so that nothing here imports `openai`."""
    return type(stream).__module__.split(".")[0] == "openai" and type(stream).__name__ == "AsyncStream"


def _decoded(events: list[bytes], who: str) -> list[object]:
    items: list[object] = []
    for data in events:
        if data.startswith(b"[DONE]"):
            return [*items, DONE]
        item = json.loads(data)
        if isinstance(item, Mapping) and item.get("error"):
            raise event_error(item["error"], who)
        items.append(item)
    return items


async def _to_the_end(pieces: AsyncIterator[object]) -> None:
    """A connection can be used again only if its reply was read to the end. That is not worth waiting for."""
    with suppress(Exception):
        async with asyncio.timeout(_SECONDS_TO_THE_END):
            while await anext(pieces, None) is not None:
                pass


async def _close(stream: object) -> None:
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None:
        with suppress(Exception):  # it is being left: how that fails is of no interest to anybody
            await close()
