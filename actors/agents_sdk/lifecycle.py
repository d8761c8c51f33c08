"""Hooks: what is told of a run while it goes on.

Owns: their names and signatures. Unlike understudy's, they are `async def`, and what one raises ends the run. It must never call them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from .run_context import AgentHookContext, RunContextWrapper, TContext

if TYPE_CHECKING:
    from .items import ModelResponse
    from .tool import Tool

__all__ = ["AgentHooks", "AgentHooksBase", "RunHooks", "RunHooksBase"]

TAgent = TypeVar("TAgent", default=Any)


class RunHooksBase(Generic[TContext, TAgent]):
    """Is told of all agents of a run: `Runner.run(..., hooks=MyHooks())`."""

    async def on_llm_start(self, context: RunContextWrapper[TContext], agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """A model is about to be called."""

    async def on_llm_end(self, context: RunContextWrapper[TContext], agent: Any, response: ModelResponse) -> None:
        """A model has answered."""

    async def on_agent_start(self, context: AgentHookContext[TContext], agent: TAgent) -> None:
        """An agent begins."""

    async def on_agent_end(self, context: AgentHookContext[TContext], agent: TAgent, output: Any) -> None:
        """An agent has found the final output."""

    async def on_handoff(self, context: RunContextWrapper[TContext], from_agent: TAgent, to_agent: TAgent) -> None:
        """An agent hands over to another one."""

    async def on_tool_start(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Tool) -> None:
        """A tool is about to be called."""

    async def on_tool_end(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Tool, result: object) -> None:
        """A tool has returned."""


class AgentHooksBase(Generic[TContext, TAgent]):
    """Is told of one agent: `Agent(..., hooks=MyHooks())`."""

    async def on_start(self, context: AgentHookContext[TContext], agent: TAgent) -> None:
        """The agent begins."""

    async def on_end(self, context: AgentHookContext[TContext], agent: TAgent, output: Any) -> None:
        """The agent has found the final output."""

    async def on_handoff(self, context: RunContextWrapper[TContext], agent: TAgent, source: TAgent) -> None:
        """The agent hands over: `source` is this one, `agent` the other."""

    async def on_tool_start(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Tool) -> None:
        """A tool is about to be called."""

    async def on_tool_end(self, context: RunContextWrapper[TContext], agent: TAgent, tool: Tool, result: object) -> None:
        """A tool has returned."""

    async def on_llm_start(self, context: RunContextWrapper[TContext], agent: Any, system_prompt: str | None, input_items: list[Any]) -> None:
        """The model is about to be called."""

    async def on_llm_end(self, context: RunContextWrapper[TContext], agent: Any, response: ModelResponse) -> None:
        """The model has answered."""


RunHooks = RunHooksBase[TContext, Any]
AgentHooks = AgentHooksBase[TContext, Any]
