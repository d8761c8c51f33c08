"""Tasks that may run user code: guardrails, hooks, predicates, models, tools.

asyncio lets a `SystemExit` or `KeyboardInterrupt` leave a task through the whole loop, which ends
every run on it. `start_task` turns it into an `AgentError` for the code that awaits the task.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from .errors import AgentError, text_of

__all__ = ["all_at_once", "guarded", "start_task"]

T = TypeVar("T")


def start_task(
    work: Coroutine[Any, Any, T],
    what: str,
    *,
    name: str | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
    context: contextvars.Context | None = None,
) -> asyncio.Task[T]:
    """Start a task, which the caller awaits.

    `what` is the subject of the error if the work crashes, such as "a guardrail of agent 'a'".
    """
    task = asyncio.Task(
        guarded(work, what), loop=loop or asyncio.get_running_loop(), name=name, context=context
    )
    # A task that is cancelled before its first step has not started the work.
    task.add_done_callback(lambda _: work.close())
    return task


async def guarded(work: Coroutine[Any, Any, T], what: str) -> T:
    """Await the work. Its `SystemExit` or `KeyboardInterrupt` is raised as an `AgentError`."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as crash:
        msg = f"{what} crashed with {type(crash).__name__}: {text_of(crash)}"
        raise AgentError(msg) from crash


async def all_at_once(works: Iterable[Coroutine[Any, Any, T]], what: str) -> list[T]:
    """Run all works concurrently and return their results, in their order.

    If one raises, cancel the others, wait for them and raise its error.
    """
    tasks = [start_task(work, what) for work in works]
    try:
        for task in asyncio.as_completed(tasks):
            await task
        return [task.result() for task in tasks]
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
