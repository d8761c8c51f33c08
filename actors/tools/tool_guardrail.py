"""Guardrails of tools: functions that check a call before it is made, or its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias, TypeVar

from ...runtime.agent.run_context import RunContext
from ...runtime.data.chat import ToolCall
from ...runtime.errors import GuardrailTripped, UsageError, text_of
from ...runtime.maybe_await import maybe_await

__all__ = [
    "ToolGuardrailFunctionOutput",
    "ToolInputGuardrail",
    "ToolInputGuardrailData",
    "ToolOutputGuardrail",
    "ToolOutputGuardrailData",
    "check_tool",
]


@dataclass(frozen=True)
class ToolGuardrailFunctionOutput:
    """The decision of a guardrail: allow the call, replace its result, or end the agent."""

    output_info: object = None
    behavior: Literal["allow", "reject", "raise"] = "allow"
    message: str = ""

    @classmethod
    def allow(cls, output_info: object = None) -> Self:
        return cls(output_info)

    @classmethod
    def reject_content(cls, message: str, output_info: object = None) -> Self:
        """Return this message to the model instead of the result."""
        return cls(output_info, "reject", message)

    @classmethod
    def raise_exception(cls, output_info: object = None) -> Self:
        """End the agent with `GuardrailTripped`."""
        return cls(output_info, "raise")


@dataclass(frozen=True)
class ToolInputGuardrailData:
    """A call that is about to be made."""

    context: RunContext
    agent: Any  # an Agent, a type that this package does not import
    call: ToolCall


@dataclass(frozen=True)
class ToolOutputGuardrailData(ToolInputGuardrailData):
    """A finished call and its result."""

    output: Any = field(default=None)


D = TypeVar("D", bound=ToolInputGuardrailData)
_Answer: TypeAlias = ToolGuardrailFunctionOutput | Awaitable[ToolGuardrailFunctionOutput]

ToolInputGuardrail: TypeAlias = Callable[[ToolInputGuardrailData], _Answer]
ToolOutputGuardrail: TypeAlias = Callable[[ToolOutputGuardrailData], _Answer]


async def check_tool(guardrails: Sequence[Callable[[D], _Answer]], data: D) -> str | None:
    """Return the text for the model that replaces the result, or None if all guardrails allow it.

    Raises `GuardrailTripped`.
    """
    watch = data.context.watch
    for one in guardrails:
        name = getattr(one, "__name__", None) or "guardrail"
        if watch is None:
            instead = await _look(one, name, data)
        else:
            opened, trips, problem = (
                watch.guardrail(
                    name,
                    "tool output" if isinstance(data, ToolOutputGuardrailData) else "tool input",
                    data.call.name,
                ),
                False,
                None,
            )
            try:
                instead = await _look(one, name, data)
                trips = instead is not None
            except BaseException as error:
                trips, problem = isinstance(error, GuardrailTripped), error
                raise
            finally:
                watch.guarded(opened, problem, tripped=trips)
        if instead is not None:
            return instead
    return None


async def _look(guardrail: Callable[[D], _Answer], name: str, data: D) -> str | None:
    """Call one guardrail. Return its text for the model, or None. Raise `GuardrailTripped`."""
    try:
        found = await maybe_await(guardrail(data))
    except Exception as error:
        msg = (
            f"the guardrail {name} of tool {data.call.name} raised {type(error).__name__}: "
            f"{text_of(error)}"
        )
        raise GuardrailTripped(msg, guardrail=name, message=data.call) from error
    if not isinstance(found, ToolGuardrailFunctionOutput):
        msg = (
            f"the guardrail {name} of tool {data.call.name} must return a "
            f"ToolGuardrailFunctionOutput, got {found!r}. Return "
            "ToolGuardrailFunctionOutput.allow(), for example."
        )
        raise UsageError(msg)
    if found.behavior == "raise":
        msg = f"the guardrail {name} of tool {data.call.name} tripped: {found.output_info!r}"
        raise GuardrailTripped(
            msg, guardrail=name, output_info=found.output_info, message=data.call
        )
    return found.message if found.behavior == "reject" else None
