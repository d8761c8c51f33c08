"""Shared functions of model wrappers: streaming a model that may not support it, and making a
model's view for one run.

The handling of failures is up to the wrappers.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from types import AsyncGeneratorType, CoroutineType

from ..data.chat import Message
from ..errors import UsageError
from .protocol import ChatModel, ModelRequest, StreamItem

__all__ = ["answer_of", "model_for_run", "stream_of"]


def model_for_run(model: ChatModel) -> ChatModel:
    """Return the model's view for one run, with separate memory if it has any.

    A `FailoverModel`, for example, remembers which model has answered.
    """
    for_run = getattr(model, "for_run", None)
    view: ChatModel = model if for_run is None else for_run()
    return view


def answer_of(model: ChatModel, request: ModelRequest) -> Awaitable[Message]:
    """Start a call of the model, and return the awaitable reply.

    Raises if its `generate` is not asynchronous: it would block the event loop.
    """
    try:
        reply: object = model.generate(request)
    except TypeError as error:
        _check_call(model, "generate", error)
        raise
    if type(reply) is CoroutineType or inspect.isawaitable(reply):
        return reply
    msg = (
        f"the model {model!r}: its generate() is a plain function, and returned {reply!r}: write "
        "`async def generate(self, request)`."
    )
    raise UsageError(
        msg + " If it calls blocking code, write `return await asyncio.to_thread(...)`."
    )


def stream_of(model: ChatModel, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    """Return the model's stream; if it cannot stream, its whole reply as the only item.

    Closing this closes the model's stream.
    """
    stream = getattr(model, "stream", None)
    if stream is None:
        return _only(model, request)
    try:
        items: AsyncIterator[StreamItem] = stream(request)
    except TypeError as error:
        _check_call(model, "stream", error)
        raise
    # A generator can be closed directly; anything else is wrapped in one.
    return items if type(items) is AsyncGeneratorType else _closed(model, items)


def _check_call(model: ChatModel, method: str, error: TypeError) -> None:
    """Raise if the method could not even be called, because it does not take one request."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is None:
        name = type(model).__name__
        msg = (
            f"the model {model!r}: {name}.{method}() cannot be called: {error}. Write `async def "
            f"{method}(self, request)`: the request has the messages."
        )
        raise UsageError(msg) from error


async def _only(model: ChatModel, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
    yield await answer_of(model, request)


async def _closed(
    model: ChatModel, items: AsyncIterator[StreamItem]
) -> AsyncGenerator[StreamItem, None]:
    if not hasattr(items, "__aiter__"):
        if inspect.iscoroutine(items):
            items.close()
        msg = (
            f"the model {model!r}: its stream() must be an async generator, but returned "
            f"{items!r}. Write `async def stream(self, request)` with `yield`, or omit it."
        )
        raise UsageError(msg)
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
