"""A model that is called again when it fails.

A cancellation, or any other exception that is not an `Exception`, is never retried: it is not a
failure of the model.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
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
    """Retries `model` up to `max_retries` times, with a growing delay in between, but never sooner
    than the provider requests.

    The defaults bridge an outage of about 3.5 seconds (0.5, 1 and 2): pass a larger `max_retries`
    to bridge a longer one. If a provider requests a wait of more than `max_retry_after` seconds
    (None: unlimited), `RetryExhausted` is raised at once, with `retry_after`, so that a
    `FailoverModel` calls its next model.

    `should_retry`, which may be `async`, receives each error and each whole reply, and returns
    whether to try again. Without it, temporary errors are retried: a `ModelError` that is
    `retryable`, `TimeoutError` and `ConnectionError`; replies are not. An error that is not retried
    is raised unchanged; when no attempt is left, `RetryExhausted` is raised.

    In a stream, a failure before the first item is silent. After an item was shown, `ModelRetry` is
    yielded, and the reply starts again.
    """

    def __init__(
        self,
        model: ChatModel,
        max_retries: int = 3,
        should_retry: ShouldRetry | None = None,
        backoff: Backoff = _DEFAULT_BACKOFF,
        *,
        max_retry_after: float | None = 60.0,
        sleep: Callable[[float], Awaitable[object]] = sleep,
    ) -> None:
        if not callable(getattr(model, "generate", None)):
            msg = f"RetryModel: model must be a chat model with a method generate, got {model!r}."
            raise UsageError(msg)
        if not max_retries >= 0:
            msg = (
                f"RetryModel: max_retries must be 0 (a single attempt) or more, got {max_retries}."
            )
            raise UsageError(msg)
        if not isinstance(backoff, Backoff):
            msg = (
                "RetryModel: backoff must be a Backoff, for example Backoff(initial=0.5), "
                f"got {backoff!r}."
            )
            raise UsageError(msg)
        if max_retry_after is not None and not max_retry_after >= 0:
            msg = (
                "RetryModel: max_retry_after must be a number of seconds, 0 or more, or None "
                f"for no bound, got {max_retry_after!r}."
            )
            raise UsageError(msg)
        self._model = model
        self._max_retry_after = max_retry_after
        self._max_retries = max_retries
        self._should_retry = should_retry
        self._backoff = backoff
        self._sleep = sleep

    def __repr__(self) -> str:
        return f"RetryModel({self._model!r}, max_retries={self._max_retries})"

    @property
    def inner(self) -> ChatModel:
        """The model that it calls."""
        return self._model

    def for_run(self) -> ChatModel:
        inner = model_for_run(self._model)
        if inner is self._model:
            return self
        return RetryModel(
            inner,
            self._max_retries,
            self._should_retry,
            self._backoff,
            max_retry_after=self._max_retry_after,
            sleep=self._sleep,
        )

    async def generate(self, request: ModelRequest) -> Message:
        spent: Usage | None = None
        for attempt in range(self._max_retries + 1):
            outcome: Message | Exception
            try:
                outcome = await answer_of(self._model, request)
            except Exception as error:  # noqa: BLE001 -- judged below, and raised unless it is retried
                outcome = error
            try:
                spent = _added(spent, outcome)
                if not await self._judge(outcome):
                    return _settled(outcome, spent)
                await self._pause(outcome, attempt, spent)
            finally:
                del outcome  # an error's traceback has this frame
        raise AssertionError  # the last attempt returns or raises

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        spent: Usage | None = None
        for attempt in range(self._max_retries + 1):
            shown = False
            outcome: Message | Exception = ModelError(
                "The model's stream ended without a complete message. Its stream() must yield "
                "the Message last.",
                kind="connection",
                retryable=True,
            )
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
            try:
                spent = _added(spent, outcome)
                if not await self._judge(outcome):
                    yield _settled(outcome, spent)
                    return
                await self._pause(outcome, attempt, spent)
            finally:
                del outcome  # as in `generate`
            if shown:
                yield ModelRetry(attempt + 1)
        raise AssertionError  # the last attempt returns or raises

    async def _judge(self, outcome: Exception | Message) -> bool:
        """Return whether to try again."""
        if self._should_retry is None:
            return (
                outcome.retryable
                if isinstance(outcome, ModelError)
                else isinstance(outcome, TimeoutError | ConnectionError)
            )
        verdict = self._should_retry(outcome)
        return bool(await maybe_await(verdict))

    async def _pause(self, outcome: Exception | Message, attempt: int, spent: Usage | None) -> None:
        """Wait before the next attempt; if there is none, raise."""
        if attempt == self._max_retries:
            raise _exhausted(outcome, attempt + 1, spent) from (
                outcome if isinstance(outcome, Exception) else None
            )
        seconds = self._delay(outcome, attempt, spent)
        what = (
            "its reply was refused"
            if isinstance(outcome, Message)
            else f"{type(outcome).__name__}: {text_of(outcome)}"
        )
        text = "%r is called again in %.3g s, after attempt %d of %d: %s"
        loggers.models.info(text, self._model, seconds, attempt + 1, self._max_retries + 1, what)
        note(
            "retry",
            attempt=attempt + 1,
            delay=seconds,
            reason="refused" if isinstance(outcome, Message) else type(outcome).__qualname__,
        )
        await self._sleep(seconds)

    def _delay(self, outcome: Exception | Message, attempt: int, spent: Usage | None) -> float:
        """Return the seconds to wait.

        If the provider requests a delay, callers that failed together are spread over the time
        after it.
        """
        delay = self._backoff.delay(attempt)
        if not isinstance(outcome, ModelError) or (asked_for := outcome.retry_after) is None:
            return delay
        if self._max_retry_after is not None and asked_for > self._max_retry_after:
            raise _too_long(
                outcome, asked_for, self._max_retry_after, attempt + 1, spent
            ) from outcome
        if not self._backoff.jitter:
            return max(delay, asked_for)
        return max(
            delay,
            asked_for + random.random() * max(delay, self._backoff.jitter * asked_for),  # noqa: S311 -- spreads load, guards no secret
        )


def usage_of(outcome: Exception | Message) -> Usage | None:
    """Return the usage that the provider has counted for an attempt.

    A failed one may carry the unusable reply.
    """
    reply = getattr(outcome, "message", None) if isinstance(outcome, Exception) else outcome
    return reply.usage if isinstance(reply, Message) else None


def _added(spent: Usage | None, outcome: Exception | Message) -> Usage | None:
    usage = usage_of(outcome)
    if spent is None or usage is None:
        return usage if spent is None else spent
    return spent + usage


def _settled(outcome: Exception | Message, spent: Usage | None) -> Message:
    """Return the reply with the usage of all attempts, or raise the error that is not retried."""
    if isinstance(outcome, Exception):
        try:
            raise outcome
        finally:
            del outcome  # its traceback has this frame
    return outcome if outcome.usage is spent else outcome.replace(usage=spent)


def _exhausted(outcome: Exception | Message, attempts: int, spent: Usage | None) -> RetryExhausted:
    times = _times(attempts)
    advice = (
        "Give RetryModel more max_retries or a longer backoff, or put a FailoverModel around it."
    )
    if isinstance(outcome, Message):
        text = (
            f"The model was asked in {times}, and should_retry refused the reply of each. The "
            f"last one was {outcome.text[:200]!r}. {advice}"
        )
        return RetryExhausted(text, kind="refused_reply", message=outcome.replace(usage=spent))
    return _given_up(
        f"The model failed in {times}. The last error: {type(outcome).__name__}: {outcome} "
        f"{advice}",
        outcome,
        spent,
    )


def _too_long(
    outcome: ModelError, asked_for: float, most: float, attempts: int, spent: Usage | None
) -> RetryExhausted:
    why = (
        f"The provider asks to wait {asked_for:g} s, which is longer than max_retry_after={most:g}."
    )
    advice = "Give RetryModel a larger max_retry_after, or put a FailoverModel around it."
    return _given_up(
        f"The model failed in {_times(attempts)}. {why} {advice} The error: "
        f"{type(outcome).__name__}: {outcome}",
        outcome,
        spent,
    )


def _times(attempts: int) -> str:
    return f"{attempts} attempts" if attempts > 1 else "1 attempt"


def _given_up(text: str, outcome: Exception, spent: Usage | None) -> RetryExhausted:
    """Return the error of a model that is not called again, with the usage of all attempts."""
    refused = getattr(outcome, "message", None)
    if isinstance(refused, Message):
        refused = refused.replace(usage=spent)
    elif spent is not None:
        refused = Message("assistant", usage=spent)
    if not isinstance(outcome, ModelError):
        kind = "timeout" if isinstance(outcome, TimeoutError) else "other"
        return RetryExhausted(text, kind=kind, message=refused)
    return RetryExhausted(
        text,
        kind=outcome.kind,
        status=outcome.status,
        retry_after=outcome.retry_after,
        message=refused,
    )
