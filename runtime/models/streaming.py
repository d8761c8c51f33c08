"""What wrappers of models have in common: how a model that may or may not be able to stream is streamed, and how it is made ready for one run.

Owns: these two. Nothing here decides what happens when a model fails.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from .protocol import ChatModel, ModelRequest, StreamItem

__all__ = ["model_for_run", "stream_of"]


def model_for_run(model: ChatModel) -> ChatModel:
    """The model as one run sees it: with a memory of its own, if it has one, such as which model of a `FailoverModel` has answered."""
    for_run = getattr(model, "for_run", None)
    view: ChatModel = model if for_run is None else for_run()
    return view


async def stream_of(model: ChatModel, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    """What the model streams; if it cannot stream, its whole reply as the only item. Closing this closes the model's stream."""
    stream = getattr(model, "stream", None)
    if stream is None:
        yield await model.generate(request)
        return
    items: AsyncIterator[StreamItem] = stream(request)
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
