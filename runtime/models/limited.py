"""A model that observes its provider's rate limits.

This module estimates the cost of a call, and corrects it afterwards. `rate.py` waits and counts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from ..clock import Clock
from ..data.chat import Message
from ..errors import UsageError
from ..option_names import suggests_options
from .protocol import ChatModel, ModelRequest, StreamItem
from .rate import RateLimiter
from .streaming import answer_of, model_for_run, stream_of

__all__ = ["LimitedModel"]

_CHARACTERS_A_TOKEN = 4


@suggests_options
class LimitedModel:
    """Limits the calls of `model` per minute, its tokens per minute, and its concurrent calls.
    Waiting calls run in the order of their arrival.

    The limits are those of this object: share it among all agents that use the same account of a
    provider; any number of agents, runs, event loops and threads may do so. A minute's worth may be
    used up at once; after that, it is refilled at an even rate. The estimated cost of a call is one
    token for every four characters of its messages plus `max_tokens`, if set; when its usage is
    known, the estimate is corrected. A call that fails or is cancelled counts as estimated: the
    provider may have counted it. A stream holds its slot until it ends or is closed. Without
    `clock`, the clock of the running system is used.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_concurrency: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        if not callable(getattr(model, "generate", None)):
            msg = f"LimitedModel: model must be a chat model with a method generate, got {model!r}."
            raise UsageError(msg)
        limits = {
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
            "max_concurrency": max_concurrency,
        }
        for name, value in limits.items():
            if value is not None and not value > 0:
                msg = f"LimitedModel: {name} must be above 0, or None for no limit, got {value}."
                raise UsageError(msg)
        if max_concurrency is not None and max_concurrency < 1:
            msg = (
                f"LimitedModel: max_concurrency must be 1 or more, or None for no limit, "
                f"got {max_concurrency}."
            )
            raise UsageError(msg)
        self._model = model
        self._limits = limits
        self._limiter = RateLimiter(requests_per_minute, tokens_per_minute, max_concurrency, clock)

    def __repr__(self) -> str:
        limits = "".join(
            f", {name}={value}" for name, value in self._limits.items() if value is not None
        )
        return f"LimitedModel({self._model!r}{limits})"

    @property
    def active(self) -> int:
        """The number of calls in progress."""
        return self._limiter.active

    @property
    def waiting(self) -> int:
        """The number of calls that wait for their turn."""
        return self._limiter.waiting

    @property
    def inner(self) -> ChatModel:
        """The model that it calls."""
        return self._model

    def for_run(self) -> ChatModel:
        """Return the model's view for one run, under the same limits."""
        inner = model_for_run(self._model)
        if inner is self._model:
            return self
        view = LimitedModel(inner)
        view._limits = self._limits
        view._limiter = self._limiter
        return view

    async def generate(self, request: ModelRequest) -> Message:
        reckoned = _reckoned(request)
        await self._limiter.acquire(reckoned)
        more = 0.0
        try:
            reply = await answer_of(self._model, request)
            more = _difference(reply, reckoned)
        finally:
            self._limiter.release(more)
        return reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        reckoned = _reckoned(request)
        await self._limiter.acquire(reckoned)
        more = 0.0
        try:
            async with aclosing(stream_of(self._model, request)) as items:
                async for item in items:
                    if isinstance(item, Message):
                        more = _difference(item, reckoned)
                    yield item
        finally:
            self._limiter.release(more)


def _reckoned(request: ModelRequest) -> float:
    characters = 0
    for message in request.messages:
        characters += len(message.text)
        for call in message.tool_calls:
            characters += len(call.name) + len(call.arguments)
    return characters / _CHARACTERS_A_TOKEN + (request.settings.max_tokens or 0)


def _difference(reply: Message, reckoned: float) -> float:
    usage = reply.usage
    return usage.total_tokens - reckoned if usage is not None and usage.total_tokens else 0.0
