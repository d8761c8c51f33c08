"""Calls of models that are made again.

Owns: whether an attempt that failed is followed by another one, when, and for how long an attempt may take. It must never make a call again whose events a
consumer has seen.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from openai import APIConnectionError, APITimeoutError, BadRequestError

from ....runtime.backoff import jittered
from ....runtime.clock import sleep
from ....runtime.maybe_await import maybe_await
from ..coercion import as_settings
from ..exceptions import ModelTimeoutError
from ..logger import logger
from ..retry import ModelRetryAdviceRequest, ModelRetryBackoffSettings, ModelRetryNormalizedError, RetryDecision, RetryPolicyContext
from ..usage import RequestUsage, Usage, input_details, output_details
from .error_facts import error_code, header_seconds, request_id, status_code

if TYPE_CHECKING:
    from ..items import ModelResponse
    from ..model_settings import ModelSettings
    from ..retry import ModelRetrySettings
    from .interface import Model

__all__ = ["answered", "client_may_retry", "counted", "streamed"]

_LOCKED_RETRIES: Final = 3
_HARMLESS: Final = frozenset({"response.created", "response.in_progress"})
_NETWORK: Final = frozenset(
    {"ConnectError", "ReadError", "RemoteProtocolError", "TimeoutException", "WriteError", "ReadTimeout", "ConnectTimeout", "PoolTimeout", "WriteTimeout"}
)
_WORDS: Final = ("connection error", "network error", "socket hang up", "connection closed")

_client_may_retry: contextvars.ContextVar[bool] = contextvars.ContextVar("client_may_retry", default=True)


def client_may_retry() -> bool:
    """Whether OpenAI's client may make a request again itself, before the run hears of the failure."""
    return _client_may_retry.get()


@contextmanager
def _without_client_retries(*, disabled: bool) -> Iterator[None]:
    if not disabled:
        yield
        return
    token = _client_may_retry.set(False)
    try:
        yield
    finally:
        _client_may_retry.reset(token)


def counted(usage: Usage, failed_attempts: int) -> Usage:
    """The usage, with the attempts that failed before."""
    if failed_attempts <= 0:
        return usage
    entries = list(usage.request_usage_entries)
    if not entries:
        entries.append(RequestUsage(usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.input_tokens_details, usage.output_tokens_details))
    usage.requests = max(usage.requests, 1) + failed_attempts
    usage.request_usage_entries = [*(RequestUsage(0, 0, 0, input_details(), output_details()) for _ in range(failed_attempts)), *entries]
    return usage


