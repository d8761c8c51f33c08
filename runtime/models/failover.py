"""A model that falls back to other models.

The memory of one run is in the view that `for_run` returns, and is discarded with it. This module
never waits: use `RetryModel`s in it or around it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from ..data.chat import Message, Usage
from ..errors import ModelError, ModelRetry, UsageError, text_of
from ..log import loggers
from ..maybe_await import maybe_await
from ..option_names import suggests_options
from ..tracing import note
from .protocol import ChatModel, ModelRequest, StreamItem
from .retry import usage_of
from .streaming import answer_of, model_for_run, stream_of

__all__ = ["FailoverModel", "ShouldFailover"]

ShouldFailover: TypeAlias = Callable[[Exception], bool | Awaitable[bool]]


@suggests_options
class FailoverModel:
    """Calls the first of `models`; if that fails, the next one.

    `should_failover`, which may be `async`, receives the error and returns whether to call the next
    model. Without it, a `ModelError` (including `RetryExhausted`), `TimeoutError` and
    `ConnectionError` do. When all have failed, the error of the last is raised, with notes about
    the others.

    In a run, the model that has answered is called first from then on: the framework takes one view
    from `for_run()` for each run. Used directly, each call starts with the first.
    """

    def __init__(
        self, models: Sequence[ChatModel], should_failover: ShouldFailover | None = None
    ) -> None:
        self._models = tuple(models)
        if not self._models:
            msg = (
                "FailoverModel: models must not be empty. Pass at least one, as in "
                "FailoverModel([first, second])."
            )
            raise UsageError(msg)
        for index, model in enumerate(self._models):
            if not callable(getattr(model, "generate", None)):
                msg = (
                    f"FailoverModel: models[{index}] must be a chat model with a method "
                    f"generate, got {model!r}."
                )
                raise UsageError(msg)
        self._should_failover = should_failover
        self._first = 0
        self._remembers = False

    def __repr__(self) -> str:
        return f"FailoverModel([{', '.join(map(repr, self._models))}])"

    @property
    def inner(self) -> ChatModel:
        """The model that it calls first."""
        return self._models[self._first]

    def for_run(self) -> FailoverModel:
        """Return the same models, with a memory for one run.

        The memory is a single number, so overlapping calls of one run are safe.
        """
        view = FailoverModel(
            [model_for_run(model) for model in self._models], self._should_failover
        )
        view._remembers = True
        return view

    async def generate(self, request: ModelRequest) -> Message:
        failed: list[tuple[int, Exception]] = []
        for index in self._order():
            try:
                reply = await answer_of(self._models[index], request)
            except Exception as error:
                failed.append((index, error))
                if not await self._goes_on(failed):
                    failed.clear()  # the error's traceback has this frame
                    raise
            else:
                return self._answered(index, reply, failed)
        raise AssertionError  # the last one answers or raises

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        failed: list[tuple[int, Exception]] = []
        for index in self._order():
            shown = False
            try:
                async with aclosing(stream_of(self._models[index], request)) as items:
                    async for item in items:
                        if isinstance(item, Message):
                            yield self._answered(index, item, failed)
                            return
                        shown = not isinstance(item, ModelRetry)
                        yield item
                _raise_unfinished()
            except Exception as error:
                failed.append((index, error))
                if not await self._goes_on(failed):
                    failed.clear()  # the error's traceback has this frame
                    raise
            if shown:
                yield ModelRetry(len(failed))
        raise AssertionError  # the last one answers or raises

    def _order(self) -> list[int]:
        first = self._first
        return [*range(first, len(self._models)), *range(first)]

    def _answered(self, index: int, reply: Message, failed: list[tuple[int, Exception]]) -> Message:
        if self._remembers:
            self._first = index
        counted = [usage for _, error in failed if (usage := usage_of(error)) is not None]
        return reply.replace(usage=sum(counted, reply.usage or Usage())) if counted else reply

    async def _goes_on(self, failed: list[tuple[int, Exception]]) -> bool:
        """Return whether the next model must be called.

        If not, the error is about to be raised, and gets notes about the others.
        """
        error = failed[-1][1]
        if len(failed) < len(self._models):
            if self._should_failover is None:
                verdict: object = isinstance(error, ModelError | TimeoutError | ConnectionError)
            else:
                verdict = self._should_failover(error)
            if await maybe_await(verdict):
                failed_one, following = self._models[failed[-1][0]], self._order()[len(failed)]
                what = f"{type(error).__name__}: {text_of(error)}"
                loggers.models.info(
                    "%r has failed (%s). Calling models[%d] (%r) instead.",
                    failed_one,
                    what,
                    following,
                    self._models[following],
                )
                note("failover", reason=type(error).__qualname__, model=following)
                return True
        for index, other in failed[:-1]:
            error.add_note(
                f"Before it, models[{index}] ({self._models[index]!r}) of the FailoverModel "
                f"failed: {type(other).__name__}: {other}"
            )
        return False


def _raise_unfinished() -> None:
    msg = (
        "The model's stream ended without a complete message. Its stream() must yield the "
        "Message last."
    )
    raise ModelError(msg, kind="connection", retryable=True)
