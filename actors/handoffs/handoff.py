"""Handoffs to specialists, each by its own tool.

`Handoff` defines a handoff. The run's supervisor performs it, as a transfer.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, overload

from ...runtime.agent.run_context import RunContext
from ...runtime.errors import HandoffError, ModelBehaviorError, UsageError, text_of
from ...runtime.maybe_await import maybe_await
from ...runtime.models import ToolSpec
from ..agent import Agent
from ..tools.strict_schema import ensure_strict_json_schema
from .filters import HandoffInputFilter

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "Handoff",
    "HandoffRules",
    "OnHandoffWithInput",
    "OnHandoffWithoutInput",
    "THandoffInput",
    "as_handoff",
    "handoff",
    "transfer_message",
]

IsEnabled: TypeAlias = "bool | Callable[[RunContext, Agent], bool | Awaitable[bool]]"
"""Whether the model sees a handoff, or a function of context and agent that decides."""

THandoffInput = TypeVar("THandoffInput")
OnHandoffWithInput: TypeAlias = Callable[[RunContext, THandoffInput], object]
"""Called when an agent hands off, with the input from its model. It may be `async def`."""
OnHandoffWithoutInput: TypeAlias = Callable[[RunContext], object]
"""Called when an agent hands off. It may be `async def`."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class Handoff:
    """A tool by which an agent hands off to another.

    Make one with `handoff(agent)`, or directly if the target is chosen when the tool is called.
    """

    tool_name: str
    tool_description: str
    input_json_schema: Mapping[str, object]
    on_invoke_handoff: Callable[[RunContext, str], Awaitable[Agent]]
    """Returns the agent that takes over, from the run's context and the arguments as JSON."""
    agent_name: str
    input_filter: HandoffInputFilter | None = None
    strict_json_schema: bool = True
    is_enabled: IsEnabled = True
    mode: Literal["transfer", "call"] = "transfer"
    nest_handoff_history: bool | None = None
    """None means the setting of the agent that hands off."""
    pass_input: bool = False
    """Whether the agent that takes over receives the arguments."""
    agent: Agent | None = field(default=None, repr=False)
    """The target, if it is always the same."""

    # For annotations written for the Agents SDK: `Handoff[Context, Agent]`
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    @staticmethod
    def default_tool_name(agent: Agent) -> str:
        """Return `transfer_to_` and the agent's name, as a valid tool name."""
        return _ODD.sub("_", f"transfer_to_{agent.name}").lower()

    @staticmethod
    def default_tool_description(agent: Agent) -> str:
        """Return the default description for the model."""
        return f"Handoff to the {agent.name} agent to handle the request. {agent.description}"

    def get_transfer_message(self, agent: Agent) -> str:
        """Return the result of the call."""
        return transfer_message(agent.name)

    @property
    def spec(self) -> ToolSpec:
        """The description of the tool for the model."""
        return ToolSpec(
            self.tool_name,
            self.tool_description,
            self.input_json_schema or ensure_strict_json_schema({}),
            self.strict_json_schema,
        )

    async def is_enabled_for_context(self, context: RunContext, agent: Agent) -> bool:
        """Return the same as `enabled`. This is the Agents SDK's name of the method."""
        return await self.enabled(context, agent)

    async def enabled(self, context: RunContext, agent: Agent) -> bool:
        """Return whether the model sees the handoff now."""
        if not callable(self.is_enabled):
            return bool(self.is_enabled)
        try:
            return bool(await maybe_await(self.is_enabled(context, agent)))
        except Exception as error:
            msg = (
                f"is_enabled of the handoff {self.tool_name} raised {type(error).__name__}: "
                f"{text_of(error)}"
            )
            raise HandoffError(msg, agent=agent.name) from error