class _Attempts:
    """The attempts of one call."""

    def __init__(
        self, model: Model, settings: ModelSettings, again: Callable[[], Awaitable[None]], named: Mapping[str, Any], *, streams: bool, unsafe: bool
    ) -> None:
        self._model = model
        self._retry: ModelRetrySettings | None = settings.retry
        self._again = again
        self._named = named
        self._streams = streams
        self._unsafe = unsafe
        self._locked = 0
        self._number = 1
        self.failed = 0

    @property
    def _is_stateful(self) -> bool:
        return bool(self._named.get("previous_response_id") or self._named.get("conversation_id"))

    def disables_client(self) -> bool:
        """Whether OpenAI's client may not try again itself: what it does there is not known here."""
        retry, is_first = self._retry, self.failed == 0
        if self._unsafe or (retry is not None and retry.max_retries is not None and retry.max_retries <= 0):
            return True
        most = 0 if retry is None else max(retry.max_retries or 0, 0)
        has_policy = retry is not None and retry.policy is not None and most > 0
        if is_first:
            return self._is_stateful and has_policy
        return self._is_stateful or has_policy

    async def may_go_on(self, error: Exception, *, was_seen: bool) -> bool:
        """Whether there is another attempt, after the time that is waited for it."""
        if await self._waited_for_lock(error):
            return True
        request = ModelRetryAdviceRequest(error, self._number, self._streams, self._named.get("previous_response_id"), self._named.get("conversation_id"))
        decision = await self._decision(error, self._model.get_retry_advice(request), was_seen=was_seen)
        if not decision.retry:
            return False
        logger.debug("A model's call has failed; it is made again in %ss (attempt %s).", decision.delay, self._number)
        await self._again()
        if decision.delay and decision.delay > 0:
            await sleep(decision.delay)
        self._number += 1
        self.failed += 1
        return True

    async def _waited_for_lock(self, error: Exception) -> bool:
        """Whether the conversation is locked by another request, which ends soon."""
        off = self._retry is not None and self._retry.max_retries is not None and self._retry.max_retries <= 0
        if self._unsafe or off or not isinstance(error, BadRequestError) or getattr(error, "code", "") != "conversation_locked":
            return False
        if self._locked >= _LOCKED_RETRIES:
            return False
        self._locked += 1
        await self._again()
        await sleep(1.0 * 2 ** (self._locked - 1))
        self.failed += 1
        return True

    async def _decision(self, error: Exception, advice: Any, *, was_seen: bool) -> RetryDecision:
        retry = self._retry
        most = 0 if retry is None else max(retry.max_retries or 0, 0)
        if retry is None or self._number > most:
            return RetryDecision(retry=False)
        facts = _facts(error, advice)
        context = RetryPolicyContext(
            error, self._number, most, self._streams, facts, advice, self._named.get("previous_response_id"), self._named.get("conversation_id")
        )
        is_unsafe, is_safe = context.replay_safety == "unsafe", context.replay_safety == "safe"
        if facts.is_abort or was_seen or (is_unsafe and (self._streams or self._unsafe)) or retry.policy is None:
            return RetryDecision(retry=False)
        found = await maybe_await(retry.policy(context))
        decision = found if isinstance(found, RetryDecision) else RetryDecision(retry=bool(found))
        if not decision.retry:
            return decision
        approved, risked = decision.approves_replay, decision.approve_unsafe_replay
        if (
            (self._unsafe and not approved and not is_safe)
            or (self._is_stateful and not (approved or is_safe or (risked and is_unsafe)))
            or (is_unsafe and not (approved or risked))
        ):
            return RetryDecision(retry=False)
        delay = decision.delay if decision.delay is not None else facts.retry_after
        return RetryDecision(retry=True, delay=_backoff(self._number, retry.backoff) if delay is None else delay)


def _backoff(attempt: int, given: Any) -> float:
    settings = as_settings(given, ModelRetryBackoffSettings, "retry.backoff") if given is not None else ModelRetryBackoffSettings()
    first = 0.25 if settings.initial_delay is None else settings.initial_delay
    most = 2.0 if settings.max_delay is None else settings.max_delay
    delay: float = min(first * (2.0 if settings.multiplier is None else settings.multiplier) ** max(attempt - 1, 0), most)
    if settings.jitter is False:
        return delay
    return min(jittered(delay, 0.125), most)  # so that clients do not come all at once


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _is_network(error: BaseException) -> bool:
    if isinstance(error, APIConnectionError | APITimeoutError | TimeoutError):
        return True
    for one in _chain(error):
        kinds = {kind.__name__ for kind in type(one).__mro__ if kind.__module__.startswith(("httpx", "httpcore"))}
        if kinds & _NETWORK or (type(one).__module__.startswith("websockets") and type(one).__name__.startswith("ConnectionClosed")):
            return True
    text = str(error).lower()
    return any(words in text for words in _WORDS)


def _facts(error: Exception, advice: Any) -> ModelRetryNormalizedError:
    aborted = not isinstance(error, ModelTimeoutError) and any(
        isinstance(one, asyncio.CancelledError) or type(one).__name__ in ("AbortError", "CancelledError") for one in _chain(error)
    )
    facts = ModelRetryNormalizedError(
        status_code(error),
        error_code(error),
        str(error),
        request_id(error),
        header_seconds(error),
        aborted,
        _is_network(error),
        any(isinstance(one, APITimeoutError | TimeoutError | ModelTimeoutError) for one in _chain(error)),
    )
    if advice is not None:
        if advice.retry_after is not None:
            facts.retry_after = advice.retry_after
        if advice.normalized is not None:
            for name in advice.normalized.explicit:
                value = getattr(advice.normalized, name)
                setattr(facts, name, facts.is_abort or value if name == "is_abort" else value)
    return facts


