"""One attempt at a call of a tool: whether something still waits for it.

Owns: the event by which threads are told that nothing does, and whether one was left at work. It must never claim to end a thread: that is not possible.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from ...runtime.agent.door import AgentDoor
from ...runtime.clock import Deadline

__all__ = ["Attempt"]

T = TypeVar("T")


class Attempt:
    """One attempt at a call. For this package only."""

    __slots__ = ("_events", "_given_up", "deadline", "left_at_work")

    def __init__(self) -> None:
        self._events: list[threading.Event] = []  # the first one counts: two threads may both be the first to ask for it
        self._given_up = False
        self.deadline: Deadline | None = None  # for a tool that is a plain `def`: counted from when its thread has begun
        self.left_at_work = False  # whether a thread of it was at work when it was given up

    @property
    def cancelled(self) -> threading.Event:
        """Set when nothing waits for it any more."""
        if not self._events:
            self._events.append(threading.Event())
        event = self._events[0]
        if self._given_up:
            event.set()
        return event

    def give_up(self) -> None:
        """Nothing waits for it any more."""
        self._given_up = True
        for event in self._events:
            event.set()

    async def in_thread(self, door: AgentDoor, tool: str, function: Callable[[], T]) -> T:
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
            deadline.stop()  # as long as the call waits for a thread
        try:
            return await door.run_tool(work, tool, None if deadline is None else deadline.start)
        except asyncio.CancelledError:
            self.left_at_work = at_work
            raise
