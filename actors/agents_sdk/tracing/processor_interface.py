"""What traces and spans are shown to.

Owns: the two interfaces. It must never do anything with a trace.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .spans import Span
    from .traces import Trace

__all__ = ["TracingExporter", "TracingProcessor"]


class TracingProcessor(abc.ABC):
    """Is shown every trace and span when it begins and when it ends, in the thread in which it does: it must not block."""

    @abc.abstractmethod
    def on_trace_start(self, trace: Trace) -> None: ...
    @abc.abstractmethod
    def on_trace_end(self, trace: Trace) -> None: ...
    @abc.abstractmethod
    def on_span_start(self, span: Span[Any]) -> None: ...
    @abc.abstractmethod
    def on_span_end(self, span: Span[Any]) -> None: ...
    @abc.abstractmethod
    def shutdown(self) -> None: ...
    @abc.abstractmethod
    def force_flush(self) -> None: ...


class TracingExporter(abc.ABC):
    """Sends traces and spans somewhere."""

    @abc.abstractmethod
    def export(self, items: list[Trace | Span[Any]]) -> None: ...
