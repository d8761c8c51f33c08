"""An agent, by the SDK's interface.

Owns: its fields, which may be changed until it runs, and what they have to be. To the runtime it is an ordinary definition: any Runner, workflow or server of
understudy takes it. It must never keep anything of a run.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NotRequired, TypeAlias, get_origin

from typing_extensions import TypedDict

from ...runtime.maybe_await import maybe_await
from ..agent import Agent as Definition
from .agent_output import AgentOutputSchemaBase
from .guardrail import InputGuardrail, OutputGuardrail
from .lifecycle import AgentHooksBase
from .missing import refuse
from .model_settings import ModelSettings, as_model_settings
from .models.default_models import get_default_model_settings
from .models.interface import Model
from .prompts import DynamicPromptFunction, Prompt, PromptUtil
from .run_context import RunContextWrapper, TContext

if TYPE_CHECKING:
    from ...runtime.agent.context import AgentContext
    from ...runtime.data.agent_input import AgentInput
    from ...runtime.data.events import AgentEvent
    from .handoffs import Handoff
    from .stream_events import StreamEvent
    from .tool import FunctionTool, Tool

__all__ = ["Agent", "AgentBase", "AgentToolStreamEvent", "MCPConfig", "StopAtTools", "ToolsToFinalOutputFunction", "ToolsToFinalOutputResult"]


_FIXED: Final = ("fixed_options", "history", "on_failure", "disallow_transfer_to_parent")
"""What understudy's `with_options` fixes."""


@dataclass
class ToolsToFinalOutputResult:
    """Whether the results of tools are the final output, and what it is."""

    is_final_output: bool
    final_output: Any | None = None


ToolsToFinalOutputFunction: TypeAlias = Callable[[RunContextWrapper[Any], list[Any]], Any]


class AgentToolStreamEvent(TypedDict):
    """What is seen of an agent that is called as a tool."""

    event: StreamEvent
    agent: Any
    tool_call: Any


class StopAtTools(TypedDict):
    """The run ends with the result of the first of these tools."""

    stop_at_tool_names: list[str]


class MCPConfig(TypedDict):
    """How tools of MCP servers are made."""

    convert_schemas_to_strict: NotRequired[bool]
    failure_error_function: NotRequired[Any]
    include_server_in_tool_names: NotRequired[bool]


@dataclass(eq=False)
class AgentBase(Generic[TContext]):
    """What agents and realtime agents have in common."""

    name: str
    handoff_description: str | None = None
    tools: list[Tool] = field(default_factory=list)
    mcp_servers: list[Any] = field(default_factory=list)
    mcp_config: MCPConfig = field(default_factory=lambda: MCPConfig())

    async def get_mcp_tools(self, run_context: RunContextWrapper[TContext]) -> list[Tool]:
        """The tools of its MCP servers."""
        if self.mcp_servers:
            refuse("Agent(mcp_servers=...)")
        return []

    async def get_all_tools(self, run_context: RunContextWrapper[TContext]) -> list[Tool]:
        """All tools that are enabled now."""
        mcp = await self.get_mcp_tools(run_context) if self.mcp_servers else []
        enabled = []
        for tool in self.tools:
            asked = getattr(tool, "is_enabled", True)
            if asked is True or (callable(asked) and await maybe_await(asked(run_context, self))) or (not callable(asked) and asked):
                enabled.append(tool)
        return [*mcp, *enabled]


