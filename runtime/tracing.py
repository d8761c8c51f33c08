"""Spans, for whoever traces: they go to OpenTelemetry, if the program has set it up, and nowhere else.

Owns: the opening of a span. It must never import OpenTelemetry by itself: a program that does not trace does not pay for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Span", "span"]


class Span:
    """A span that is open. Without OpenTelemetry it does nothing."""

    __slots__ = ("_real",)

    def __init__(self, real: Any = None) -> None:
        self._real = real

    def set(self, **attributes: str | float | bool | list[str]) -> None:
        """Say more of it."""
        if self._real is not None:
            for name, value in attributes.items():
                self._real.set_attribute(f"understudy.{name}", value)

    def fail(self, text: str) -> None:
        """Say that something was wrong."""
        if self._real is not None:
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 -- it is there already

            self._real.set_status(Status(StatusCode.ERROR, text))


@contextmanager
def span(name: str, **attributes: str | float | bool | list[str]) -> Iterator[Span]:
    """A span around what is in the `with` block; an exception that leaves it is an error of the span."""
    tracing: Any = sys.modules.get("opentelemetry.trace")
    if tracing is None:
        yield Span()
        return
    with tracing.get_tracer("understudy").start_as_current_span(name) as real:
        opened = Span(real)
        opened.set(**attributes)
        yield opened
