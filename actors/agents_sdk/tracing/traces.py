"""A trace: all that is done in one run, or in several that belong together.

Owns: its ids and its JSON form. It must never hold its spans.
"""

from __future__ import annotations

import contextvars
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from .ids import gen_trace_id
from .processor_interface import TracingProcessor
from .scope import Scope

__all__ = ["NoOpTrace", "Trace", "TraceImpl", "TraceState", "key_hash"]


class Trace:
    """All that is done in one run. Use it as a context manager, or call `start` and `finish`."""

    trace_id: str = "no-op"
    name: str = "no-op"
    group_id: str | None = None
    metadata: dict[str, Any] | None = None
    tracing_api_key: str | None = None

    def __init__(self) -> None:
        self._token: contextvars.Token[Trace | None] | None = None
        self._started = False

    def start(self, mark_as_current: bool = False) -> None:
        """It begins."""
        self._started = True
        if mark_as_current:
            self._token = Scope.set_current_trace(self)

    def finish(self, reset_current: bool = False) -> None:
        """It ends."""
        if reset_current and self._token is not None:
            token, self._token = self._token, None
            Scope.reset_current_trace(token)

    def export(self) -> dict[str, Any] | None:
        """What of it goes out; None for nothing."""
        return None

    def to_json(self, *, include_tracing_api_key: bool = False) -> dict[str, Any] | None:
        """The same, with the key if it is asked for."""
        found = self.export()
        if found is not None and include_tracing_api_key and self.tracing_api_key:
            found["tracing_api_key"] = self.tracing_api_key
        return found

    def __enter__(self) -> Self:
        if not self._started:
            self.start(mark_as_current=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.finish(reset_current=True)
        except ValueError:
            if kind is not GeneratorExit:
                raise


class NoOpTrace(Trace):
    """A trace that is shown to no processor. What is done within is not either."""


class TraceImpl(Trace):
    """A trace that processors are shown. One that is attached again has begun before, and they are not told of it twice."""

    def __init__(
        self,
        name: str,
        trace_id: str | None,
        group_id: str | None,
        metadata: dict[str, Any] | None,
        processor: TracingProcessor | None,
        tracing_api_key: str | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.trace_id = trace_id or gen_trace_id()
        self.group_id = group_id
        self.metadata = metadata
        self.tracing_api_key = tracing_api_key
        self._processor = processor

    def start(self, mark_as_current: bool = False) -> None:
        if self._started:
            return
        if self._processor is not None:
            self._processor.on_trace_start(self)
        super().start(mark_as_current)

    def finish(self, reset_current: bool = False) -> None:
        if not self._started:
            return
        if self._processor is not None:
            self._processor.on_trace_end(self)
        super().finish(reset_current)

    def export(self) -> dict[str, Any] | None:
        return {"object": "trace", "id": self.trace_id, "workflow_name": self.name, "group_id": self.group_id, "metadata": self.metadata}


def key_hash(key: str | None) -> str | None:
    """What tells one key from another, and does not give it away."""
    return None if key is None else hashlib.sha256(key.encode()).hexdigest()


@dataclass
class TraceState:
    """A trace, as it is kept with the state of a run."""

    trace_id: str | None = None
    workflow_name: str | None = None
    group_id: str | None = None
    metadata: dict[str, Any] | None = None
    tracing_api_key: str | None = None
    tracing_api_key_hash: str | None = None
    object_type: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_trace(cls, trace: Trace | None) -> TraceState | None:
        """The state of a trace; None if no processor sees it."""
        return None if trace is None else cls.from_json(trace.to_json(include_tracing_api_key=True))

    @classmethod
    def from_json(cls, payload: Mapping[str, Any] | None) -> TraceState | None:
        """The state of that JSON."""
        if not payload:
            return None
        data = dict(payload)

        def text(name: str) -> str | None:
            value = data.pop(name, None)
            return value if isinstance(value, str) else None

        metadata = data.pop("metadata", None)
        key, hashed = text("tracing_api_key"), text("tracing_api_key_hash")
        fields = (text("id") or text("trace_id"), text("workflow_name"), text("group_id"), metadata if isinstance(metadata, dict) else None)
        return cls(*fields, key, key_hash(key) or hashed, text("object"), data)

    def to_json(self, *, include_tracing_api_key: bool = False) -> dict[str, Any] | None:
        """The state as JSON. The key is in there only if it is asked for."""
        named = {
            "object": self.object_type,
            "id": self.trace_id,
            "workflow_name": self.workflow_name,
            "group_id": self.group_id,
            "metadata": None if self.metadata is None else dict(self.metadata),
            "tracing_api_key": self.tracing_api_key if include_tracing_api_key else None,
            "tracing_api_key_hash": self.tracing_api_key_hash,
        }
        return {**{name: value for name, value in self.extra.items() if name not in named}, **{k: v for k, v in named.items() if v is not None}} or None
