"""The state of one tool call, and of the calls of one response. `calls` changes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

from ....runtime.clock import Timer
from ....runtime.data.chat import ToolCall
from ..model_events import RealtimeModelToolCallEvent
from ..state.settings import AgentSettings
from .responses import Response

__all__ = ["Batch", "Call"]


@dataclass(eq=False)
class Batch:
    """The calls of one response."""

    response: Response | None
    open: set[str] = field(default_factory=set)
    """The calls whose outputs the next response waits for."""
    ended: list[str] = field(default_factory=list)
    """The items of the available outputs."""
    closed: bool = False
    handed_over: bool = False
    counted: bool = False
    """Whether it counts as a round of tool calls without user input."""


@dataclass(eq=False)
class Call:
    """One call."""

    id: str
    name: str
    arguments: str
    item_id: str
    settings: AgentSettings
    batch: Batch
    epoch: int
    """The connection whose server knows the call."""
    state: Literal["waiting", "approval", "running", "done"] = "waiting"
    alone: bool = False
    """Whether its output requests a separate response."""
    quiet: bool = False
    """Whether its output requests no response."""
    asked: bool = False
    given: str | None = None
    """The arguments from an approval, instead of the model's."""
    output: str | None = None
    sent: bool = False
    recorded: bool = False
    """Whether its output is stored, if there is a store."""
    queued: int = 0
    """The connection on which its output waits to be sent."""
    wished: bool = False
    task: asyncio.Task[None] | None = None
    timer: Timer | None = None

    @property
    def tool(self) -> Any:
        return self.settings.tools.get(self.name)

    def as_call(self) -> ToolCall:
        return ToolCall(self.id, self.name, self.arguments if self.given is None else self.given)

    def as_event(self) -> RealtimeModelToolCallEvent:
        return RealtimeModelToolCallEvent(self.name, self.id, self.arguments, self.item_id)