@overload
def handoff(
    agent: Agent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    *,
    on_handoff: OnHandoffWithoutInput | None = None,
    input_type: None = None,
    input_filter: HandoffInputFilter | None = None,
    is_enabled: IsEnabled = True,
    tool_name: str | None = None,
    tool_description: str | None = None,
    mode: Literal["transfer", "call"] = "transfer",
    nest_handoff_history: bool | None = None,
    pass_input: Literal[False] = False,
) -> Handoff: ...
@overload
def handoff(
    agent: Agent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    *,
    on_handoff: OnHandoffWithInput[THandoffInput],
    input_type: type[THandoffInput],
    input_filter: HandoffInputFilter | None = None,
    is_enabled: IsEnabled = True,
    tool_name: str | None = None,
    tool_description: str | None = None,
    mode: Literal["transfer", "call"] = "transfer",
    nest_handoff_history: bool | None = None,
    pass_input: bool = False,
) -> Handoff: ...
def handoff(
    agent: Agent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    *,
    on_handoff: Callable[..., object] | None = None,
    input_type: object = None,
    input_filter: HandoffInputFilter | None = None,
    is_enabled: IsEnabled = True,
    tool_name: str | None = None,
    tool_description: str | None = None,
    mode: Literal["transfer", "call"] = "transfer",
    nest_handoff_history: bool | None = None,
    pass_input: bool = False,
) -> Handoff:
    """Make a handoff to that agent.

    `on_handoff(context)`, or `on_handoff(context, input)` with an `input_type`, is called at each
    handoff. `input_filter` changes the input of the agent. With `mode="call"`, the agent answers,
    and its answer is the tool's result.
    """
    if not isinstance(agent, Agent):
        msg = f"handoff: agent must be an agent, got {agent!r}."
        raise UsageError(msg)
    where = f"handoff({agent.name!r})"
    if mode not in ("transfer", "call"):
        msg = f"{where}: mode must be 'transfer' or 'call', got {mode!r}."
        raise UsageError(msg)
    if input_filter is not None and not callable(input_filter):
        msg = f"{where}: input_filter must be a function of HandoffInputData, got {input_filter!r}."
        raise UsageError(msg)
    if not isinstance(is_enabled, bool) and not callable(is_enabled):
        msg = (
            f"{where}: is_enabled must be True, False, or a function of the context and "
            f"the agent, got {is_enabled!r}."
        )
        raise UsageError(msg)
    if pass_input and input_type is None:
        msg = (
            f"{where}: pass_input=True needs an input_type. Pass input_type=, or omit pass_input=."
        )
        raise UsageError(msg)
    invoke, schema = _invocation(agent, on_handoff, input_type, where)
    return Handoff(
        tool_name=_name(tool_name or tool_name_override or Handoff.default_tool_name(agent), where),
        tool_description=_either(
            tool_description, tool_description_override, Handoff.default_tool_description(agent)
        ),
        input_json_schema=schema,
        on_invoke_handoff=invoke,
        agent_name=agent.name,
        input_filter=input_filter,
        is_enabled=is_enabled,
        mode=mode,
        nest_handoff_history=nest_handoff_history,
        pass_input=pass_input,
        agent=agent,
    )


def transfer_message(agent_name: str) -> str:
    """Return the result of a handoff to the agent of that name."""
    return json.dumps({"assistant": agent_name}, ensure_ascii=False)


def as_handoff(given: object, whose: str) -> Handoff:
    """Return an element of an agent's `handoffs` as a `Handoff`."""
    if isinstance(given, Handoff):
        _name(given.tool_name, f"agent {whose!r}: the handoff to {given.agent_name!r}")
        return given
    if isinstance(given, Agent):
        return handoff(given)
    msg = (
        f"agent {whose!r}: handoffs must contain agents or handoff(agent, ...), got {given!r}. "
        "Pass the agent itself, not its name."
    )
    raise UsageError(msg, agent=whose)


def _either(one: str | None, other: str | None, default: str) -> str:
    return one if one is not None else other if other is not None else default


