"""A span: something that is done in a trace.

Owns: its times, its place, its error. It must never hold what it is about: that is its data.
"""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Any, Generic, Self

from typing_extensions import TypedDict, TypeVar

from .ids import gen_span_id, time_iso
from .processor_interface import TracingProcessor
from .scope import Scope
from .span_data import SpanData

__all__ = ["NoOpSpan", "Span", "SpanError", "SpanImpl"]

TSpanData = TypeVar("TSpanData", bound=SpanData, default=SpanData)


class SpanError(TypedDict):
    """What went wrong in a span."""

    message: str
    data: dict[str, Any] | None


class Span(Generic[TSpanData]):
    """Something that is done in a trace. Use it as a context manager, or call `start` and `finish`."""

    def __init__(self, span_data: TSpanData) -> None:
        self._data = span_data
        self._token: contextvars.Token[Span[Any] | None] | None = None

    trace_id: str = "no-op"
    span_id: str = "no-op"
    parent_id: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    error: SpanError | None = None
    tracing_api_key: str | None = None
    trace_metadata: dict[str, Any] | None = None

    @property
    def span_data(self) -> TSpanData:
        """What it says of its kind."""
        return self._data

    def start(self, mark_as_current: bool = False) -> None:
        """It begins."""
        if mark_as_current:
            self._token = Scope.set_current_span(self)

    def finish(self, reset_current: bool = False) -> None:
        """It ends."""
        if reset_current and self._token is not None:
            token, self._token = self._token, None
            Scope.reset_current_span(token)

    def set_error(self, error: SpanError) -> None:
        """Something went wrong."""

    def export(self) -> dict[str, Any] | None:
        """What of it goes out; None for nothing."""
        return None

    def __enter__(self) -> Self:
        self.start(mark_as_current=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        # A generator may be closed in another task than it was begun in, where the token is not known.
        try:
            self.finish(reset_current=True)
        except ValueError:
            if kind is not GeneratorExit:
                raise


class NoOpSpan(Span[TSpanData]):
    """A span that is shown to no processor. What is done within is not either."""


class SpanImpl(Span[TSpanData]):
    """A span that processors are shown."""

    def __init__(
        self,
        trace_id: str,
        span_id: str | None,
        parent_id: str | None,
        processor: TracingProcessor,
        span_data: TSpanData,
        tracing_api_key: str | None,
        trace_metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(span_data)
        self.trace_id = trace_id
        self.span_id = span_id or gen_span_id()
        self.parent_id = parent_id
        self.tracing_api_key = tracing_api_key
        self.trace_metadata = trace_metadata
        self._processor = processor

    def start(self, mark_as_current: bool = False) -> None:
        if self.started_at is None:
            self.started_at = time_iso()
            self._processor.on_span_start(self)
            super().start(mark_as_current)

    def finish(self, reset_current: bool = False) -> None:
        if self.ended_at is None:
            self.ended_at = time_iso()
            self._processor.on_span_end(self)
        super().finish(reset_current)

    def set_error(self, error: SpanError) -> None:
        self.error = error

    def export(self) -> dict[str, Any] | None:
        found = {
            "object": "trace.span",
            "id": self.span_id,
            "trace_id": self.trace_id,
            "parent_id": self.parent_id,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "span_data": self.span_data.export(),
            "error": self.error,
        }
        metadata = getattr(self.span_data, "metadata", None)
        return {**found, "metadata": metadata} if metadata else found
