"""Traces and spans of the SDK. Nothing is sent anywhere unless a program adds a processor that does.

Owns what a trace is made of, and whom it is shown to. Its files, each importing only from those above it:

    ids             ids and times
    span_data       what a span says of its kind
    processor_interface `TracingProcessor`, `TracingExporter`
    scope           which trace and span are the current ones
    spans           `Span`
    traces          `Trace`, `TraceState`
    provider        what makes them, and shows them to the processors
    create          `trace`, and a function for each kind of span
    errors          errors on spans
    setup           which processors there are
    config_type     how a run is traced, as programs say it
    config          how a run is traced
    processors      the exporter to OpenAI's endpoint, for programs that add it; spans of OpenTelemetry

It must never change what a run does.
"""

from .config import TraceCtxManager, TracingConfig
from .create import (
    agent_span,
    custom_span,
    function_span,
    generation_span,
    get_current_span,
    get_current_trace,
    guardrail_span,
    handoff_span,
    mcp_tools_span,
    response_span,
    speech_group_span,
    speech_span,
    task_span,
    trace,
    transcription_span,
    turn_span,
)
from .ids import gen_span_id, gen_trace_id
from .processor_interface import TracingExporter, TracingProcessor
from .provider import DefaultTraceProvider, TraceProvider, get_trace_provider, set_trace_provider
from .setup import add_trace_processor, flush_traces, otel_processor, set_trace_processors, set_tracing_disabled, set_tracing_export_api_key
from .span_data import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
    SpanData,
    SpeechGroupSpanData,
    SpeechSpanData,
    TaskSpanData,
    TranscriptionSpanData,
    TurnSpanData,
)
from .spans import Span, SpanError
from .traces import Trace

__all__ = [
    "AgentSpanData",
    "CustomSpanData",
    "DefaultTraceProvider",
    "FunctionSpanData",
    "GenerationSpanData",
    "GuardrailSpanData",
    "HandoffSpanData",
    "MCPListToolsSpanData",
    "ResponseSpanData",
    "Span",
    "SpanData",
    "SpanError",
    "SpeechGroupSpanData",
    "SpeechSpanData",
    "TaskSpanData",
    "Trace",
    "TraceCtxManager",
    "TraceProvider",
    "TracingConfig",
    "TracingExporter",
    "TracingProcessor",
    "TranscriptionSpanData",
    "TurnSpanData",
    "add_trace_processor",
    "agent_span",
    "custom_span",
    "flush_traces",
    "function_span",
    "gen_span_id",
    "gen_trace_id",
    "generation_span",
    "get_current_span",
    "get_current_trace",
    "get_trace_provider",
    "guardrail_span",
    "handoff_span",
    "mcp_tools_span",
    "otel_processor",
    "response_span",
    "set_trace_processors",
    "set_trace_provider",
    "set_tracing_disabled",
    "set_tracing_export_api_key",
    "speech_group_span",
    "speech_span",
    "task_span",
    "trace",
    "transcription_span",
    "turn_span",
]
