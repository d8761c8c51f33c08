"""The events of a stream of the `openai` client, in order, to the very end.

The client's own iterator is avoided: it stops in the middle of a chain of generators, which the
event loop must close later, in separate tasks; and it does not show whether the stream ended or was
cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeGuard

from .openai_errors import model_errors
from .wire.sse import DONE, EventDecoder, check_head, decoded

if TYPE_CHECKING:
    from openai import AsyncStream

__all__ = ["read"]

_SECONDS_TO_THE_END: Final = 0.1
_WINDING_DOWN: Final = 1000


async def read(stream: AsyncIterator[object], who: object) -> AsyncGenerator[list[object], None]:
    """Yield the items of the stream, grouped as they arrive; `DONE` is the very last, if the
    provider sends it.

    Closing this also closes the stream and its connection.
    """
    # A wrapper around the client, for monitoring or for tests, only provides items.
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
                items = (
                    decoded(decoder.feed(piece), who)
                    if own is not None and isinstance(piece, bytes)
                    else [piece]
                )
            if items and items[-1] is DONE:
                await _to_the_end(pieces)
                yield items
                return
            yield items
    except GeneratorExit:
        # Once the connection is closed, the innermost generator fails when it is advanced, which
        # ends all of them immediately.
        await _close(stream)
        with suppress(Exception):
            for _ in range(_WINDING_DOWN):
                await anext(pieces)
        raise
    finally:
        await _close(stream)


def _is_plain(stream: object) -> TypeGuard[AsyncStream[object]]:
    """Return whether it is the client's own stream, whose bytes can be read.

    The class is identified by its name, so that nothing here imports `openai`.
    """
    return (
        type(stream).__module__.split(".")[0] == "openai" and type(stream).__name__ == "AsyncStream"
    )


async def _to_the_end(pieces: AsyncIterator[object]) -> None:
    """Read a reply to the end, so that its connection can be reused.

    That is not worth a long wait.
    """
    with suppress(Exception):
        async with asyncio.timeout(_SECONDS_TO_THE_END):
            while await anext(pieces, None) is not None:
                pass


async def _close(stream: object) -> None:
    close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
    if close is not None:
        with suppress(Exception):  # errors while leaving do not matter
            await close()
