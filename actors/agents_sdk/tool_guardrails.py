"""Guardrails of tools: what looks at a call before it is made, and at what it has returned.

Owns: their definitions and decorators. It must never call a tool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from typing_extensions import TypedDict, TypeVar

from ...runtime.maybe_await import maybe_await
from .exceptions import UserError

if TYPE_CHECKING:
    from .agent import Agent
    from .tool_context import ToolContext

__all__ = [
    "AllowBehavior",
    "RaiseExceptionBehavior",
    "RejectContentBehavior",
    "ToolGuardrailFunctionOutput",
    "ToolInputGuardrail",
    "ToolInputGuardrailData",
    "ToolInputGuardrailResult",
    "ToolOutputGuardrail",
    "ToolOutputGuardrailData",
    "ToolOutputGuardrailResult",
    "tool_input_guardrail",
    "tool_output_guardrail",
]

TContext_co = TypeVar("TContext_co", default=Any, covariant=True)


class RejectContentBehavior(TypedDict):
    """The model is given this message instead."""

    type: Literal["reject_content"]
    message: str


class RaiseExceptionBehavior(TypedDict):
    """The run ends."""

    type: Literal["raise_exception"]


class AllowBehavior(TypedDict):
    """All is well."""

    type: Literal["allow"]


@dataclass
class ToolGuardrailFunctionOutput:
    """What a guardrail has found, and what is to be done."""

    output_info: Any = None
    behavior: RejectContentBehavior | RaiseExceptionBehavior | AllowBehavior = field(default_factory=lambda: AllowBehavior(type="allow"))

    @classmethod
    def allow(cls, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """All is well."""
        return cls(output_info)

    @classmethod
    def reject_content(cls, message: str, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """The model is given this message instead, and the run goes on."""
        return cls(output_info, RejectContentBehavior(type="reject_content", message=message))

    @classmethod
    def raise_exception(cls, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """The run ends."""
        return cls(output_info, RaiseExceptionBehavior(type="raise_exception"))


@dataclass
class ToolInputGuardrailData:
    """A call that is to be made."""

    context: ToolContext[Any]
    agent: Agent[Any]


@dataclass
class ToolOutputGuardrailData(ToolInputGuardrailData):
    """A call that was made, and what it has returned."""

    output: Any


@dataclass
class ToolInputGuardrailResult:
    """What a guardrail has found before a call."""

    guardrail: ToolInputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@dataclass
class ToolOutputGuardrailResult:
    """What a guardrail has found after a call."""

    guardrail: ToolOutputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@dataclass
class _ToolGuardrail(Generic[TContext_co]):
    guardrail_function: Callable[[Any], Any]
    name: str | None = None

    def get_name(self) -> str:
        return self.name or self.guardrail_function.__name__

    async def run(self, data: Any) -> ToolGuardrailFunctionOutput:
        if not callable(self.guardrail_function):
            msg = f"Guardrail function must be callable, got {self.guardrail_function}"
            raise UserError(msg)
        output: ToolGuardrailFunctionOutput = await maybe_await(self.guardrail_function(data))
        return output


@dataclass
class ToolInputGuardrail(_ToolGuardrail[TContext_co]):
    """Looks at a call before it is made."""


@dataclass
class ToolOutputGuardrail(_ToolGuardrail[TContext_co]):
    """Looks at what a call has returned."""


def tool_input_guardrail(func: Any = None, *, name: str | None = None) -> Any:
    """Makes a guardrail of a function of `ToolInputGuardrailData`."""

    def decorate(function: Any) -> ToolInputGuardrail[Any]:
        return ToolInputGuardrail(function, name or function.__name__)

    return decorate if func is None else decorate(func)


def tool_output_guardrail(func: Any = None, *, name: str | None = None) -> Any:
    """Makes a guardrail of a function of `ToolOutputGuardrailData`."""

    def decorate(function: Any) -> ToolOutputGuardrail[Any]:
        return ToolOutputGuardrail(function, name or function.__name__)

    return decorate if func is None else decorate(func)
