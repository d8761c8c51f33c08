"""Work that is done in the context of another task.

Owns: an awaitable that runs a coroutine, step by step, in a given `contextvars.Context`: so that callbacks find what their caller has set, and traces nest,
whichever actor does the work. It must never start a task.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

__all__ = ["Driven"]

T = TypeVar("T")


class Driven(Generic[T]):
    """Awaits the coroutine in that context."""

    __slots__ = ("_context", "_work")

    def __init__(self, context: Context, work: Coroutine[Any, Any, T]) -> None:
        self._context = context
        self._work = work

    def __await__(self) -> Generator[Any, Any, T]:
        run, send, throw = self._context.run, self._work.send, self._work.throw
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                waited = run(send, value) if error is None else run(throw, error)
            except StopIteration as end:
                result: T = end.value
                return result
            error = None
            try:
                value = yield waited
            except BaseException as raised:
                error = raised
