"""Awaiting results that may or may not be awaitable.

They come from user functions, which may be `def` or `async def`, and from coroutines that may not
wait for anything. The caller calls the function and handles its exceptions.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Coroutine, Generator
from typing import Any

__all__ = ["begun", "maybe_await"]


async def maybe_await(value: object) -> Any:
    """Return the value; if it is awaitable, its result."""
    return await value if inspect.isawaitable(value) else value


def begun(coro: Coroutine[Any, None, object]) -> object:
    """Run a coroutine up to its first wait, immediately.

    Returns its result if it never waits, otherwise a coroutine for the rest. The first part runs in
    the caller's task and the rest in another one, so the first part must not ask for its task.
    """
    try:
        item = coro.send(None)
    except StopIteration as stop:
        return stop.value
    return _rest(coro, item)


async def _rest(coro: Coroutine[Any, None, object], item: object) -> object:
    return await _steps(coro, item)


@types.coroutine
def _steps(coro: Coroutine[Any, None, object], item: object) -> Generator[object, Any, object]:
    """Forward the awaited items, and drive the coroutine to its end."""
    while True:
        try:
            value = yield item
        except GeneratorExit:
            coro.close()
            raise
        except BaseException as error:  # noqa: BLE001 -- for the coroutine to handle
            thrown: BaseException | None = error
        else:
            thrown = None
        try:
            item = coro.send(value) if thrown is None else coro.throw(thrown)
        except StopIteration as stop:
            return stop.value