@dataclass(eq=False)
class Agent(AgentBase[TContext], Definition):
    """An agent: a model with instructions, tools, handoffs and guardrails."""

    instructions: str | Callable[[RunContextWrapper[TContext], Any], Any] | None = None
    prompt: Prompt | DynamicPromptFunction | None = None
    handoffs: list[Agent[Any] | Handoff[TContext, Any]] = field(default_factory=list)
    model: str | Model | None = None
    model_settings: ModelSettings = field(default_factory=get_default_model_settings)
    input_guardrails: list[InputGuardrail[TContext]] = field(default_factory=list)
    output_guardrails: list[OutputGuardrail[TContext]] = field(default_factory=list)
    output_type: type[Any] | AgentOutputSchemaBase | None = None
    hooks: AgentHooksBase[TContext, Any] | None = None  # type: ignore[assignment]  # the SDK's: the agent calls them itself
    tool_use_behavior: Literal["run_llm_again", "stop_on_first_tool"] | StopAtTools | ToolsToFinalOutputFunction = "run_llm_again"
    reset_tool_choice: bool = True

    # What the runtime reads of a definition.
    calls_own_hooks: ClassVar[bool] = True  # type: ignore[misc]  # the same for all of them
    has_handoffs: ClassVar[bool] = True  # type: ignore[misc]  # as above
    sub_agents: ClassVar[tuple[Definition, ...]] = ()  # type: ignore[misc]  # as above
    disallow_transfer_to_parent: ClassVar[bool] = False  # type: ignore[misc]  # as above
    history: ClassVar[None] = None  # type: ignore[misc]  # as above
    on_failure: ClassVar[None] = None  # type: ignore[misc]  # as above

    def __post_init__(self) -> None:
        _check(self)
        given: Any = self.model
        if given is not None and not isinstance(given, str | Model):
            from .models.understudy_model import as_model  # noqa: PLC0415 -- for those who give one

            self.model = as_model(given)
        self.model_settings = as_model_settings(self.model_settings, "Agent model_settings")
        if self.model is not None and self.model_settings == get_default_model_settings():
            self.model_settings = _settings_for(self.model)

    def __eq__(self, other: object) -> bool:
        # As the SDK compares agents: by what they are made of.
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in dataclasses.fields(self))

    __hash__ = object.__hash__
    """By identity: an agent may be changed until it runs."""

    def __getstate__(self) -> dict[str, Any]:
        # What is kept for runs belongs to this very object, and to no copy of it.
        return {name: value for name, value in self.__dict__.items() if not name.startswith("kept_")}

    @property
    def description(self) -> str:  # type: ignore[override]  # the runtime only reads it
        return self.handoff_description or ""

    @property
    def followers(self) -> Sequence[Definition]:  # type: ignore[override]  # read only
        """Those to which it may hand over, by whose names a run that is kept finds them again. Of agents that share a name there is none."""
        if not self.handoffs:
            return ()
        from .run_state.agents_by_name import reachable_agents  # noqa: PLC0415 -- built on agents

        targets = {id(one if isinstance(one, Agent) else getattr(one, "agent", None)) for one in self.handoffs}
        agents = list(reachable_agents(self))
        names = [agent.name for agent in agents]
        return [agent for agent in agents if id(agent) in targets and names.count(agent.name) == 1]

    def clone(self, **kwargs: Any) -> Agent[TContext]:
        """A copy with these changes. A list that is not given is the very list of this agent."""
        if "model" in kwargs and "model_settings" not in kwargs and self.model_settings == _settings_for(self.model):
            kwargs["model_settings"] = _settings_for(kwargs["model"])
        twin = dataclasses.replace(self, **kwargs)
        twin.__dict__.update({name: self.__dict__[name] for name in _FIXED if name in self.__dict__})
        return twin

    async def get_system_prompt(self, run_context: RunContextWrapper[TContext]) -> str | None:
        """What the model is told first."""
        instructions = self.instructions
        if not callable(instructions):
            return instructions
        parameters = list(inspect.signature(instructions).parameters)
        if len(parameters) != 2:  # noqa: PLR2004 -- the context and the agent
            msg = f"'instructions' callable must accept exactly 2 arguments (context, agent), but got {len(parameters)}: {parameters}"
            raise TypeError(msg)
        text: str | None = await maybe_await(instructions(run_context, self))
        return text

    async def get_prompt(self, run_context: RunContextWrapper[TContext]) -> Any:
        """Its prompt that is kept at OpenAI."""
        return None if self.prompt is None else await PromptUtil.to_model_input(self.prompt, run_context, self)

    def as_tool(  # type: ignore[override]  # the SDK's
        self,
        tool_name: str | None = None,
        tool_description: str | None = None,
        custom_output_extractor: Callable[[Any], Any] | None = None,
        is_enabled: bool | Callable[[RunContextWrapper[Any], Any], Any] = True,
        on_stream: Callable[[AgentToolStreamEvent], Any] | None = None,
        **options: Any,
    ) -> FunctionTool:
        """This agent as a tool of another: it is given what the model writes, and its final output is the result."""
        from .agent_tool import agent_as_tool  # noqa: PLC0415 -- built on runs

        return agent_as_tool(self, tool_name, tool_description, custom_output_extractor, is_enabled, on_stream, **options)

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:
        """Play, as a part of a run of understudy's."""
        from .play.player import play  # noqa: PLC0415 -- built on agents

        return play(self, input, context)


def _settings_for(model: Any) -> ModelSettings:
    return get_default_model_settings(model) if model is None or isinstance(model, str) else ModelSettings()


def _check(agent: Agent[Any]) -> None:
    """Raise, if a field is not what it has to be."""

    def refuse_type(name: str, wanted: str) -> None:
        msg = f"Agent {name} must be {wanted}, got {type(getattr(agent, name)).__name__}"
        raise TypeError(msg)

    if not isinstance(agent.name, str):
        refuse_type("name", "a string")
    if agent.handoff_description is not None and not isinstance(agent.handoff_description, str):
        refuse_type("handoff_description", "a string or None")
    for name in ("tools", "mcp_servers", "handoffs", "input_guardrails", "output_guardrails"):
        if not isinstance(getattr(agent, name), list):
            refuse_type(name, "a list")
    if not isinstance(agent.mcp_config, dict):
        refuse_type("mcp_config", "a dict")
    if agent.instructions is not None and not isinstance(agent.instructions, str) and not callable(agent.instructions):
        refuse_type("instructions", "a string, callable, or None")
    if agent.prompt is not None and not callable(agent.prompt) and not hasattr(agent.prompt, "get"):
        refuse_type("prompt", "a Prompt, DynamicPromptFunction, or None")
    model: Any = agent.model
    if model is not None and not isinstance(model, str | Model) and not hasattr(model, "generate") and not hasattr(model, "stream"):
        refuse_type("model", "a string, Model, or None")
    kind = agent.output_type
    if kind is not None and not isinstance(kind, type | AgentOutputSchemaBase) and get_origin(kind) is None:
        refuse_type("output_type", "a type, AgentOutputSchemaBase, or None")
    if agent.hooks is not None and not isinstance(agent.hooks, AgentHooksBase):
        refuse_type("hooks", "an AgentHooks instance or None")
    behavior: Any = agent.tool_use_behavior
    if behavior not in ("run_llm_again", "stop_on_first_tool") and not isinstance(behavior, dict) and not callable(behavior):
        refuse_type("tool_use_behavior", "'run_llm_again', 'stop_on_first_tool', StopAtTools dict, or callable")
    if not isinstance(agent.reset_tool_choice, bool):
        refuse_type("reset_tool_choice", "a boolean")
