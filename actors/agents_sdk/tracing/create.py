"""A function for traces, and one for each kind of span.

Owns: their parameters. It must never begin what it makes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ..logger import logger
from .config_type import TracingConfig
from .provider import get_trace_provider
from .span_data import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
    SpeechGroupSpanData,
    SpeechSpanData,
    TaskSpanData,
    TranscriptionSpanData,
    TurnSpanData,
)
from .spans import Span
from .traces import Trace

__all__ = [
    "agent_span",
    "custom_span",
    "function_span",
    "generation_span",
    "get_current_span",
    "get_current_trace",
    "guardrail_span",
    "handoff_span",
    "mcp_tools_span",
    "response_span",
    "speech_group_span",
    "speech_span",
    "task_span",
    "trace",
    "transcription_span",
    "turn_span",
]

Parent: TypeAlias = Trace | Span[Any] | None


def trace(
    workflow_name: str,
    trace_id: str | None = None,
    group_id: str | None = None,
    metadata: dict[str, Any] | None = None,
    tracing: TracingConfig | None = None,
    disabled: bool = False,
) -> Trace:
    """A trace: `with trace("name"): ...`."""
    provider = get_trace_provider()
    if provider.get_current_trace() is not None:
        logger.warning("Trace already exists. Creating a new trace, but this is probably a mistake.")
    return provider.create_trace(workflow_name, trace_id, group_id, metadata, disabled, tracing)


def get_current_trace() -> Trace | None:
    """The trace within which this is called."""
    return get_trace_provider().get_current_trace()


def get_current_span() -> Span[Any] | None:
    """The span within which this is called."""
    return get_trace_provider().get_current_span()


def agent_span(
    name: str,
    handoffs: list[str] | None = None,
    tools: list[str] | None = None,
    output_type: str | None = None,
    span_id: str | None = None,
    parent: Parent = None,
    disabled: bool = False,
) -> Span[AgentSpanData]:
    """A span for an agent at work."""
    return get_trace_provider().create_span(AgentSpanData(name, handoffs, tools, output_type), span_id, parent, disabled)


def task_span(name: str, span_id: str | None = None, parent: Parent = None, disabled: bool = False) -> Span[TaskSpanData]:
    """A span for a whole run."""
    return get_trace_provider().create_span(TaskSpanData(name), span_id, parent, disabled)


def turn_span(turn: int, agent_name: str, span_id: str | None = None, parent: Parent = None, disabled: bool = False) -> Span[TurnSpanData]:
    """A span for one turn."""
    return get_trace_provider().create_span(TurnSpanData(turn, agent_name), span_id, parent, disabled)


def function_span(
    name: str, input: str | None = None, output: str | None = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False
) -> Span[FunctionSpanData]:
    """A span for a call of a function."""
    return get_trace_provider().create_span(FunctionSpanData(name, input, output), span_id, parent, disabled)


def generation_span(
    input: Any = None,
    output: Any = None,
    model: str | None = None,
    model_config: Any = None,
    usage: dict[str, Any] | None = None,
    span_id: str | None = None,
    parent: Parent = None,
    disabled: bool = False,
) -> Span[GenerationSpanData]:
    """A span for a call of a model."""
    return get_trace_provider().create_span(GenerationSpanData(input, output, model, model_config, usage), span_id, parent, disabled)


def response_span(response: Any = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False) -> Span[ResponseSpanData]:
    """A span for a call of the Responses API."""
    return get_trace_provider().create_span(ResponseSpanData(response), span_id, parent, disabled)


def handoff_span(
    from_agent: str | None = None, to_agent: str | None = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False
) -> Span[HandoffSpanData]:
    """A span for a handoff."""
    return get_trace_provider().create_span(HandoffSpanData(from_agent, to_agent), span_id, parent, disabled)


def custom_span(
    name: str, data: dict[str, Any] | None = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False
) -> Span[CustomSpanData]:
    """A span for something of the program's own."""
    return get_trace_provider().create_span(CustomSpanData(name, data or {}), span_id, parent, disabled)


def guardrail_span(name: str, triggered: bool = False, span_id: str | None = None, parent: Parent = None, disabled: bool = False) -> Span[GuardrailSpanData]:
    """A span for a guardrail."""
    return get_trace_provider().create_span(GuardrailSpanData(name, triggered), span_id, parent, disabled)


def transcription_span(
    model: str | None = None,
    input: str | None = None,
    input_format: str | None = "pcm",
    output: str | None = None,
    model_config: Any = None,
    span_id: str | None = None,
    parent: Parent = None,
    disabled: bool = False,
) -> Span[TranscriptionSpanData]:
    """A span for speech that becomes text."""
    return get_trace_provider().create_span(TranscriptionSpanData(input, input_format, output, model, model_config), span_id, parent, disabled)


def speech_span(
    model: str | None = None,
    input: str | None = None,
    output: str | None = None,
    output_format: str | None = "pcm",
    model_config: Any = None,
    first_content_at: str | None = None,
    span_id: str | None = None,
    parent: Parent = None,
    disabled: bool = False,
) -> Span[SpeechSpanData]:
    """A span for text that becomes speech."""
    data = SpeechSpanData(input, output, output_format, model, model_config, first_content_at)
    return get_trace_provider().create_span(data, span_id, parent, disabled)


def speech_group_span(input: str | None = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False) -> Span[SpeechGroupSpanData]:
    """A span for what is said in one go."""
    return get_trace_provider().create_span(SpeechGroupSpanData(input), span_id, parent, disabled)


def mcp_tools_span(
    server: str | None = None, result: list[str] | None = None, span_id: str | None = None, parent: Parent = None, disabled: bool = False
) -> Span[MCPListToolsSpanData]:
    """A span for asking an MCP server for its tools."""
    return get_trace_provider().create_span(MCPListToolsSpanData(server, result), span_id, parent, disabled)
