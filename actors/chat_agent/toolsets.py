"""An agent with toolsets, whose tools become known only when it runs.

The tools are listed when the agent starts or resumes. The resulting setup is cached until they
change. The agent itself stays unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.agent.context import AgentContext
from ...runtime.agent.door import AgentDoor
from ...runtime.agent.run_messages import TellsLast
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ..tools.tool import Tool
from .loop import React
from .setup import Setup

if TYPE_CHECKING:
    from .chat_model_agent import ChatModelAgent

__all__ = ["ToolsetPlay"]


class ToolsetPlay(TellsLast):
    """A run of an agent with the tools that exist when it starts."""

    __slots__ = ("_agent", "_context", "_door", "_given", "_play")

    def __init__(
        self, agent: ChatModelAgent, given: AgentInput, context: AgentContext, door: AgentDoor
    ) -> None:
        self._agent = agent
        self._given = given
        self._context = context
        self._door = door
        self._play: React | None = None  # made when its tools are known
        self.is_last = False

    async def next_event(self) -> AgentEvent | None:
        play = self._play
        if play is None:
            tools = tuple(
                [await toolset.tools_in(self._door.system) for toolset in self._agent.toolsets]
            )
            play = self._play = React(
                *_widened(self._agent, self._door, tools), self._given, self._context, self._door
            )
        event = await play.next_event()
        self.is_last = play.is_last
        return event


def _widened(
    agent: ChatModelAgent, door: AgentDoor, tools: tuple[object, ...]
) -> tuple[ChatModelAgent, Setup]:
    own, override = agent.setup(door.node), door.run.override
    known = own.widened if override is None else None
    if (
        known is not None
        and len(known[0]) == len(tools)
        and all(one is other for one, other in zip(known[0], tools, strict=True))
    ):
        return known[1], known[2]
    more = [
        tool
        for found in tools
        if isinstance(found, tuple)
        for tool in found
        if isinstance(tool, Tool)
    ]
    twin = (
        agent.overridden_twin(None, {}, more)
        if override is None
        else agent.overridden_twin(override.model_of(agent.name), dict(override.tools), more)
    )
    setup = Setup(twin, door.node)
    if override is None:
        own.widened = (tools, twin, setup)
    return twin, setup
