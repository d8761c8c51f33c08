"""What makes traces and spans, and shows them to the processors.

Owns: the processors of the process, and whether anything is traced at all. Without a processor nothing is. It must never raise because a processor does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from ..logger import logger
from . import ids
from .config_type import TracingConfig
from .processor_interface import TracingProcessor
from .scope import Scope
from .span_data import SpanData
from .spans import NoOpSpan, Span, SpanImpl
from .traces import NoOpTrace, Trace, TraceImpl

__all__ = ["DefaultTraceProvider", "TraceProvider", "get_trace_provider", "set_trace_provider"]


class _All(TracingProcessor):
    """All processors, in the order in which they were added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.processors: tuple[TracingProcessor, ...] = ()

    def add(self, processor: TracingProcessor) -> None:
        with self._lock:
            self.processors += (processor,)

    def replace(self, processors: list[TracingProcessor]) -> None:
        with self._lock:
            self.processors = tuple(processors)

    def _tell(self, call: Callable[[TracingProcessor], object], what: str) -> None:
        for processor in self.processors:
            try:
                call(processor)
            except Exception:
                logger.exception("Trace processor %s raised in %s. The run goes on.", type(processor).__name__, what)

    def on_trace_start(self, trace: Trace) -> None:
        self._tell(lambda one: one.on_trace_start(trace), "on_trace_start")

    def on_trace_end(self, trace: Trace) -> None:
        self._tell(lambda one: one.on_trace_end(trace), "on_trace_end")

    def on_span_start(self, span: Span[Any]) -> None:
        self._tell(lambda one: one.on_span_start(span), "on_span_start")

    def on_span_end(self, span: Span[Any]) -> None:
        self._tell(lambda one: one.on_span_end(span), "on_span_end")

    def shutdown(self) -> None:
        self._tell(lambda one: one.shutdown(), "shutdown")

    def force_flush(self) -> None:
        self._tell(lambda one: one.force_flush(), "force_flush")


class TraceProvider:
    """What makes traces and spans. A program may set one of its own."""

    def __init__(self) -> None:
        self._all = _All()
        self._disabled: bool | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nothing that is made would be shown to anything."""
        return not self._all.processors or self._is_disabled()

    def _is_disabled(self) -> bool:
        if self._disabled is not None:
            return self._disabled
        return os.environ.get("OPENAI_AGENTS_DISABLE_TRACING", "false").lower() in ("1", "true")

    def register_processor(self, processor: TracingProcessor) -> None:
        self._all.add(processor)

    def set_processors(self, processors: list[TracingProcessor]) -> None:
        self._all.replace(processors)

    def get_current_trace(self) -> Trace | None:
        return Scope.get_current_trace()

    def get_current_span(self) -> Span[Any] | None:
        return Scope.get_current_span()

    def set_disabled(self, disabled: bool) -> None:
        self._disabled = disabled

    def time_iso(self) -> str:
        return ids.time_iso()

    def gen_trace_id(self) -> str:
        return ids.gen_trace_id()

    def gen_span_id(self) -> str:
        return ids.gen_span_id()

    def gen_group_id(self) -> str:
        return ids.gen_group_id()

    def create_trace(
        self,
        name: str,
        trace_id: str | None = None,
        group_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        disabled: bool = False,
        tracing: TracingConfig | None = None,
    ) -> Trace:
        """A trace, which has not begun."""
        if disabled or self._is_disabled():
            return NoOpTrace()
        return TraceImpl(name, trace_id, group_id, metadata, self._all, (tracing or {}).get("api_key"))

    def create_span(self, span_data: SpanData, span_id: str | None = None, parent: Trace | Span[Any] | None = None, disabled: bool = False) -> Span[Any]:
        """A span, which has not begun: within `parent`, or within the current span or trace."""
        if disabled or self._is_disabled():
            return NoOpSpan(span_data)
        if parent is None:
            trace = Scope.get_current_trace()
            if trace is None:
                logger.error("No active trace. Make sure to start a trace with `trace()` first. Returning NoOpSpan.")
                return NoOpSpan(span_data)
            parent = Scope.get_current_span() or trace
            if isinstance(trace, NoOpTrace):
                return NoOpSpan(span_data)
            key, metadata = trace.tracing_api_key, trace.metadata
        else:
            key = parent.tracing_api_key
            metadata = parent.metadata if isinstance(parent, Trace) else parent.trace_metadata
        if isinstance(parent, NoOpTrace | NoOpSpan):
            return NoOpSpan(span_data)
        parent_id = parent.span_id if isinstance(parent, Span) else None
        return SpanImpl(parent.trace_id, span_id, parent_id, self._all, span_data, key, metadata)

    def force_flush(self) -> None:
        self._all.force_flush()

    def shutdown(self) -> None:
        self._all.shutdown()


class DefaultTraceProvider(TraceProvider):
    """The one that is used unless a program sets another."""


class _Providers:
    def __init__(self) -> None:
        self.current: TraceProvider = DefaultTraceProvider()


_providers = _Providers()


def get_trace_provider() -> TraceProvider:
    """The provider of the process."""
    return _providers.current


def set_trace_provider(provider: TraceProvider) -> None:
    """Set another provider for the process."""
    _providers.current = provider
