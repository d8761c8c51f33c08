"""A user's coroutine, driven manually: each step is timed, and its exceptions become values.

A plain task would let `KeyboardInterrupt` and `SystemExit` tear down the event loop, could not
distinguish a cancellation of the task from a `CancelledError` raised by the user's code, and would
not measure how long each step blocked the loop. `Steps` only raises `StopIteration` with the
outcome, and `GeneratorExit` while the loop itself is torn down.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio

__all__ = ["StepResult", "Steps", "is_about_to_begin"]


class StepResult(NamedTuple):
    """The end of a handler or hook: an error, or a value."""

    error: BaseException | None
    value: object = None


class Steps(Coroutine[object, None, StepResult]):
    """Wraps a user's coroutine so that it always ends normally, with a `StepResult`."""

    __slots__ = ("_begin", "_coro", "_done", "_held")

    def __init__(
        self,
        coro: Coroutine[object, None, object],
        held: Callable[[float], object],
        done: Callable[[StepResult], object] | None = None,
        *,
        begin: Callable[[], float] = perf_counter,
    ) -> None:
        self._begin = begin  # returns the start time of each step
        self._coro = coro
        self._held = held  # called with the seconds for which each step blocked the loop
        self._done = done  # called with the outcome, within the last step

    def send(self, value: Any = None) -> object:
        started = self._begin()
        try:
            item = self._coro.send(value)
        except StopIteration as stop:
            raise StopIteration(self._end(started, None, stop.value)) from None
        except BaseException as error:  # noqa: BLE001 -- becomes the outcome, for the supervisor
            raise StopIteration(self._end(started, error)) from None
        self._held(perf_counter() - started)
        return item

    def throw(self, typ: Any, val: object = None, tb: Any = None) -> object:
        thrown: BaseException | None
        if isinstance(typ, BaseException):
            thrown = typ
        else:
            thrown = val if isinstance(val, BaseException) else typ()
            if tb is not None:
                thrown = thrown.with_traceback(tb)
        started = self._begin()
        try:
            item = self._coro.throw(thrown)
        except StopIteration as stop:
            raise StopIteration(self._end(started, None, stop.value)) from None
        except GeneratorExit as error:
            # The loop is being torn down: nothing is left to report to.
            if thrown is error:
                raise
            raise StopIteration(self._end(started, error)) from None
        except BaseException as error:  # noqa: BLE001 -- becomes the outcome, for the supervisor
            raise StopIteration(self._end(started, error)) from None
        finally:
            typ = val = tb = thrown = (
                # The exception keeps this frame alive, so the frame must not keep the exception.
                None
            )
        self._held(perf_counter() - started)
        return item

    def close(self) -> None:
        self._coro.close()

    def __await__(self) -> Generator[object, None, StepResult]:
        return self  # type: ignore[return-value]  # has the generator methods that `await` uses: send, throw, close and __next__

    __next__ = send  # a task takes each step through this, without a call in between

    # asyncio's debugging aids read these attributes of a coroutine.
    @property
    def cr_frame(self) -> object:
        return getattr(self._coro, "cr_frame", None)

    @property
    def cr_code(self) -> object:
        return getattr(self._coro, "cr_code", None)

    @property
    def cr_running(self) -> bool:
        return bool(getattr(self._coro, "cr_running", False))

    @property
    def cr_await(self) -> object:
        return getattr(self._coro, "cr_await", None)

    @property
    def __name__(self) -> str:
        return getattr(self._coro, "__name__", type(self._coro).__name__)

    def _end(
        self, started: float, error: BaseException | None, value: object = None
    ) -> StepResult | None:
        """End with the step that began at `started`. Returns the result of the task."""
        self._held(perf_counter() - started)
        outcome = StepResult(error, value)
        if self._done is not None:
            self._done(outcome)
        return outcome


def is_about_to_begin(task: asyncio.Task[Any] | None) -> bool:
    """Return True if the first step of the task has not run yet."""
    steps = None if task is None else task.get_coro()
    return (
        isinstance(steps, Steps) and inspect.getcoroutinestate(steps._coro) == inspect.CORO_CREATED
    )
