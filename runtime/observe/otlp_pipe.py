"""The parts of OpenTelemetry's SDK that send spans to a service.

The module chooses the provider, creates an exporter for each target, and logs failures. It is
imported only when spans are sent, and never raises into the code that creates a span.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from ..errors import UsageError
from ..log import loggers
from ..telemetry.switch import switch

if TYPE_CHECKING:
    from .otlp_targets import OtlpTarget

__all__ = ["Door", "WatchedExporter", "provider_for"]


def provider_for(service_name: str | None, more: Mapping[str, str]) -> TracerProvider:
    """Return the program's provider, or set our own as the program's provider.

    OpenTelemetry accepts one provider, once.
    """
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        return provider
    if not isinstance(provider, trace.ProxyTracerProvider):
        kind = f"{type(provider).__module__}.{type(provider).__qualname__}"
        msg = (
            "tracing_from_env(): the program's tracer provider must accept exporters, got "
            f"{kind}. Set a provider of OpenTelemetry's SDK, or none."
        )
        raise UsageError(msg)
    named = service_name or os.environ.get("OTEL_SERVICE_NAME") or "offbook"
    own = TracerProvider(resource=Resource.create({**more, "service.name": named}))
    trace.set_tracer_provider(own)
    switch.own = own
    return own


def _exporter_of(target: OtlpTarget) -> SpanExporter:
    if target.protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc  # noqa: PLC0415 -- few programs need it, and it imports grpc

        insecure = target.endpoint.startswith("http://")
        return Grpc(
            target.endpoint,
            insecure=insecure,
            headers=tuple(target.headers.items()),
            timeout=target.timeout,
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http  # noqa: PLC0415 -- see above

    return Http(target.endpoint, headers=dict(target.headers), timeout=target.timeout)


class WatchedExporter(SpanExporter):
    """An exporter that notes if its spans were sent."""

    def __init__(self, target: OtlpTarget) -> None:
        self.name = target.name
        self.is_well = True  # True if all spans were sent
        self._fails = False  # True if the last batch was not sent
        self._inner = _exporter_of(target)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        problem = "the service has not taken them; OpenTelemetry's own lines in the log say why"
        try:
            result = self._inner.export(spans)
        except Exception as error:  # noqa: BLE001 -- an error of any kind must not affect a run
            result, problem = SpanExportResult.FAILURE, f"{type(error).__name__}: {error}"
        if result is not SpanExportResult.SUCCESS:
            self.is_well = False
            if not self._fails:
                loggers.telemetry.warning(
                    "%d spans could not be sent to %s, and are dropped: %s.",
                    len(spans),
                    self.name,
                    problem,
                )
        elif self._fails:
            loggers.telemetry.info("Spans are sent to %s again.", self.name)
        self._fails = result is not SpanExportResult.SUCCESS
        return result

    def give_up(self) -> None:
        """Give up, because the time is over."""
        self.is_well = False

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


class Door(SpanProcessor):
    """Passes spans to an exporter until it is closed.

    A provider keeps its processors forever, so a closed one holds nothing.
    """

    def __init__(self, exporter: WatchedExporter) -> None:
        self._batches: BatchSpanProcessor | None = BatchSpanProcessor(exporter)

    def on_end(self, span: ReadableSpan) -> None:
        batches = self._batches
        if batches is not None:
            batches.on_end(span)

    def close(self) -> None:
        """Send the remaining spans."""
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.shutdown()  # type: ignore[no-untyped-call]  # it has no annotations

    def shutdown(self) -> None:
        self.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        batches = self._batches
        return True if batches is None else batches.force_flush(timeout_millis)
