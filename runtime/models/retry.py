"""A model that is asked again when it fails.

Owns: when to try again, how long to wait before, and what the attempts have cost together. It must never try again after a cancellation or anything else that
is no ordinary exception: those are not failures of the model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

from ..backoff import Backoff
from ..clock import sleep
from ..data.chat import Message, Usage
from ..errors import ModelError, ModelRetry, RetryExhausted, UsageError, text_of
from ..log import loggers
from ..maybe_await import maybe_await
from ..option_names import suggests_options
from ..tracing import note
from .protocol import ChatModel, ModelRequest, StreamItem
from .streaming import answer_of, model_for_run, stream_of

__all__ = ["RetryModel", "ShouldRetry", "usage_of"]

ShouldRetry: TypeAlias = Callable[[Exception | Message], bool | Awaitable[bool]]

_DEFAULT_BACKOFF = Backoff(initial=0.5)


@suggests_options
class RetryModel:
    """Asks `model` up to `max_retries` times more, with a growing delay in between, but never sooner than the provider asks for.

    `should_retry`, which may be `async`, is shown each error and each whole reply, and says whether to try again. Without it, errors that may pass are tried
    again: a `ModelError` that is `retryable`, `TimeoutError` and `ConnectionError`; replies are not. An error that is not tried again is raised as it is;
    when no attempt is left, `RetryExhausted`.

    In a stream, a failure before anything was shown is silent. After something was, `ModelRetry` comes as an item, and the reply begins again.
    """

    def __init__(
        self,
        model: ChatModel,
        max_retries: int = 3,
        should_retry: ShouldRetry | None = None,
        backoff: Backoff = _DEFAULT_BACKOFF,
        *,
        sleep: Callable[[float], Awaitable[object]] = sleep,
    ) -> None:
        if not callable(getattr(model, "generate", None)):
            msg = f"RetryModel: model={model!r} is no chat model: it has no method generate."
            raise UsageError(msg)
        if not max_retries >= 0:
            msg = f"RetryModel: max_retries={max_retries} must not be negative; 0 is a single attempt."
            raise UsageError(msg)
        if not isinstance(backoff, Backoff):
            msg = f"RetryModel: backoff={backoff!r} is no Backoff; write for example backoff=Backoff(initial=0.5)."
            raise UsageError(msg)
        self._model = model
        self._max_retries = max_retries
        self._should_retry = should_retry
        self._backoff = backoff
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"RetryModel({self._model!r}, max_retries={self._max_retries})"

    @property
    def inner(self) -> ChatModel:
        """The model that it asks."""
        return self._model

    def for_run(self) -> ChatModel:
        inner = model_for_run(self._model)
        return self if inner is self._model else RetryModel(inner, self._max_retries, self._should_retry, self._backoff, sleep=self._sleep)

    async def generate(self, request: ModelRequest) -> Message:
        spent: Usage | None = None
        for attempt in range(self._max_retries + 1):
            outcome: Message | Exception
            try:
                outcome = await answer_of(self._model, request)
            except Exception as error:  # noqa: BLE001 -- judged below, and raised unless it is to be tried again
                outcome = error
            spent = _added(spent, outcome)
            if not await self._judge(outcome):
                return _settled(outcome, spent)
            await self._pause(outcome, attempt, spent)
        raise AssertionError  # the last attempt ends in one or the other

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        spent: Usage | None = None
        for attempt in range(self._max_retries + 1):
            shown = False
            outcome: Message | Exception = ModelError("The model's stream ended without a whole message.", kind="connection", retryable=True)
            try:
                async with aclosing(stream_of(self._model, request)) as items:
                    async for item in items:
                        if isinstance(item, Message):
                            outcome = item
                            break
                        shown = not isinstance(item, ModelRetry)
                        yield item
            except Exception as error:  # noqa: BLE001 -- as in `generate`
                outcome = error
            spent = _added(spent, outcome)
            if not await self._judge(outcome):
                yield _settled(outcome, spent)
                return
            await self._pause(outcome, attempt, spent)
            if shown:
                yield ModelRetry(attempt + 1)
        raise AssertionError  # the last attempt ends in one or the other

    async def _judge(self, outcome: Exception | Message) -> bool:
        """Whether to try again."""
        if self._should_retry is None:
            return outcome.retryable if isinstance(outcome, ModelError) else isinstance(outcome, TimeoutError | ConnectionError)
        verdict = self._should_retry(outcome)
        return bool(await maybe_await(verdict))

    async def _pause(self, outcome: Exception | Message, attempt: int, spent: Usage | None) -> None:
        """Wait for the next attempt; if there is none, raise."""
        if attempt == self._max_retries:
            raise _exhausted(outcome, attempt + 1, spent) from (outcome if isinstance(outcome, Exception) else None)
        asked_for = outcome.retry_after if isinstance(outcome, ModelError) else None
        seconds = max(self._backoff.delay(attempt), asked_for or 0.0)
        what = "its reply was refused" if isinstance(outcome, Message) else f"{type(outcome).__name__}: {text_of(outcome)}"
        text = "%r is asked again in %.3g s, after attempt %d of %d: %s"
        loggers.models.info(text, self._model, seconds, attempt + 1, self._max_retries + 1, what)
        note("retry", attempt=attempt + 1, delay=seconds, reason=what)
        await self._sleep(seconds)


def usage_of(outcome: Exception | Message) -> Usage | None:
    """What the provider has counted for an attempt: a failed one may carry the reply that was of no use."""
    reply = getattr(outcome, "message", None) if isinstance(outcome, Exception) else outcome
    return reply.usage if isinstance(reply, Message) else None


def _added(spent: Usage | None, outcome: Exception | Message) -> Usage | None:
    usage = usage_of(outcome)
    if spent is None or usage is None:
        return usage if spent is None else spent
    return spent + usage


def _settled(outcome: Exception | Message, spent: Usage | None) -> Message:
    """The reply, with what all attempts have cost; or the error that is not to be tried again."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome if outcome.usage is spent else replace(outcome, usage=spent)


def _exhausted(outcome: Exception | Message, attempts: int, spent: Usage | None) -> RetryExhausted:
    times = f"{attempts} attempts" if attempts > 1 else "1 attempt"
    advice = "Give RetryModel more max_retries or a longer backoff, or put a FailoverModel around it."
    if isinstance(outcome, Message):
        text = f"The model was asked in {times}, and should_retry refused the reply of each. The last one was {outcome.text[:200]!r}. {advice}"
        return RetryExhausted(text, kind="refused_reply", message=replace(outcome, usage=spent))
    text = f"The model failed in {times}. The last error: {type(outcome).__name__}: {outcome} {advice}"
    refused = getattr(outcome, "message", None)
    if isinstance(refused, Message):
        refused = replace(refused, usage=spent)
    elif spent is not None:
        refused = Message("assistant", usage=spent)
    if not isinstance(outcome, ModelError):
        kind = "timeout" if isinstance(outcome, TimeoutError) else "other"
        return RetryExhausted(text, kind=kind, message=refused)
    return RetryExhausted(text, kind=outcome.kind, status=outcome.status, retry_after=outcome.retry_after, message=refused)
