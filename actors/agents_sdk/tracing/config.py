"""How a run is traced.

Owns: whether a run has a trace of its own, or goes on with one that it had. It must never end a trace that it has not begun.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from .config_type import TracingConfig as TracingConfig
from .provider import get_trace_provider
from .traces import NoOpTrace, Trace, TraceImpl, TraceState, key_hash

__all__ = ["TraceCtxManager", "trace_for_run"]


def trace_for_run(
    workflow_name: str,
    trace_id: str | None,
    group_id: str | None,
    metadata: dict[str, Any] | None,
    tracing: TracingConfig | None,
    disabled: bool,
    trace_state: TraceState | None = None,
    reattach_resumed_trace: bool = False,
) -> Trace | None:
    """The trace of a run; None if it is a part of one."""
    provider = get_trace_provider()
    if provider.get_current_trace() is not None:
        return None
    if getattr(provider, "is_idle", False):
        return NoOpTrace()
    key = (tracing or {}).get("api_key")
    if reattach_resumed_trace and not disabled and trace_state is not None and trace_state.trace_id is not None:
        same = (trace_state.trace_id, trace_state.workflow_name, trace_state.group_id, trace_state.metadata) == (trace_id, workflow_name, group_id, metadata)
        if same and trace_state.extra.get("begun_here") and trace_state.tracing_api_key_hash == key_hash(key):
            return TraceImpl(workflow_name, trace_id, group_id, metadata, None, key)
    return provider.create_trace(workflow_name, trace_id, group_id, metadata, disabled, tracing)


class TraceCtxManager:
    """Runs what is within it in a trace: the current one, or one that begins and ends here."""

    def __init__(
        self,
        workflow_name: str,
        trace_id: str | None,
        group_id: str | None,
        metadata: dict[str, Any] | None,
        tracing: TracingConfig | None,
        disabled: bool,
        trace_state: TraceState | None = None,
        reattach_resumed_trace: bool = False,
    ) -> None:
        self._given = (workflow_name, trace_id, group_id, metadata, tracing, disabled, trace_state, reattach_resumed_trace)
        self.trace: Trace | None = None

    def __enter__(self) -> Self:
        self.trace = trace_for_run(*self._given)
        if self.trace is not None:
            self.trace.start(mark_as_current=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.trace is not None:
            self.trace.finish(reset_current=True)