async def answered(
    get: Callable[[], Awaitable[ModelResponse]],
    model: Model,
    settings: ModelSettings,
    again: Callable[[], Awaitable[None]],
    named: Mapping[str, Any],
    *,
    unsafe: bool,
) -> ModelResponse:
    """What the model answers, at last."""
    attempts: _Attempts | None = None
    if settings.retry is None and settings.timeout is None and not unsafe:  # nearly all calls: the first attempt needs no preparation
        try:
            return await get()
        except Exception as error:
            attempts = _Attempts(model, settings, again, named, streams=False, unsafe=unsafe)
            if not await attempts.may_go_on(error, was_seen=False):
                raise
    attempts = attempts or _Attempts(model, settings, again, named, streams=False, unsafe=unsafe)
    while True:
        try:
            with _without_client_retries(disabled=attempts.disables_client()):
                response: ModelResponse = await _within(get, settings.timeout)
        except Exception as error:
            if not await attempts.may_go_on(error, was_seen=False):
                raise
        else:
            response.usage = counted(response.usage, attempts.failed)
            return response


async def streamed(
    get: Callable[[], AsyncIterator[Any]],
    model: Model,
    settings: ModelSettings,
    again: Callable[[], Awaitable[None]],
    named: Mapping[str, Any],
    failed: list[int],
    *,
    unsafe: bool,
) -> AsyncIterator[Any]:
    """The events of the model's answer, at last. `failed` is told how many attempts have failed before."""
    attempts = _Attempts(model, settings, again, named, streams=True, unsafe=unsafe)
    while True:
        seen = False
        disabled = attempts.disables_client()
        with _without_client_retries(disabled=disabled):
            stream = get()
        deadline = None if settings.timeout is None else asyncio.get_running_loop().time() + settings.timeout
        try:
            try:
                while True:
                    try:
                        with _without_client_retries(disabled=disabled):
                            event = await _next(stream, settings.timeout, deadline)
                    except StopAsyncIteration:
                        return
                    seen = seen or getattr(event, "type", None) not in _HARMLESS
                    failed[:] = [attempts.failed]
                    yield event
            finally:
                close = getattr(stream, "aclose", None)
                if callable(close):
                    with suppress(Exception):
                        await close()
        except Exception as error:
            if not await attempts.may_go_on(error, was_seen=seen):
                raise


async def _within(get: Callable[[], Awaitable[Any]], timeout: float | None) -> Any:
    if timeout is None:
        return await get()
    task = asyncio.ensure_future(get())
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        await _ended(task)
        raise
    if done:
        return task.result()
    await _ended(task)
    raise ModelTimeoutError(timeout)


async def _next(stream: AsyncIterator[Any], timeout: float | None, deadline: float | None) -> Any:
    if deadline is None or timeout is None:
        return await anext(stream)
    task = asyncio.ensure_future(_anext(stream))
    try:
        done, _ = await asyncio.wait({task}, timeout=max(deadline - asyncio.get_running_loop().time(), 0.0))
    except asyncio.CancelledError:
        await _ended(task)
        raise
    if not done:
        await _ended(task)
        raise ModelTimeoutError(timeout)
    is_end, event = task.result()
    if is_end:
        raise StopAsyncIteration
    return event


async def _anext(stream: AsyncIterator[Any]) -> tuple[bool, Any]:
    try:
        return False, await anext(stream)
    except StopAsyncIteration:
        return True, None


async def _ended(task: asyncio.Future[Any]) -> None:
    """Cancel a task, and wait until it has ended."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
