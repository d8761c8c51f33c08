"""One attempt at a tool call, and whether anything still waits for it.

An event notifies threads that nothing waits for them any longer. A thread cannot be ended from
outside, so an abandoned one is recorded as still running.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.clock import Deadline

__all__ = ["Attempt"]

T = TypeVar("T")


class Attempt:
    """One attempt at a call. For this package only."""

    __slots__ = ("_events", "_given_up", "deadline", "left_at_work")

    def __init__(self) -> None:
        self._events: list[
            threading.Event
        ] = []  # the first one counts: two threads may both create one
        self._given_up = False
        # For a plain `def`, counted from the start of its thread.
        self.deadline: Deadline | None = None
        self.left_at_work = False  # whether its thread was running when it was abandoned

    @property
    def cancelled(self) -> threading.Event:
        """An event that is set when nothing waits for the attempt any longer."""
        if not self._events:
            self._events.append(threading.Event())
        event = self._events[0]
        if self._given_up:
            event.set()
        return event

    def give_up(self) -> None:
        """Record that nothing waits for the attempt any longer."""
        self._given_up = True
        for event in self._events:
            event.set()

    async def in_thread(self, runtime: AgentRuntime, tool: str, function: Callable[[], T]) -> T:
        """Call a function in a worker thread."""
        deadline = self.deadline
        at_work = False

        def work() -> T:
            nonlocal at_work
            at_work = True
            try:
                return function()
            finally:
                at_work = False

        if deadline is not None:
            deadline.stop()  # while the call waits for a thread
        try:
            return await runtime.run_tool(work, tool, None if deadline is None else deadline.start)
        except asyncio.CancelledError:
            self.left_at_work = at_work
            raise
