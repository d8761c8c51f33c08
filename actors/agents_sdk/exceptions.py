"""The exceptions of the SDK. Those that understudy has too are both: `except` of either catches them.

Owns: their names, fields and texts. It must never import what runs agents.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...runtime.errors import GuardrailTripped, MaxIterationsExceeded, UsageError
from ...runtime.errors import ModelBehaviorError as _ModelBehaviorError

if TYPE_CHECKING:
    from .agent import Agent
    from .guardrail import InputGuardrailResult, OutputGuardrailResult
    from .items import ModelResponse, RunItem, TResponseInputItem
    from .run_context import RunContextWrapper
    from .tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailResult, ToolOutputGuardrail, ToolOutputGuardrailResult

__all__ = [
    "AgentsException",
    "InputGuardrailTripwireTriggered",
    "MCPToolCancellationError",
    "MaxTurnsExceeded",
    "ModelBehaviorError",
    "ModelRefusalError",
    "ModelTimeoutError",
    "OutputGuardrailTripwireTriggered",
    "RunErrorDetails",
    "ToolInputGuardrailTripwireTriggered",
    "ToolOutputGuardrailTripwireTriggered",
    "ToolTimeoutError",
    "UserError",
]


@dataclass
class RunErrorDetails:
    """How far a run had come when it failed."""

    input: str | list[TResponseInputItem]
    new_items: list[RunItem]
    raw_responses: list[ModelResponse]
    last_agent: Agent[Any]
    context_wrapper: RunContextWrapper[Any]
    input_guardrail_results: list[InputGuardrailResult]
    output_guardrail_results: list[OutputGuardrailResult]
    tool_input_guardrail_results: list[ToolInputGuardrailResult] = field(default_factory=list)
    tool_output_guardrail_results: list[ToolOutputGuardrailResult] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            "RunErrorDetails:",
            f"- Last agent: {getattr(self.last_agent, 'name', self.last_agent)}",
            f"- {len(self.new_items)} new item(s)",
            f"- {len(self.raw_responses)} raw response(s)",
            f"- {len(self.input_guardrail_results)} input guardrail result(s)",
            f"- {len(self.output_guardrail_results)} output guardrail result(s)",
            f"- {len(self.tool_input_guardrail_results)} tool input guardrail result(s)",
            f"- {len(self.tool_output_guardrail_results)} tool output guardrail result(s)",
            "(See `RunErrorDetails` for more details)",
        ]
        return "\n".join(lines)


class AgentsException(Exception):
    """The root of the SDK's exceptions. `run_data` says how far the run had come."""

    run_data: RunErrorDetails | None = None
    keeps_run_to_itself: bool = False
    """Whether it says nothing of the run, because that would repeat what must not be shown."""


class _WithMessage(AgentsException):
    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class MaxTurnsExceeded(_WithMessage, MaxIterationsExceeded):
    """The run has made as many turns as it may."""


class ModelBehaviorError(_WithMessage, _ModelBehaviorError):
    """The model did what it must not: it called a tool that does not exist, or gave JSON that is none."""


class UserError(_WithMessage, UsageError):
    """The caller's mistake."""


class MCPToolCancellationError(_WithMessage):
    """A call of a tool of an MCP server was cancelled from within."""


class ModelRefusalError(AgentsException):
    """The model refuses to answer."""

    def __init__(self, refusal: str) -> None:
        super().__init__(f"Model refused to produce output: {refusal}")
        self.refusal = refusal


class ModelTimeoutError(AgentsException):
    """One attempt of a call of the model took too long."""

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"Model call timed out after {timeout_seconds:g} seconds.")
        self.timeout_seconds = timeout_seconds


class ToolTimeoutError(AgentsException):
    """A call of a tool took too long."""

    def __init__(self, tool_name: str, timeout_seconds: float) -> None:
        super().__init__(f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds.")
        self.tool_name = tool_name
        self.timeout_seconds = timeout_seconds


class _Tripped(AgentsException, GuardrailTripped):
    def __init__(self, text: str, guardrail: Any, output_info: Any) -> None:
        GuardrailTripped.__init__(self, text, guardrail=guardrail, output_info=output_info)


class InputGuardrailTripwireTriggered(_Tripped):
    """A guardrail does not allow the input."""

    def __init__(self, guardrail_result: InputGuardrailResult) -> None:
        guardrail = guardrail_result.guardrail
        super().__init__(f"Guardrail {type(guardrail).__name__} triggered tripwire", guardrail, guardrail_result.output.output_info)
        self.guardrail_result = guardrail_result


class OutputGuardrailTripwireTriggered(_Tripped):
    """A guardrail does not allow the output."""

    def __init__(self, guardrail_result: OutputGuardrailResult) -> None:
        guardrail = guardrail_result.guardrail
        super().__init__(f"Guardrail {type(guardrail).__name__} triggered tripwire", guardrail, guardrail_result.output.output_info)
        self.guardrail_result = guardrail_result


class ToolInputGuardrailTripwireTriggered(_Tripped):
    """A guardrail does not allow what a tool is called with."""

    def __init__(self, guardrail: ToolInputGuardrail[Any], output: ToolGuardrailFunctionOutput) -> None:
        super().__init__(f"Tool input guardrail {type(guardrail).__name__} triggered tripwire", guardrail, output.output_info)
        self.output = output


class ToolOutputGuardrailTripwireTriggered(_Tripped):
    """A guardrail does not allow what a tool has returned."""

    def __init__(self, guardrail: ToolOutputGuardrail[Any], output: ToolGuardrailFunctionOutput) -> None:
        super().__init__(f"Tool output guardrail {type(guardrail).__name__} triggered tripwire", guardrail, output.output_info)
        self.output = output
