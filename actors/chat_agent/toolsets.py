"""An agent some of whose tools are known only when it plays.

Owns: that they are asked for when the agent begins or goes on, and what is worked out from them, which is kept until they change. It must never change the
agent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from ...runtime.agent.context import AgentContext
from ...runtime.agent.door import AgentDoor
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ..tools.tool import Tool
from .loop import React
from .setup import Setup

if TYPE_CHECKING:
    from .chat_model_agent import ChatModelAgent

__all__ = ["play_with_toolsets"]


async def play_with_toolsets(agent: ChatModelAgent, given: AgentInput, context: AgentContext, door: AgentDoor) -> AsyncGenerator[AgentEvent, None]:
    """Play with the tools that there are now."""
    tools = tuple([await toolset.tools_in(door.system) for toolset in agent.toolsets])
    twin, setup = _widened(agent, door, tools)
    async for event in React(twin, setup, given, context, door):
        yield event


def _widened(agent: ChatModelAgent, door: AgentDoor, tools: tuple[object, ...]) -> tuple[ChatModelAgent, Setup]:
    own, override = agent.setup(door.node), door.run.override
    known = own.widened if override is None else None
    if known is not None and len(known[0]) == len(tools) and all(one is other for one, other in zip(known[0], tools, strict=True)):
        return known[1], known[2]
    more = [tool for found in tools if isinstance(found, tuple) for tool in found if isinstance(tool, Tool)]
    twin = agent.overridden_twin(None, {}, more) if override is None else agent.overridden_twin(override.model_of(agent.name), dict(override.tools), more)
    setup = Setup(twin, door.node)
    if override is None:
        own.widened = (tools, twin, setup)
    return twin, setup
