"""Spans for OpenTelemetry, if the program uses it.

The module is never the first to import OpenTelemetry: a program that does not trace does not pay
for it.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["Span", "describe_reply", "note", "span"]


class Span:
    """A span around its `with` block; an exception that leaves the block marks it as failed.

    Without OpenTelemetry it does nothing. It records only the type of an error, because error texts
    can contain arguments and tool output.
    """

    __slots__ = ("_attributes", "_failed", "_opening", "_real")

    def __init__(
        self,
        opening: AbstractContextManager[object] | None = None,
        attributes: dict[str, Any] | None = None,
    ) -> None:
        self._opening = opening
        self._attributes = attributes
        self._real: Any = None
        self._failed = False

    def __enter__(self) -> Self:
        if self._opening is not None:
            self._real = self._opening.__enter__()
            self.set(**(self._attributes or {}))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._opening is not None:
            if isinstance(error, Exception) and not self._failed:
                self.fail(error)
            self._opening.__exit__(kind, error, trace)

    def set(self, **attributes: str | float | bool | list[str]) -> None:
        """Add attributes to the span."""
        if self._real is not None:
            for name, value in attributes.items():
                self._real.set_attribute(f"offbook.{name}", value)

    def fail(self, error: BaseException | str) -> None:
        """Mark the span as failed. A string must be a constant of this package."""
        self._failed = True
        if self._real is not None:
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- already imported

            if isinstance(error, BaseException):
                error = type(error).__qualname__
                self._real.set_attribute("error.type", error)
            self._real.set_status(Status(StatusCode.ERROR, error))


_NONE: Final = Span()


def span(name: str, **attributes: str | float | bool | list[str]) -> Span:
    """Return a new span, to be entered."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return _NONE
    return Span(
        tracing.get_tracer("offbook").start_as_current_span(
            name, record_exception=False, set_status_on_exception=False
        ),
        attributes,
    )


def describe_reply(response_id: object, model: object) -> None:
    """Add the reply's id and model to the current span, if that is a model call."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return
    current = tracing.get_current_span()
    if (getattr(current, "attributes", None) or {}).get("gen_ai.operation.name") != "chat":
        return
    for name, value in (("gen_ai.response.id", response_id), ("gen_ai.response.model", model)):
        if isinstance(value, str) and value:
            current.set_attribute(name, value)


def note(event: str, **attributes: str | float | bool) -> None:
    """Add an event to the current span."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is not None:
        tracing.get_current_span().add_event(
            event, {f"offbook.{name}": value for name, value in attributes.items()}
        )
