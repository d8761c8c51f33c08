"""Where programs may send their traces.

Owns: `BatchTraceProcessor`, the exporter to OpenAI's endpoint, and the processor for OpenTelemetry. None of them is there unless a program adds it. It must
never block what it is told of.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import urllib.request
from typing import Any, Final

from ....runtime.errors import UsageError
from ..logger import logger
from .processor_interface import TracingExporter, TracingProcessor
from .provider import get_trace_provider
from .spans import Span
from .traces import Trace

__all__ = ["BackendSpanExporter", "BatchTraceProcessor", "ConsoleSpanExporter", "OtelProcessor", "export_with_key"]

_ENDPOINT: Final = "https://api.openai.com/v1/traces/ingest"
_TIMEOUT: Final = 30.0


class ConsoleSpanExporter(TracingExporter):
    """Prints them."""

    def export(self, items: list[Trace | Span[Any]]) -> None:
        for item in items:
            print(json.dumps(item.export(), default=str))  # noqa: T201 -- that is what it is for


class BackendSpanExporter(TracingExporter):
    """Sends them to OpenAI."""

    def __init__(
        self,
        api_key: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        endpoint: str = _ENDPOINT,
        *,
        max_retries: int = 3,
    ) -> None:
        self._key, self._organization, self._project = api_key, organization, project
        self._endpoint, self._attempts = endpoint, max_retries

    def set_api_key(self, api_key: str) -> None:
        self._key = api_key

    @property
    def api_key(self) -> str | None:
        return self._key or os.environ.get("OPENAI_API_KEY")

    def export(self, items: list[Trace | Span[Any]]) -> None:
        by_key: dict[str | None, list[dict[str, Any]]] = {}
        for item in items:
            said = item.export()
            if said is not None:
                by_key.setdefault(item.tracing_api_key or self.api_key, []).append(said)
        for key, data in by_key.items():
            if key is None:
                logger.warning("OPENAI_API_KEY is not set, skipping trace export")
            else:
                self._send(key, data)

    def _send(self, key: str, data: list[dict[str, Any]]) -> None:
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "OpenAI-Beta": "traces=v1"}
        headers |= {name: value for name, value in (("OpenAI-Organization", self._organization), ("OpenAI-Project", self._project)) if value}
        request = urllib.request.Request(self._endpoint, json.dumps({"data": data}, default=str).encode(), headers)  # noqa: S310 -- the program's own
        for attempt in range(1, self._attempts + 1):
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT):  # noqa: S310 -- as above
                    return
            except OSError as error:
                logger.warning("Traces could not be exported (attempt %d of %d): %s", attempt, self._attempts, error)


class BatchTraceProcessor(TracingProcessor):
    """Gives an exporter what has ended, many at a time, from a thread of its own."""

    def __init__(self, exporter: TracingExporter, max_queue_size: int = 8192, max_batch_size: int = 128, schedule_delay: float = 5.0) -> None:
        self._exporter = exporter
        self._queue: queue.Queue[Trace | Span[Any]] = queue.Queue(max_queue_size)
        self._batch, self._delay = max_batch_size, schedule_delay
        self._stop = threading.Event()
        self._exporting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _put(self, item: Trace | Span[Any]) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="understudy-traces", daemon=True)
            self._thread.start()
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            logger.warning("Queue is full, dropping a trace or span.")

    def on_trace_start(self, trace: Trace) -> None:
        self._put(trace)

    def on_trace_end(self, trace: Trace) -> None:
        """It went out when it began."""

    def on_span_start(self, span: Span[Any]) -> None:
        """It goes out when it ends."""

    def on_span_end(self, span: Span[Any]) -> None:
        self._put(span)

    def _work(self) -> None:
        while not self._stop.wait(self._delay):
            self.force_flush()

    def force_flush(self) -> None:
        with self._exporting:
            while True:
                items: list[Trace | Span[Any]] = []
                while len(items) < self._batch and not self._queue.empty():
                    items.append(self._queue.get_nowait())
                if not items:
                    return
                self._exporter.export(items)

    def shutdown(self, timeout: float | None = None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        self.force_flush()


class OtelProcessor(TracingProcessor):
    """Makes spans of OpenTelemetry of the SDK's."""

    def __init__(self, tracer: Any = None) -> None:
        try:
            from opentelemetry import trace  # noqa: PLC0415 -- an extra
        except ImportError as error:
            msg = "otel_processor() needs OpenTelemetry: install understudy[otel]."
            raise UsageError(msg) from error
        self._api = trace
        self._tracer = tracer or trace.get_tracer("understudy.agents_sdk")
        self._open: dict[str, Any] = {}

    def _begin(self, key: str, name: str, parent: str | None) -> None:
        above = None if parent is None else self._open.get(parent)
        self._open[key] = self._tracer.start_span(name, context=None if above is None else self._api.set_span_in_context(above))

    def on_trace_start(self, trace: Trace) -> None:
        self._begin(trace.trace_id, trace.name, None)

    def on_trace_end(self, trace: Trace) -> None:
        opened = self._open.pop(trace.trace_id, None)
        if opened is not None:
            opened.end()

    def on_span_start(self, span: Span[Any]) -> None:
        self._begin(span.span_id, getattr(span.span_data, "name", None) or span.span_data.type, span.parent_id or span.trace_id)

    def on_span_end(self, span: Span[Any]) -> None:
        opened = self._open.pop(span.span_id, None)
        if opened is None:
            return
        for name, value in span.span_data.export().items():
            if value is not None:
                opened.set_attribute(f"agents_sdk.{name}", value if isinstance(value, str | int | float | bool) else json.dumps(value, default=str))
        if span.error is not None:
            opened.set_status(self._api.Status(self._api.StatusCode.ERROR, span.error["message"]))
        opened.end()

    def shutdown(self) -> None:
        """The spans are OpenTelemetry's."""

    def force_flush(self) -> None:
        """As above."""


def export_with_key(api_key: str) -> None:
    """Send traces to OpenAI with that key, if the program has not added an exporter of its own."""
    provider = get_trace_provider()
    provider.register_processor(BatchTraceProcessor(BackendSpanExporter(api_key)))
