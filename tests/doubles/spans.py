"""The spans of a test, as a provider of OpenTelemetry's SDK has them when they have ended."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ["Spans"]


class Spans:
    """All spans that have ended while this was the program's provider."""

    def __init__(self, monkeypatch):
        self.exporter, self.provider = InMemorySpanExporter(), TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", self.provider)

    def all(self):
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time)

    def named(self, name):
        return [span for span in self.all() if span.name == name]

    def one(self, name):
        (found,) = self.named(name)
        return found

    def lines(self):
        """Each span with what it is under, in the order of their beginning."""
        names = {span.context.span_id: span.name for span in self.all()}
        return [
            f"{span.name} < {names.get(span.parent.span_id) if span.parent else None}"
            for span in self.all()
        ]
