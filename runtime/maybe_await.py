"""The result of what may have to be awaited: of a user's function, which may be `def` or `async def`, and of a coroutine that may wait for nothing.

Owns: the one place that tells the two apart. It must never call the function: the caller does, and handles its exceptions.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Coroutine, Generator
from typing import Any

__all__ = ["begun", "maybe_await"]


async def maybe_await(value: object) -> Any:
    """The value; if it is awaitable, its result."""
    return await value if inspect.isawaitable(value) else value


def begun(coro: Coroutine[Any, None, object]) -> object:
    """Take the first step of a coroutine, here and now. Returns its result, if it waits for nothing, and else a coroutine of the rest.

    In that step it must not ask which task it is in: it is in the caller's, and in the rest in another one.
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
    """Wait for what was waited for, and go on from there."""
    while True:
        try:
            value = yield item
        except GeneratorExit:
            coro.close()
            raise
        except BaseException as error:  # noqa: BLE001 -- it is the coroutine's to handle
            thrown: BaseException | None = error
        else:
            thrown = None
        try:
            item = coro.send(value) if thrown is None else coro.throw(thrown)
        except StopIteration as stop:
            return stop.value
