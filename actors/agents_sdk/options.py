"""The options that an agent and a run take beside the SDK's own parameters.

Owns: their types, for the checker and the editor: understudy's own classes check the values. It must never name an option that these do not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from ...runtime.actor.supervision import Restart
from ...runtime.agent.context import AgentContext
from ...runtime.agent.history import HistoryPolicy, HistoryRewriter
from ...runtime.agent.hooks import AgentHooks, RunHooks
from ...runtime.agent.options import OptionsLike
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.models import ChatModel, ModelSettings
from ...runtime.stores import Store
from ...runtime.system.system import ActorSystem
from ..agent import Agent
from ..chat_agent.setup import MessageModifier
from ..guardrail import GuardrailFunction, InputGuardrail, OutputGuardrail
from ..handoffs.filters import HandoffInputFilter
from ..handoffs.handoff import Handoff
from ..middleware import Middleware
from ..tools.tool import Tool

__all__ = ["AgentChanges", "AgentOptions", "AgentParameters", "InputItem", "Instructions", "RunCallOptions", "RunOptions", "RunnerOptions"]

Instructions: TypeAlias = str | Callable[..., str | Awaitable[str]]
"""A text, or a function that makes it: of the run's context and the agent, or of the context alone."""

InputItem: TypeAlias = Message | Mapping[str, object]
"""A message, or a dict with its role and content."""


class AgentOptions(TypedDict, total=False):
    """What an `Agent` passes on to `ChatModelAgent` as it is."""

    sub_agents: Sequence[Agent]
    max_iterations: int
    exit_tool: bool | Tool
    return_directly: Collection[str]
    output_key: str | None
    output_type: object
    make_model_input: Callable[[str, AgentInput, AgentContext], Sequence[Message]] | None
    message_modifier: MessageModifier | None
    middleware: Sequence[Middleware]
    unknown_tool: Callable[[str, str], object] | None
    on_tool_error: Literal["report", "raise"]
    parallel_tool_calls: bool
    multiple_handoffs: Literal["first", "last", "error"]
    nest_handoff_history: bool
    input_guardrails: Sequence[InputGuardrail | GuardrailFunction]
    output_guardrails: Sequence[OutputGuardrail | GuardrailFunction]
    model_settings: ModelSettings | None
    disallow_transfer_to_parent: bool
    history: HistoryPolicy | HistoryRewriter | None
    hooks: AgentHooks | None
    on_failure: Restart | None


class _AgentParameters(AgentOptions, total=False):
    handoff_description: str | None
    instructions: Instructions | None
    tools: Sequence[Tool | Callable[..., object]]
    handoffs: Sequence[Agent | Handoff]
    model: ChatModel | str | None


class AgentParameters(_AgentParameters):
    """All that an `Agent` is made of."""

    name: str


class AgentChanges(_AgentParameters, total=False):
    """All that `Agent.clone` may change."""

    name: str


class RunnerOptions(TypedDict, total=False):
    """Those options of a run that understudy's `Runner` takes when it is made."""

    hooks: RunHooks | None
    handoff_input_filter: HandoffInputFilter | None
    store: Store | None
    system: ActorSystem | None
    max_transfers: int
    durability: Literal["none", "interrupt", "step"]


class RunCallOptions(TypedDict, total=False):
    """Those options of a run that understudy's `Runner.run` takes."""

    checkpoint_id: str | None
    session_id: str | None
    session_values: Mapping[str, object] | None
    options: OptionsLike
    streaming: bool | None
    timeout: float | None


class RunOptions(RunnerOptions, RunCallOptions, total=False):
    """What a run takes beside its agent, its input and its context."""
