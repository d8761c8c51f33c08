"""An agent with toolsets, whose tools become known only when it runs.

The tools are listed when the agent starts or resumes. The resulting setup is cached until they
change. The agent itself stays unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.context import AgentContext
from ...runtime.agent.run_messages import TellsLast
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ..tools.tool import Tool
from .loop import ChatLoop
from .setup import Setup

if TYPE_CHECKING:
    from .chat_model_agent import ChatModelAgent

__all__ = ["ToolsetPlay"]


class ToolsetPlay(TellsLast):
    """A run of an agent with the tools that exist when it starts."""

    __slots__ = ("_agent", "_context", "_given", "_play", "_runtime")

    def __init__(
        self, agent: ChatModelAgent, given: AgentInput, context: AgentContext, runtime: AgentRuntime
    ) -> None:
        self._agent = agent
        self._given = given
        self._context = context
        self._runtime = runtime
        self._play: ChatLoop | None = None  # made when its tools are known
        self.is_last = False

    async def next_event(self) -> AgentEvent | None:
        play = self._play
        if play is None:
            tools = tuple(
                [await toolset.tools_in(self._runtime.system) for toolset in self._agent.toolsets]
            )
            play = self._play = ChatLoop(
                *_widened(self._agent, self._runtime, tools),
                self._given,
                self._context,
                self._runtime,
            )
        event = await play.next_event()
        self.is_last = play.is_last
        return event


def _widened(
    agent: ChatModelAgent, runtime: AgentRuntime, tools: tuple[object, ...]
) -> tuple[ChatModelAgent, Setup]:
    own, override = agent.setup(runtime.node), runtime.run.override
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
    setup = Setup(twin, runtime.node)
    if override is None:
        own.widened = (tools, twin, setup)
    return twin, setup
