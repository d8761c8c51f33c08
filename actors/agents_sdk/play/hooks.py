"""The calling of hooks.

Owns: that the run's and the agent's hooks are called at once. What one raises ends the run. It must never swallow an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from .live import LiveRun

__all__ = ["all_of", "call_hooks"]


async def call_hooks(run: LiveRun, agent: Any, of_run: str, of_agent: str, *args: Any, agent_args: tuple[Any, ...] | None = None) -> None:
    """Call a hook of the run, and one of the agent."""
    own = agent.hooks
    if run.hooks is None:
        if own is not None:
            await getattr(own, of_agent)(*(args if agent_args is None else agent_args))
        return
    if own is None:
        await getattr(run.hooks, of_run)(*args)
        return
    await all_of(getattr(run.hooks, of_run)(*args), getattr(own, of_agent)(*(args if agent_args is None else agent_args)))


async def all_of(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """The results of all of them. If one raises, the others are cancelled, and have ended by then."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
