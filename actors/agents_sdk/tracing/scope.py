"""Which trace and span are the current ones.

Owns: two context variables: tasks and threads that a program starts inherit them. It must never make a span.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spans import Span
    from .traces import Trace

__all__ = ["Scope"]

_span: contextvars.ContextVar[Span[Any] | None] = contextvars.ContextVar("current_span", default=None)
_trace: contextvars.ContextVar[Trace | None] = contextvars.ContextVar("current_trace", default=None)


class Scope:
    """The current trace and span of the running task."""

    @staticmethod
    def get_current_span() -> Span[Any] | None:
        return _span.get()

    @staticmethod
    def set_current_span(span: Span[Any] | None) -> contextvars.Token[Span[Any] | None]:
        return _span.set(span)

    @staticmethod
    def reset_current_span(token: contextvars.Token[Span[Any] | None]) -> None:
        _span.reset(token)

    @staticmethod
    def get_current_trace() -> Trace | None:
        return _trace.get()

    @staticmethod
    def set_current_trace(trace: Trace | None) -> contextvars.Token[Trace | None]:
        return _trace.set(trace)

    @staticmethod
    def reset_current_trace(token: contextvars.Token[Trace | None]) -> None:
        _trace.reset(token)