def _name(name: str, where: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        msg = (
            f"{where}: tool_name must have at most 64 letters, digits, '_' and '-' "
            f"(ASCII), got {name!r}. Pass tool_name=."
        )
        raise UsageError(msg)
    return name


def _invocation(
    agent: Agent, on_handoff: Callable[..., object] | None, input_type: object, where: str
) -> tuple[Callable[[RunContext, str], Awaitable[Agent]], Mapping[str, object]]:
    """Return a function that calls the callback, and the schema of its input."""
    if on_handoff is not None and not callable(on_handoff):
        msg = (
            f"{where}: on_handoff must be a function of the "
            f"context{', and the input' if input_type is not None else ''}, got "
            f"{on_handoff!r}."
        )
        raise UsageError(msg)
    if input_type is None:
        if on_handoff is not None:
            _check_takes(on_handoff, 1, where)
        return _Plain(agent, on_handoff), ensure_strict_json_schema({})
    if on_handoff is None:
        msg = (
            f"{where}: input_type={input_type!r} needs a function on_handoff(context, "
            "input), which receives the input. Pass on_handoff=."
        )
        raise UsageError(msg)
    _check_takes(on_handoff, 2, where)
    from ..tools.function_schema import schema_of  # noqa: PLC0415 -- imports pydantic

    adapter, schema = schema_of(input_type, f"{where}: input_type")
    try:
        strict = ensure_strict_json_schema(schema)
    except UsageError as error:
        msg = (
            f"{where}: input_type={input_type!r} must have a strict JSON schema: {error} Change "
            "the type."
        )
        raise UsageError(msg) from error
    return _Typed(agent, on_handoff, adapter, strict), strict


def _check_takes(function: Callable[..., object], count: int, where: str) -> None:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return  # a built-in function may have no signature
    positional = [
        one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    needed = [
        one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty
    ]
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if needed or len(positional) > count or (len(positional) < count and not takes_any):
        wanted = "on_handoff(context)" if count == 1 else "on_handoff(context, input)"
        why = "without an input_type" if count == 1 else "with an input_type"
        msg = (
            f"{where}: {why}, on_handoff must have the form {wanted}, but it has "
            f"{len(parameters)} parameters."
        )
        raise UsageError(msg)


class _Plain:
    """Hands off to one agent, without input."""

    def __init__(self, agent: Agent, callback: Callable[..., object] | None) -> None:
        self.agent = agent
        self._callback = callback

    async def __call__(self, context: RunContext, input_json: str | None = None) -> Agent:
        del input_json
        if self._callback is not None:
            await _called(self._callback, self.agent, context)
        return self.agent


class _Typed:
    """Hands off to one agent, with an input."""

    def __init__(
        self,
        agent: Agent,
        callback: Callable[..., object],
        adapter: TypeAdapter[object],
        schema: Mapping[str, object],
    ) -> None:
        self.agent = agent
        self._callback = callback
        self._adapter = adapter
        self._schema = schema

    async def __call__(self, context: RunContext, input_json: str | None = None) -> Agent:
        if not input_json:
            msg = (
                f"the handoff to {self.agent.name} must have arguments, got none. Call it with "
                "arguments that match its schema"
            )
            raise ModelBehaviorError(msg)
        from ..tools.function_schema import explain  # noqa: PLC0415 -- already imported

        try:
            value = self._adapter.validate_json(input_json, strict=True)
        except ValueError as error:
            msg = (
                f"arguments of the handoff to {self.agent.name} are not valid: "
                f"{explain(error, self._schema)}"
            )
            raise ModelBehaviorError(msg) from error
        await _called(self._callback, self.agent, context, value)
        return self.agent


async def _called(callback: Callable[..., object], agent: Agent, *args: object) -> None:
    try:
        await maybe_await(callback(*args))
    except (asyncio.CancelledError, Exception) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # cancelled from outside
        msg = (
            f"on_handoff of the handoff to {agent.name!r} raised {type(error).__name__}: "
            f"{text_of(error)}"
        )
        raise HandoffError(msg) from error


@dataclass(frozen=True, slots=True)
class HandoffRules:
    """The handoffs that an agent may follow, and their settings."""

    handoffs: Mapping[str, Handoff]
    """The handoffs by the names of their tools."""
    nests: bool
    """Whether earlier messages are folded into one, if the handoff does not specify it."""
    output_key: str | None
    """The session key that also stores a handoff's result."""
