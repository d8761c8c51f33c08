"""How a run begins and ends.

Owns: its trace and spans, its input from a session, and what an error carries. It must never decide what happens in between.
"""

from __future__ import annotations

from typing import Any

from ..exceptions import AgentsException, RunErrorDetails
from ..items.history import as_input, complete
from ..tool import dispose_resolved_computers
from ..tracing.config import trace_for_run
from ..tracing.create import agent_span, get_current_trace, task_span
from ..tracing.errors import note_agent_error
from ..tracing.provider import get_trace_provider
from ..tracing.traces import TraceState
from ..usage import Usage
from .conversation import Conversation
from .ending import schema_of
from .live import LiveRun
from .sessions import prepared_input, save_input

__all__ = ["begin", "close_agent", "end", "failed", "open_agent", "spans_usage", "trace_of"]


def trace_of(run: LiveRun) -> Any:
    """The trace that the run has of its own; None if it is a part of one."""
    config, kept = run.config, run.state.trace_state
    named: list[Any] = [config.workflow_name, config.trace_id, config.group_id, config.trace_metadata, config.tracing]
    if kept is not None and run.is_resumed:
        if named[0] == "Agent workflow":
            named[0] = kept.workflow_name or named[0]
        named[1] = named[1] or kept.trace_id
        named[2] = named[2] or kept.group_id
        named[3] = kept.metadata if named[3] is None else named[3]
        if named[4] is None and kept.tracing_api_key is not None:
            named[4] = {"api_key": kept.tracing_api_key}
    workflow, trace_id, group_id, metadata, tracing = named
    return trace_for_run(workflow, trace_id, group_id, metadata, tracing, config.tracing_disabled, kept, run.is_resumed)


async def begin(run: LiveRun) -> None:
    """Begin: the trace, the spans, and what a session adds to the input."""
    run.begun = True
    state, config = run.state, run.config
    if run.output is None:
        run.trace = trace_of(run)
    if run.trace is not None:
        run.trace.start(mark_as_current=True)
    current = get_current_trace()
    run.traced = current is not None and current.export() is not None and not getattr(get_trace_provider(), "is_idle", False)
    if run.traced:
        state.trace_state = TraceState.from_trace(current)
        if state.trace_state is not None:
            state.trace_state.extra["begun_here"] = True
        if config.tracing is None or config.tracing.get("include_task_and_turn_spans", True):
            run.task_span = task_span(run.trace.name if run.trace is not None else config.workflow_name)
            run.usage_before = run.context.usage.copy()
            run.task_span.start(mark_as_current=True)
    if state.conversation_id is not None or state.previous_response_id is not None or state.auto_previous_response_id:
        run.conversation = Conversation(
            state.conversation_id, state.previous_response_id, auto=state.auto_previous_response_id, without_ids=state.omits_reasoning_ids
        )
        if run.is_resumed:
            run.conversation.resume(state.original_input, state.generated_items, state.model_responses, state.unsent_outputs())
    if run.is_resumed:
        if isinstance(state.original_input, list):
            state.original_input = complete([as_input(item) for item in state.original_input])
    elif run.session is not None and run.conversation is None:
        state.original_input, run.new_input = await prepared_input(run, state.original_input)
        if run.output is None:
            await save_input(run)


def open_agent(run: LiveRun, agent: Any) -> None:
    """The agent's span, if there is none."""
    if run.traced and run.agent_span is None:
        schema = schema_of(agent)
        run.agent_span = agent_span(agent.name, [], [], "str" if schema is None else schema.name())
        run.agent_span.start(mark_as_current=True)


def close_agent(run: LiveRun) -> None:
    """The agent's span ends."""
    span, run.agent_span = run.agent_span, None
    if span is not None:
        span.finish(reset_current=True)


def spans_usage(before: Usage | None, now: Usage) -> dict[str, int]:
    """What was counted since then, as spans say it."""
    earlier = before or Usage()

    def details(usage: Usage, name: str) -> int:
        return getattr(usage.input_tokens_details, name, 0) or 0

    return {
        "input_tokens": now.input_tokens - earlier.input_tokens,
        "output_tokens": now.output_tokens - earlier.output_tokens,
        "cached_input_tokens": details(now, "cached_tokens") - details(earlier, "cached_tokens"),
        "cache_write_input_tokens": details(now, "cache_write_tokens") - details(earlier, "cache_write_tokens"),
    }


def failed(run: LiveRun, error: BaseException) -> None:
    """Note what has ended the run."""
    run.error = error
    note_agent_error(run.agent_span, error, include=run.config.trace_include_sensitive_data)
    if isinstance(error, AgentsException) and not error.keeps_run_to_itself:
        state = run.state
        error.run_data = RunErrorDetails(
            input=state.original_input,
            new_items=state.session_items,
            raw_responses=state.model_responses,
            last_agent=state.current_agent,
            context_wrapper=run.context,
            input_guardrail_results=state.input_guardrail_results,
            output_guardrail_results=state.output_guardrail_results,
            tool_input_guardrail_results=state.tool_input_results,
            tool_output_guardrail_results=state.tool_output_results,
        )


async def end(run: LiveRun) -> None:
    """End: the spans and the trace."""
    if run.ended:
        return
    run.ended = True
    if any(getattr(tool, "of_runs", None) for tool in run.model_tools):
        await dispose_resolved_computers(run_context=run.context, tools=run.model_tools)
    if run.conversation is not None:
        run.state.previous_response_id = run.conversation.previous_response_id
    close_agent(run)
    if run.task_span is not None:
        before, now = run.usage_before, run.context.usage
        total = {"requests": now.requests - before.requests, "total_tokens": now.total_tokens - before.total_tokens}
        run.task_span.span_data.usage = {**spans_usage(before, now), **total}
        run.task_span.finish(reset_current=True)
    if run.trace is not None:
        run.trace.finish(reset_current=True)
    if (core := run.context.understudy) is not None:
        # The two would keep each other alive, and all that is theirs, until the garbage collector comes.
        core.options = tuple(one for one in core.options if one is not run)
