"""Which processors see the traces of this process.

Owns: these settings. It must never make a trace.
"""

from __future__ import annotations

from typing import Any

from .processor_interface import TracingProcessor
from .provider import get_trace_provider

__all__ = ["add_trace_processor", "flush_traces", "otel_processor", "set_trace_processors", "set_tracing_disabled", "set_tracing_export_api_key"]


def add_trace_processor(span_processor: TracingProcessor) -> None:
    """Show all traces and spans to this processor too."""
    get_trace_provider().register_processor(span_processor)


def set_trace_processors(processors: list[TracingProcessor]) -> None:
    """Show all traces and spans to these processors, and to no others."""
    get_trace_provider().set_processors(processors)


def set_tracing_disabled(disabled: bool) -> None:
    """Make no traces; or make them again."""
    get_trace_provider().set_disabled(disabled)


def set_tracing_export_api_key(api_key: str) -> None:
    """Send traces to OpenAI, with that key."""
    from .processors import export_with_key  # noqa: PLC0415 -- few programs send them anywhere

    export_with_key(api_key)


def flush_traces() -> None:
    """Have the processors pass on what they hold."""
    get_trace_provider().force_flush()


def otel_processor(tracer: Any = None) -> TracingProcessor:
    """A processor that makes spans of OpenTelemetry, among those that understudy makes itself."""
    from .processors import OtelProcessor  # noqa: PLC0415 -- an extra

    return OtelProcessor(tracer)
