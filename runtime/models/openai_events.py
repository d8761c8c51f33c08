"""The events of a stream of the `openai` client, one after the other, to its very end.

Owns: the reading, and the leaving. The client's own iterator is not used where it can be avoided: it stops in the middle of a chain of generators, which the
event loop then has to close, later, in tasks of its own; and it does not tell whether the stream was ended or cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeGuard

from .openai_errors import model_errors
from .wire.events import DONE, check_head, decoded
from .wire.sse import EventDecoder

if TYPE_CHECKING:
    from openai import AsyncStream

__all__ = ["read"]

_SECONDS_TO_THE_END: Final = 0.1
_WINDING_DOWN: Final = 1000


async def read(stream: AsyncIterator[object], who: object) -> AsyncGenerator[list[object], None]:
    """The items of the stream, those together that came together; `DONE` as the very last, if the provider says so.

    When this is closed, the stream is, too, and its connection.
    """
    # What wraps the client, to watch it or to take its place in a test, has to be asked for the items.
    own = stream if _is_plain(stream) else None
    pieces: AsyncIterator[object] = stream if own is None else own.response.aiter_bytes()
    decoder = EventDecoder()
    try:
        while True:
            with model_errors(who):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    check_head(decoder, who)
                    return
                items = decoded(decoder.feed(piece), who) if own is not None and isinstance(piece, bytes) else [piece]
            if items and items[-1] is DONE:
                await _to_the_end(pieces)
                yield items
                return
            yield items
    except GeneratorExit:
        # With the connection closed, the innermost of the generators fails when it is asked for more, and that ends all of them here and now.
        await _close(stream)
        with suppress(Exception):
            for _ in range(_WINDING_DOWN):
                await anext(pieces)
        raise
    finally:
        await _close(stream)


def _is_plain(stream: object) -> TypeGuard[AsyncStream[object]]:
    """Whether it is the client's own, whose bytes can be read. The class is known by its name, so that nothing here imports `openai`."""
    return type(stream).__module__.split(".")[0] == "openai" and type(stream).__name__ == "AsyncStream"


async def _to_the_end(pieces: AsyncIterator[object]) -> None:
    """A connection can be used again only if its reply was read to the end. That is not worth waiting for."""
    with suppress(Exception):
        async with asyncio.timeout(_SECONDS_TO_THE_END):
            while await anext(pieces, None) is not None:
                pass


async def _close(stream: object) -> None:
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None:
        with suppress(Exception):  # it is being left: how that fails is of no interest
            await close()
