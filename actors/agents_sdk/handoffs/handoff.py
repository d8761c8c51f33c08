"""A handoff, and how one is made.

Owns: `Handoff`, the checks of its callback, and the reading of what the model gives it. It must never choose the next agent: its function returns it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from pydantic import TypeAdapter
from typing_extensions import TypeVar

from ....runtime.maybe_await import maybe_await
from ..agent_output import validated_json
from ..exceptions import ModelBehaviorError, UserError
from ..run_context import RunContextWrapper, TContext
from ..strict_schema import ensure_strict_json_schema
from ..tracing.errors import attach_error
from .input_data import HandoffInputFilter

if TYPE_CHECKING:
    from ..agent import Agent, AgentBase

__all__ = ["Handoff", "OnHandoffWithInput", "OnHandoffWithoutInput", "THandoffInput", "handoff", "reader_of_input", "tool_name_of"]

THandoffInput = TypeVar("THandoffInput", default=Any)
TAgent = TypeVar("TAgent", default=Any)

OnHandoffWithInput: TypeAlias = Callable[[RunContextWrapper[Any], THandoffInput], Any]
OnHandoffWithoutInput: TypeAlias = Callable[[RunContextWrapper[Any]], Any]


def tool_name_of(name: str) -> str:
    """A name as a tool may have it."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", name).lower()


@dataclass
class Handoff(Generic[TContext, TAgent]):
    """A tool by which the model hands over to another agent."""

    tool_name: str
    tool_description: str
    input_json_schema: dict[str, Any]
    on_invoke_handoff: Callable[[RunContextWrapper[Any], str], Awaitable[TAgent]]
    """Called with the context and what the model has given, as JSON. Returns the agent that takes over."""
    agent_name: str
    input_filter: HandoffInputFilter | None = None
    nest_handoff_history: bool | None = None
    strict_json_schema: bool = True
    is_enabled: bool | Callable[[RunContextWrapper[Any], AgentBase[Any]], Any] = True
    agent: Any = field(default=None, kw_only=True, repr=False)
    """The agent that takes over, where it is always the same."""
    default_identity: tuple[str, str] | None = field(default=None, kw_only=True, repr=False)

    def get_transfer_message(self, agent: AgentBase[Any]) -> str:
        """What the model is told of the handoff."""
        return f'{{"assistant": {encode_basestring_ascii(agent.name)}}}'

    @classmethod
    def default_tool_name(cls, agent: AgentBase[Any]) -> str:
        """The name of the tool, if it is given none."""
        return tool_name_of(f"transfer_to_{agent.name}")

    @classmethod
    def default_tool_description(cls, agent: AgentBase[Any]) -> str:
        """What the model is told of the tool, if it is told nothing else."""
        return f"Handoff to the {agent.name} agent to handle the request. {agent.handoff_description or ''}"

    async def is_enabled_for_context(self, context: RunContextWrapper[Any], agent: AgentBase[Any]) -> bool:
        """Whether the model may hand over now."""
        return bool(await maybe_await(self.is_enabled(context, agent))) if callable(self.is_enabled) else self.is_enabled


def handoff(
    agent: Agent[TContext],
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: OnHandoffWithInput[Any] | OnHandoffWithoutInput | None = None,
    input_type: type[Any] | None = None,
    input_filter: HandoffInputFilter | None = None,
    nest_handoff_history: bool | None = None,
    is_enabled: bool | Callable[[RunContextWrapper[Any], Any], Any] = True,
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
) -> Handoff[TContext, Agent[TContext]]:
    """A handoff to an agent. `tool_name` and `tool_description` are other spellings of the overrides."""
    name, description = tool_name_override or tool_name, tool_description_override or tool_description
    adapter = reader_of_input(on_handoff, input_type)

    async def invoke(context: RunContextWrapper[Any], input_json: str | None = None) -> Agent[TContext]:
        if adapter is not None:
            if input_json is None:
                attach_error("Handoff function expected non-null input, but got None", details="input_json is None")
                msg = "Handoff function expected non-null input, but got None"
                raise ModelBehaviorError(msg)
            given = validated_json(input_json, adapter, strict=True, of_tool=True)
            await maybe_await(on_handoff(context, given))  # type: ignore[misc, call-arg]  # it was checked
        elif on_handoff is not None:
            await maybe_await(on_handoff(context))  # type: ignore[call-arg]  # it was checked
        return agent

    tool = name or Handoff.default_tool_name(agent)
    return Handoff(
        tool_name=tool,
        tool_description=description or Handoff.default_tool_description(agent),
        input_json_schema=ensure_strict_json_schema({} if adapter is None else adapter.json_schema()),
        on_invoke_handoff=invoke,
        agent_name=agent.name,
        input_filter=input_filter,
        nest_handoff_history=nest_handoff_history,
        is_enabled=is_enabled,
        agent=agent,
        default_identity=None if name else (agent.name, tool),
    )


def reader_of_input(on_handoff: Any, input_type: Any) -> TypeAdapter[Any] | None:
    """What reads the input, if there is any. Raises, if the callback takes something else."""
    if input_type is not None and on_handoff is None:
        msg = "You must provide on_handoff when input_type is provided"
        raise UserError(msg)
    if on_handoff is None:
        return None
    if not callable(on_handoff):
        msg = "on_handoff must be callable"
        raise UserError(msg)
    wanted = 1 if input_type is None else 2
    if len(inspect.signature(on_handoff).parameters) != wanted:
        msg = "on_handoff must take one argument: context" if wanted == 1 else "on_handoff must take two arguments: context and input"
        raise UserError(msg)
    return None if input_type is None else TypeAdapter(input_type)
