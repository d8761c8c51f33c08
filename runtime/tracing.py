"""Spans: they go to OpenTelemetry if the program uses it, and nowhere else.

Owns: the opening of a span, and notes on one. It must never be the first to import OpenTelemetry: a program that does not trace does not pay for it.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["Span", "note", "span"]


class Span:
    """A span around its `with` block; an exception that leaves the block is an error of the span. Without OpenTelemetry it does nothing."""

    __slots__ = ("_attributes", "_opening", "_real")

    def __init__(self, opening: AbstractContextManager[object] | None = None, attributes: dict[str, Any] | None = None) -> None:
        self._opening = opening
        self._attributes = attributes
        self._real: Any = None

    def __enter__(self) -> Self:
        if self._opening is not None:
            self._real = self._opening.__enter__()
            self.set(**(self._attributes or {}))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._opening is not None:
            self._opening.__exit__(kind, error, trace)

    def set(self, **attributes: str | float | bool | list[str]) -> None:
        """Add attributes."""
        if self._real is not None:
            for name, value in attributes.items():
                self._real.set_attribute(f"understudy.{name}", value)

    def fail(self, text: str) -> None:
        """Mark the span as failed."""
        if self._real is not None:
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- it is already imported

            self._real.set_status(Status(StatusCode.ERROR, text))


_NONE: Final = Span()


def span(name: str, **attributes: str | float | bool | list[str]) -> Span:
    """A span of that name, to be entered."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        return _NONE
    return Span(tracing.get_tracer("understudy").start_as_current_span(name), attributes)


def note(event: str, **attributes: str | float | bool) -> None:
    """Note on the span that is open here that something has happened."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is not None:
        tracing.get_current_span().add_event(event, {f"understudy.{name}": value for name, value in attributes.items()})
