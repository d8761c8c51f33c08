"""A run that is looked at while it goes on.

Owns: `RunResultStreaming`: its events, its cancelling, and what is known so far. It must never lose an event that came before the end.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from ..exceptions import AgentsException, MaxTurnsExceeded, ModelBehaviorError, RunErrorDetails
from .base import RunResultBase

if TYPE_CHECKING:
    from ..agent import Agent
    from ..agent_output import AgentOutputSchemaBase
    from ..items import ToolApprovalItem
    from ..stream_events import StreamEvent
    from ..tracing import Trace

__all__ = ["EventFeed", "RunResultStreaming"]


class EventFeed:
    """The events that were not looked at yet. They are held for as long as it takes: the run does not wait for its consumers but at the end of a turn."""

    def __init__(self) -> None:
        self._events: deque[Any] = deque()
        self._under_way = 0
        self._changed = asyncio.Event()
        self._quiet = asyncio.Event()
        self.consumers = 0

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: Any) -> None:
        """Another event."""
        self._events.append(event)
        self.wake()

    def take(self) -> Any:
        """The next one. It counts as looked at with `seen`."""
        self._under_way += 1
        return self._events.popleft()

    def seen(self) -> None:
        """One was looked at."""
        self._under_way -= 1
        self._settle()

    def clear(self) -> None:
        """Drop what was not looked at."""
        self._events.clear()
        self._settle()

    def wake(self) -> None:
        """Have consumers look again."""
        self._changed.set()

    def join(self) -> None:
        self.consumers += 1

    def leave(self) -> None:
        self.consumers -= 1
        self._settle()

    def _settle(self) -> None:
        if not self.consumers or not (self._events or self._under_way):
            self._quiet.set()

    async def changed(self) -> None:
        """Wait until there is something new."""
        self._changed.clear()
        if not self._events:
            await self._changed.wait()

    async def quiet(self) -> None:
        """Wait until all was looked at, or no consumer is left."""
        while self.consumers and (self._events or self._under_way):
            self._quiet.clear()
            await self._quiet.wait()


@dataclass
class RunResultStreaming(RunResultBase):
    """A run that is looked at while it goes on: iterate over `stream_events()`."""

    current_agent: Agent[Any]
    current_turn: int
    max_turns: int | None
    _current_agent_output_schema: AgentOutputSchemaBase | None = field(repr=False)
    trace: Trace | None = field(repr=False)
    is_complete: bool = False
    run_loop_task: asyncio.Task[Any] | None = field(default=None, repr=False)
    interruptions: list[ToolApprovalItem] = field(default_factory=list)
    handled_max_turns: bool = field(default=False, init=False, repr=False)
    feed: EventFeed = field(default_factory=EventFeed, init=False, repr=False)
    early_error: BaseException | None = field(default=None, init=False, repr=False)
    """What the run will fail with, as soon as what is under way has ended."""
    cancel_mode: Literal["none", "immediate", "after_turn"] = field(default="none", init=False, repr=False)

    def __post_init__(self) -> None:
        self._current_agent_ref = weakref.ref(self.current_agent)

    @property
    def last_agent(self) -> Agent[Any]:
        """The agent that is at work, or was last."""
        agent = self.__dict__.get("current_agent") or self._current_agent_ref()
        if agent is None:
            msg = "Last agent reference is no longer available."
            raise AgentsException(msg)
        return cast("Agent[Any]", agent)

    def note_agent(self, agent: Agent[Any]) -> None:
        """Another agent is at work."""
        self.current_agent = agent
        self._current_agent_ref = weakref.ref(agent)

    def _release_last_agent(self) -> None:
        self.__dict__["current_agent"] = None

    @property
    def run_loop_exception(self) -> BaseException | None:
        """What the run has failed with, once it has ended."""
        task = self.run_loop_task
        return None if task is None or not task.done() or task.cancelled() else task.exception()

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """End the run: now, or when the turn that is under way has ended. Go on looking at its events: they end then."""
        self.cancel_mode = mode
        if mode != "immediate":
            return
        task = self.run_loop_task
        if task is not None and not task.done():
            task.cancel()
        self.is_complete = True
        self.feed.clear()
        self.feed.wake()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self.stream_events()

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        """The events as they come. Raises what the run has failed with, behind the last of them."""
        feed, consumer = self.feed, _Consumer(self.feed)
        cancelled = False
        try:
            while True:
                consumer.is_here()
                error = self._error()
                if error is not None and (not _comes_last(error) or not feed):
                    self.is_complete = True
                    break
                if feed:
                    event = feed.take()
                    try:
                        yield event
                    finally:
                        feed.seen()
                    continue
                if self.is_complete or self.run_loop_task is None or self.run_loop_task.done():
                    break
                try:
                    await feed.changed()
                except asyncio.CancelledError:
                    cancelled = True
                    self.cancel()
                    raise
        finally:
            consumer.leaves()
            if not cancelled and self.run_loop_task is not None:
                await asyncio.wait([self.run_loop_task])
            feed.clear()
        error = self._error()
        if error is not None:
            raise error

    def _error(self) -> BaseException | None:
        """What the run has failed with."""
        error = self.run_loop_exception or self.early_error
        if error is None and self.max_turns is not None and self.current_turn > self.max_turns and not self.handled_max_turns:
            error = MaxTurnsExceeded(f"Max turns ({self.max_turns}) exceeded")
        if isinstance(error, AgentsException) and error.run_data is None and not error.keeps_run_to_itself:
            error.run_data = RunErrorDetails(
                input=self.input,
                new_items=self.new_items,
                raw_responses=self.raw_responses,
                last_agent=self.last_agent,
                context_wrapper=self.context_wrapper,
                input_guardrail_results=self.input_guardrail_results,
                output_guardrail_results=self.output_guardrail_results,
                tool_input_guardrail_results=self.tool_input_guardrail_results,
                tool_output_guardrail_results=self.tool_output_guardrail_results,
            )
        return error

    def __str__(self) -> str:
        return self._described(
            f'Current agent: Agent(name="{self.last_agent.name}", ...)',
            f"Current turn: {self.current_turn}",
            f"Max turns: {self.max_turns}",
            f"Is complete: {self.is_complete}",
            self._output_lines(),
            *self._counts(),
        )


def _comes_last(error: BaseException) -> bool:
    """Whether events that came before the error are shown before it is raised."""
    return isinstance(error, MaxTurnsExceeded) or (isinstance(error, ModelBehaviorError) and "terminal event" in str(error))


class _Consumer:
    """One iteration: it counts as long as its task is at it."""

    def __init__(self, feed: EventFeed) -> None:
        self._feed = feed
        self._task: asyncio.Task[Any] | None = None
        self._joined = False

    def is_here(self) -> None:
        task = asyncio.current_task()
        if task is self._task or task is None:
            return
        if self._task is not None:
            self._task.remove_done_callback(self._task_ended)
        self._task = task
        task.add_done_callback(self._task_ended)
        if not self._joined:
            self._joined = True
            self._feed.join()

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        if task is self._task and (task.cancelled() or task.exception() is not None):
            self.leaves()

    def leaves(self) -> None:
        if self._task is not None:
            self._task.remove_done_callback(self._task_ended)
            self._task = None
        if self._joined:
            self._joined = False
            self._feed.leave()
