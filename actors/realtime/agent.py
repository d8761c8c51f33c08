"""`RealtimeAgent`, the definition of an agent that listens and speaks.

A `Runner` does not run it. It stores nothing of a session, so any number of sessions may use it at
once.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from types import GenericAlias
from typing import Any, ClassVar, TypeAlias

from ...runtime.agent.context import AgentContext
from ...runtime.agent.hooks import AgentHooks, RunHooks
from ...runtime.agent.run_context import RunContext
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ...runtime.errors import UsageError
from ...runtime.maybe_await import maybe_await
from ...runtime.tasks import all_at_once
from ..agent import Agent
from ..guardrail import InputGuardrail, OutputGuardrail
from ..handoffs.handoff import Handoff
from ..tools.tool import Tool
from ..tools.tool import tool as make_tool

__all__ = ["RealtimeAgent", "RealtimeAgentHooks", "RealtimeRunHooks"]

RealtimeAgentHooks: TypeAlias = AgentHooks
RealtimeRunHooks: TypeAlias = RunHooks
Instructions: TypeAlias = "str | Callable[[RunContext, RealtimeAgent], Any] | None"


class RealtimeAgent(Agent):
    """An agent that listens and speaks. `RealtimeRunner(agent)` opens its sessions.

    `tools` and `handoffs` are lists that may be filled later, so that agents can hand off in
    circles. A session reads them when the agent takes over.
    """

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    def __init__(
        self,
        name: str,
        instructions: Instructions = None,
        *,
        handoff_description: str | None = None,
        prompt: Any = None,
        tools: list[Any] | None = None,
        handoffs: list[RealtimeAgent | Handoff] | None = None,
        input_guardrails: list[Any] | None = None,
        output_guardrails: list[Any] | None = None,
        hooks: AgentHooks | None = None,
        voice: Any = None,
        mcp_servers: list[Any] | None = None,
        mcp_config: Any = None,
    ) -> None:
        if not isinstance(name, str):
            msg = f"RealtimeAgent name must be a string, got {type(name).__name__}"
            raise TypeError(msg)
        lists = {
            "tools": tools,
            "handoffs": handoffs,
            "input_guardrails": input_guardrails,
            "output_guardrails": output_guardrails,
        }
        for key, value in lists.items():
            if value is not None and not isinstance(value, list | tuple):
                msg = f"RealtimeAgent {key} must be a list, got {type(value).__name__}"
                raise TypeError(msg)
        if (
            instructions is not None
            and not isinstance(instructions, str)
            and not callable(instructions)
        ):
            msg = (
                "RealtimeAgent instructions must be a string, callable, or None, got "
                f"{type(instructions).__name__}"
            )
            raise TypeError(msg)
        if mcp_servers:
            msg = (
                f"agent {name!r}: mcp_servers is not supported by realtime agents. Pass "
                "their tools as tools=[...]."
            )
            raise UsageError(msg, agent=name)
        super().__init__(name=name, description=handoff_description or "", hooks=hooks)
        self.instructions = instructions
        self.handoff_description = handoff_description
        self.prompt = prompt
        self.tools: list[Any] = list(tools or ())
        self.handoffs: list[RealtimeAgent | Handoff] = list(handoffs or ())
        self.input_guardrails: list[Any] = list(input_guardrails or ())
        self.output_guardrails: list[Any] = list(output_guardrails or ())
        self.voice = voice
        self.mcp_servers: list[Any] = []
        self.mcp_config = mcp_config

    def clone(self, **changes: Any) -> RealtimeAgent:
        """Return a copy with these changes."""
        known = [
            one for one in inspect.signature(RealtimeAgent.__init__).parameters if one != "self"
        ]
        given = {name: getattr(self, name) for name in known}
        for name in changes:
            if name not in given:
                msg = f"RealtimeAgent.clone() got an unexpected keyword argument {name!r}"
                raise TypeError(msg)
        return type(self)(**{**given, **changes})

    async def get_system_prompt(self, context: RunContext) -> str | None:
        """Return its instructions for this session."""
        if not callable(self.instructions):
            return self.instructions
        text = await maybe_await(self.instructions(context, self))
        if text is not None and not isinstance(text, str):
            msg = (
                f"agent {self.name!r}: instructions must return a string, got a "
                f"{type(text).__name__}."
            )
            raise UsageError(msg, agent=self.name)
        return text

    async def get_all_tools(self, context: RunContext) -> list[Any]:
        """Return its tools that are enabled now."""
        return await self.enabled_tools(self.tools, context)

    async def enabled_tools(self, tools: Iterable[Any], context: RunContext) -> list[Any]:
        """Return the tools that are enabled now."""
        found = [self._as_tool(one) for one in tools]
        switches = [getattr(one, "is_enabled", True) for one in found]
        states = await all_at_once(
            (_is_on(one, context, self) for one in switches),
            f"is_enabled of a tool of agent {self.name!r}",
        )
        return [one for one, state in zip(found, states, strict=True) if state]

    def _as_tool(self, given: Any) -> Any:
        if isinstance(given, Tool) or hasattr(given, "on_invoke_tool"):
            return given
        if inspect.isfunction(given) or inspect.ismethod(given):
            return make_tool(given)
        msg = (
            f"agent {self.name!r}: tools of a realtime agent must be function tools, got "
            f"{given!r}. Pass @tool functions."
        )
        raise UsageError(msg, agent=self.name)

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        msg = (
            f"agent {self.name!r} is a RealtimeAgent, which a Runner cannot run. Open a session "
            f"of it: RealtimeRunner({self.name}).run()."
        )
        raise UsageError(msg, agent=self.name)


async def _is_on(switch: object, context: RunContext, agent: RealtimeAgent) -> object:
    return await maybe_await(switch(context, agent)) if callable(switch) else switch


def guardrail_name(one: Any) -> str:
    """Return the name of a guardrail."""
    if isinstance(one, InputGuardrail | OutputGuardrail):
        return one.get_name()
    get_name = getattr(one, "get_name", None)
    return (
        str(get_name())
        if callable(get_name)
        else str(getattr(one, "__name__", None) or "guardrail")
    )
