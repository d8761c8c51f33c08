"""A handoff.

Owns: from its call to what the agent that takes over is given. It must never begin that agent: the runtime does.
"""

from __future__ import annotations

from types import CoroutineType
from typing import Any

from .....runtime.maybe_await import maybe_await
from ...exceptions import UserError
from ...handoffs import HandoffInputData
from ...handoffs.history import nest_handoff_history
from ...handoffs.owned import still_owned
from ...items import HandoffOutputItem, ItemHelpers, ModelResponse, ToolCallOutputItem
from ...logger import logger
from ...tracing.create import handoff_span
from ...tracing.errors import attach_to
from ...tracing.span_data import HandoffSpanData
from ...tracing.spans import NoOpSpan
from ..hooks import call_hooks
from ..live import LiveRun
from ..steps import Asked, HandOver, Step

__all__ = ["hand_over"]


async def hand_over(run: LiveRun, agent: Any, asked: Asked, response: ModelResponse, before: list[Any], new: list[Any]) -> Step:
    """Carry out the first handoff of a reply."""
    runs = asked.handoffs
    for other in runs[1:]:
        said = "Multiple handoffs detected, ignoring this one."
        ignored = ItemHelpers.tool_call_output_item(other.call, said)
        new.append(ToolCallOutputItem(agent, ignored, said))
        run.context.decisions.completed(ignored)
    with handoff_span(agent.name) if run.traced else NoOpSpan(HandoffSpanData()) as span:
        call, handoff = runs[0]
        run.context.decisions.executed(call, role="handoff")
        invoked = handoff.on_invoke_handoff(run.context, call.arguments)
        target = await (invoked if type(invoked) is CoroutineType else maybe_await(invoked))
        span.span_data.to_agent = target.name
        if len(runs) > 1:
            attach_to(span, "Multiple handoffs requested", {"requested_agents": [one.handoff.agent_name for one in runs]})
        raw = ItemHelpers.tool_call_output_item(call, handoff.get_transfer_message(target))
        output = HandoffOutputItem(agent, raw, agent, target)
        new.append(output)
        if run.hooks is not None or agent.hooks is not None:
            await call_hooks(run, agent, "on_handoff", "on_handoff", run.context, agent, target, agent_args=(run.context, target, agent))
        step = await _filtered(run, agent, target, handoff, before, new, span)
    step.response, step.asked, step.next = response, asked, HandOver(target)
    run.context.decisions.completed(raw)
    return step


async def _filtered(run: LiveRun, agent: Any, target: Any, handoff: Any, before: list[Any], new: list[Any], span: Any) -> Step:
    """What the agent is given, and what is recorded, as the filter has it."""
    state, config = run.state, run.config
    change = handoff.input_filter if handoff.input_filter is not None else config.handoff_input_filter
    nests = handoff.nest_handoff_history if handoff.nest_handoff_history is not None else config.nest_handoff_history
    step = Step(HandOver(target), state.model_responses[-1] if state.model_responses else None, state.original_input, before, new)  # type: ignore[arg-type]
    if run.conversation is not None:
        if change is not None:
            msg = (
                "Server-managed conversations do not support handoff input filters. Remove Handoff.input_filter or RunConfig.handoff_input_filter, "
                "or disable conversation_id, previous_response_id, and auto_previous_response_id."
            )
            raise UserError(msg)
        if nests:
            logger.warning(
                "Server-managed conversations do not support nest_handoff_history for handoff %s -> %s. Disabling nested handoff history and continuing "
                "with delta-only input.",
                agent.name,
                target.name,
            )
        return step
    if change is None and not nests:
        return step
    history = tuple(state.original_input) if isinstance(state.original_input, list) else state.original_input
    data = HandoffInputData(history, tuple(before), tuple(new), run.context, owned=tuple(state.owned))
    if change is not None:
        data = await _checked(change, data, span)
    else:
        data = nest_handoff_history(data, history_mapper=config.handoff_history_mapper)
    step.original_input = (data.input_history or []) if isinstance(data.input_history, str) else list(data.input_history)  # nothing is no message
    step.before = list(data.pre_handoff_items)
    step.owned = still_owned(data.input_history, data.owned or state.owned)
    if data.input_items is not None:
        step.recorded, step.new = list(data.new_items), list(data.input_items)
    else:
        step.new = list(data.new_items)
        step.recorded = None if change is not None else list(data.new_items)
    return step


async def _checked(change: Any, data: HandoffInputData, span: Any) -> HandoffInputData:
    if not callable(change):
        attach_to(span, "Invalid input filter", {"details": "not callable()"})
        msg = f"Invalid input filter: {change}"
        raise UserError(msg)
    found = await maybe_await(change(data))
    if not isinstance(found, HandoffInputData):
        attach_to(span, "Invalid input filter result", {"details": "not a HandoffInputData"})
        msg = f"Invalid input filter result: {found}"
        raise UserError(msg)
    return found
