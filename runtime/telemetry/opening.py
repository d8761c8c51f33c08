"""An open span, and the cleanup when it is closed.

A span is the current one from its opening to its closing, and neither raises. No span is ended
twice.
"""

from __future__ import annotations

from time import perf_counter, time_ns
from typing import Any

from ..errors import text_of
from ..log import loggers

__all__ = ["OpenSpan", "Opener"]


class OpenSpan:
    """A span that is the current one in this context."""

    __slots__ = ("_api", "_content", "_token", "context", "span", "started")

    def __init__(
        self, api: Any, span: Any, context: Any, token: Any, *, content: bool = False
    ) -> None:
        self._api = api
        # True if it may contain error texts, which include arguments and exceptions of tools.
        self._content = content
        self._token = token  # None: it ends with its context
        self.span = span  # None: nothing is traced, and only the time is measured
        self.context = context
        self.started = perf_counter()

    def set(self, attributes: dict[str, Any]) -> None:
        if self.span is not None:
            self.span.set_attributes(attributes)

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed.

        It records the type of an exception, and its text and traceback only if content is captured.
        A string must be a constant of this package.
        """
        if self.span is None:
            return
        trace = self._api.trace
        if isinstance(error, BaseException):
            kind = type(error).__qualname__
            self.span.set_attribute("error.type", kind)
            if self._content:
                self.span.record_exception(error)
                error = f"{kind}: {text_of(error)}"
            else:
                error = kind
        self.span.set_status(trace.Status(trace.StatusCode.ERROR, error))

    def close(self) -> float:
        """End the span, where it was opened. Returns how long it was open."""
        seconds = perf_counter() - self.started
        if self.span is not None:
            if self._token is not None:
                self._api.context.detach(self._token)
            try:
                self.span.end()
            except Exception:  # noqa: BLE001 -- a span processor of the program must not end a run
                loggers.telemetry.exception(
                    "A span could not be ended: a span processor has raised."
                )
        return seconds


class Opener:
    """Opens the spans of one tracer."""

    __slots__ = ("api", "content", "tracer")

    def __init__(self, api: Any, tracer: Any, *, content: bool) -> None:
        self.api = api  # OpenTelemetry's modules `trace` and `context`
        self.tracer = tracer
        self.content = content  # True if spans contain messages

    def open(
        self,
        name: str,
        attributes: dict[str, Any],
        within: Any = None,
        *,
        client: bool = False,
        stays: bool = False,
    ) -> OpenSpan:
        """Open a span within that context or the current one, and make it the current one.

        With `stays`, it stays current until this context ends.
        """
        trace, context = self.api.trace, self.api.context
        kind = trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL
        try:
            span = self.tracer.start_span(
                name,
                within,
                kind,
                attributes,
                record_exception=False,
                set_status_on_exception=False,
            )
        except Exception:  # noqa: BLE001 -- see above
            loggers.telemetry.exception(
                "The span %r could not be started: a span processor or sampler has raised.", name
            )
            return OpenSpan(None, None, within, None)
        inner = trace.set_span_in_context(span, within)
        token = context.attach(inner)
        return OpenSpan(self.api, span, inner, None if stays else token, content=self.content)

    def instant(
        self, name: str, attributes: dict[str, Any], within: Any = None, links: Any = None
    ) -> None:
        """Create a span without a duration."""
        try:
            self.tracer.start_span(name, within, attributes=attributes, links=links).end()
        except Exception:  # noqa: BLE001 -- see above
            loggers.telemetry.exception(
                "The span %r could not be made: a span processor or sampler has raised.", name
            )

    def link(self, traceparent: str | None) -> Any:
        """Return the context of a span of any process; None if `traceparent` is not valid."""
        parts = (traceparent or "").split("-")
        try:
            _, trace_id, span_id, flags = parts
            numbers = int(trace_id, 16), int(span_id, 16), int(flags, 16)
        except ValueError:
            return None
        trace = self.api.trace
        found = trace.SpanContext(
            numbers[0], numbers[1], is_remote=True, trace_flags=trace.TraceFlags(numbers[2])
        )
        return found if found.is_valid else None

    def name_of(self, span: Any) -> str | None:
        """Return the span's name, for links from another process."""
        own = span.get_span_context()
        return (
            f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"
            if own.is_valid
            else None
        )

    def slow(self, name: str, seconds: float, attributes: dict[str, Any], within: Any) -> None:
        """Create a span of that duration, for an operation that has just ended."""
        now = time_ns()
        try:
            self.tracer.start_span(
                name, within, attributes=attributes, start_time=now - int(seconds * 1e9)
            ).end(now)
        except Exception:  # noqa: BLE001 -- see above
            loggers.telemetry.exception(
                "The span %r could not be made: a span processor or sampler has raised.", name
            )
