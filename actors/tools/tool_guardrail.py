"""Guardrails of tools: functions that look at a call before it is made, or at what came of it.

Owns: what they are given, what they answer, and what becomes of a call by that. It must never make a call.
"""

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
    """What is to become of a call: it is allowed, the model is told something instead, or the agent ends."""

    output_info: object = None
    behavior: Literal["allow", "reject", "raise"] = "allow"
    message: str = ""

    @classmethod
    def allow(cls, output_info: object = None) -> Self:
        return cls(output_info)

    @classmethod
    def reject_content(cls, message: str, output_info: object = None) -> Self:
        """The model is told this, in place of the result."""
        return cls(output_info, "reject", message)

    @classmethod
    def raise_exception(cls, output_info: object = None) -> Self:
        """The agent ends with `GuardrailTripped`."""
        return cls(output_info, "raise")


@dataclass(frozen=True)
class ToolInputGuardrailData:
    """A call that is about to be made."""

    context: RunContext
    agent: Any  # an Agent, which this room does not know
    call: ToolCall


@dataclass(frozen=True)
class ToolOutputGuardrailData(ToolInputGuardrailData):
    """A call that was made, and what came of it."""

    output: Any = field(default=None)


D = TypeVar("D", bound=ToolInputGuardrailData)
_Answer: TypeAlias = ToolGuardrailFunctionOutput | Awaitable[ToolGuardrailFunctionOutput]

ToolInputGuardrail: TypeAlias = Callable[[ToolInputGuardrailData], _Answer]
ToolOutputGuardrail: TypeAlias = Callable[[ToolOutputGuardrailData], _Answer]


async def check_tool(guardrails: Sequence[Callable[[D], _Answer]], data: D) -> str | None:
    """What the model is to be told instead of the result; None if all is well. Raises `GuardrailTripped`."""
    watch = data.context.watch
    for one in guardrails:
        name = getattr(one, "__name__", None) or "guardrail"
        if watch is None:
            instead = await _look(one, name, data)
        else:
            opened, trips, problem = (
                watch.guardrail(name, "tool output" if isinstance(data, ToolOutputGuardrailData) else "tool input", data.call.name),
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
    """What one of them wants the model to be told. Raises `GuardrailTripped`."""
    try:
        found = await maybe_await(guardrail(data))
    except Exception as error:
        msg = f"the guardrail {name} of tool {data.call.name} raised {type(error).__name__}: {text_of(error)}"
        raise GuardrailTripped(msg, guardrail=name, message=data.call) from error
    if not isinstance(found, ToolGuardrailFunctionOutput):
        msg = f"the guardrail {name} of tool {data.call.name} returned {found!r}: return ToolGuardrailFunctionOutput.allow() or another of them."
        raise UsageError(msg)
    if found.behavior == "raise":
        msg = f"the guardrail {name} of tool {data.call.name} has tripped: {found.output_info!r}"
        raise GuardrailTripped(msg, guardrail=name, output_info=found.output_info, message=data.call)
    return found.message if found.behavior == "reject" else None
