"""A run's state from JSON.

Owns: the reading: items with their agents, decisions, and what guardrails have found. It must never run anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..exceptions import UserError
from ..guardrail import GuardrailFunctionOutput, InputGuardrail, InputGuardrailResult, OutputGuardrail, OutputGuardrailResult
from ..handoffs.owned import Owned
from ..items import (
    CompactionItem,
    HandoffCallItem,
    HandoffOutputItem,
    InputItem,
    MCPApprovalRequestItem,
    MCPApprovalResponseItem,
    MCPListToolsItem,
    MessageOutputItem,
    ModelResponse,
    ReasoningItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)
from ..logger import logger
from ..play.turn import output_item
from ..run_context import RunContextWrapper
from ..run_context.decisions import Call, Decision
from ..tool import ToolOrigin
from ..tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailResult, ToolOutputGuardrail, ToolOutputGuardrailResult
from ..tracing.traces import TraceState
from ..usage import deserialize_usage
from .agents_by_name import AgentNames
from .state import RunState

__all__ = ["state_of"]

_PLAIN_ITEMS: Mapping[str, Any] = {
    "message_output_item": MessageOutputItem,
    "reasoning_item": ReasoningItem,
    "handoff_call_item": HandoffCallItem,
    "tool_search_call_item": ToolSearchCallItem,
    "tool_search_output_item": ToolSearchOutputItem,
    "mcp_list_tools_item": MCPListToolsItem,
    "mcp_approval_request_item": MCPApprovalRequestItem,
    "mcp_approval_response_item": MCPApprovalResponseItem,
    "compaction_item": CompactionItem,
}
_KEPT_AS_DICTS = frozenset({"mcp_approval_response_item", "compaction_item"})


def state_of(
    initial_agent: Any, data: Mapping[str, Any], context: RunContextWrapper[Any] | Callable[[Mapping[str, Any]], RunContextWrapper[Any]]
) -> RunState[Any, Any]:
    """The state of that JSON."""
    names = AgentNames(initial_agent)
    current = names.named(data.get("current_agent"))
    if current is None:
        msg = "Run state agent not found in agent map"
        raise UserError(msg)
    kept = data.get("context") or {}
    wrapper = context(kept) if callable(context) else context
    _restore_context(wrapper, kept)
    state: RunState[Any, Any] = RunState(
        wrapper,
        data["original_input"],
        initial_agent,
        data.get("max_turns"),
        conversation_id=data.get("conversation_id"),
        previous_response_id=data.get("previous_response_id"),
        auto_previous_response_id=bool(data.get("auto_previous_response_id")),
    )
    state.current_agent = current
    state.current_turn = data.get("current_turn", 0)
    state.waiting_input = list(data.get("pending_input") or ())
    state.reasoning_policy = data.get("reasoning_item_id_policy")
    state.persisted_count = data.get("current_turn_persisted_item_count") or 0
    state.trace_state = TraceState.from_json(data.get("trace"))
    state.model_responses = [_response(one) for one in data.get("model_responses") or ()]
    state.last_response = state.model_responses[-1] if state.model_responses else None
    _restore_items(state, data, names)
    for name, tools in (data.get("tool_use_tracker") or {}).items():
        agent = names.named(name)
        if agent is not None:
            state.used_tools[id(agent)] = (agent, list(tools))
    step = data.get("current_step") or {}
    state.goes_on = step.get("type") == "next_step_run_again"
    if step.get("type") == "next_step_interruption":
        waiting = [_item(one, names) for one in (step.get("data") or {}).get("interruptions") or ()]
        known = {one.call_id: one for one in state.generated_items if isinstance(one, ToolApprovalItem)}
        state.interruptions = [known.get(one.call_id, one) for one in waiting if one is not None]
    _restore_guardrails(state, data, names)
    for call_id, nested in (data.get("pending_agent_tool_runs") or {}).items():
        agent = names.named(nested.get("current_agent"))
        if agent is not None:
            state.nested[call_id] = state_of(agent, nested, RunContextWrapper(wrapper.context))
    _join_nested(state)
    return state


def _join_nested(state: RunState[Any, Any]) -> None:
    """The calls that nested runs wait for are the same objects there."""
    inner = [item for nested in state.nested.values() for item in nested.interruptions]
    state.interruptions = [next((one for one in inner if one.call_id == item.call_id and one.agent is item.agent), item) for item in state.interruptions]


def _restore_context(wrapper: RunContextWrapper[Any], data: Mapping[str, Any]) -> None:
    wrapper.usage = deserialize_usage(data.get("usage") or {})
    decisions = wrapper.decisions
    for key, one in (data.get("approvals") or {}).items():
        decisions.by_key[key] = Decision.from_json(one)
    for one in data.get("hosted_mcp_approvals") or ():
        decisions.by_server[(one.get("server_label") or "", one.get("tool_name") or "")] = Decision.from_json(one)
    for call_id, one in (data.get("tool_invocations") or {}).items():
        decisions.calls[call_id] = Call(one["type"], one["approval_scope"], one["fingerprint"], bool(one.get("executed")), bool(one.get("completed")))


def _response(data: Mapping[str, Any]) -> ModelResponse:
    output = [output_item(item) for item in data.get("output") or ()]
    return ModelResponse(output, deserialize_usage(data.get("usage") or {}), data.get("response_id"), data.get("request_id"), data.get("raw_usage"))


def _restore_items(state: RunState[Any, Any], data: Mapping[str, Any], names: AgentNames) -> None:
    recorded = [_item(one, names) for one in data.get("session_items") or ()]
    places = data.get("generated_session_item_indexes") or []
    generated: list[Any] = []
    for index, one in enumerate(data.get("generated_items") or ()):
        place = places[index] if index < len(places) else None
        generated.append(recorded[place] if isinstance(place, int) and place < len(recorded) else _item(one, names))
    state.generated_items = [item for item in generated if item is not None]
    state.session_items = [item for item in recorded if item is not None] if "session_items" in data else list(state.generated_items)
    for one in data.get("nested_history_owned_session_item_refs") or ():
        place = one.get("session_item_index")
        if isinstance(place, int) and place < len(recorded) and recorded[place] is not None:
            state.owned.append(Owned(recorded[place], one.get("input_item_index", 0), one.get("input_item_digest", "")))


def _item(data: Mapping[str, Any], names: AgentNames) -> Any:
    """An item of a run; None for one that nothing is known of."""
    kind, raw = data.get("type"), data.get("raw_item") or data.get("rawItem")
    agent = names.named(data.get("agent"))
    if agent is None or not isinstance(kind, str) or raw is None:
        logger.warning("An item of a run's state is left out: its agent or its type is not known (%s).", kind)
        return None
    origin = ToolOrigin.from_json_dict(data.get("tool_origin"))
    if kind == "tool_call_output_item":
        return ToolCallOutputItem(agent, raw, data.get("output"), tool_origin=origin, custom_data=data.get("custom_data"))
    if kind == "handoff_output_item":
        source, target = names.named(data.get("source_agent")) or agent, names.named(data.get("target_agent")) or agent
        return HandoffOutputItem(agent, raw, source, target)
    if kind == "input_item":
        item = InputItem(agent, raw)
        item.input_id = data.get("input_id") or item.input_id
        return item
    if kind == "tool_approval_item":
        key = data.get("tool_lookup_key")
        parts: Any = (key["kind"], *((key["namespace"],) if key.get("namespace") else ()), key["name"]) if isinstance(key, Mapping) else None
        return ToolApprovalItem(
            agent,
            raw if raw.get("type") == "shell_call" else output_item(raw),
            data.get("tool_name"),
            tool_namespace=data.get("tool_namespace"),
            tool_origin=origin,
            tool_lookup_key=parts,
            allow_bare_name_alias=bool(data.get("allow_bare_name_alias")),
        )
    if kind == "tool_call_item":
        named = None if isinstance(raw.get("name"), str) else data.get("tool_name")
        return ToolCallItem(agent, output_item(raw), description=data.get("description"), title=data.get("title"), tool_origin=origin, resolved_name=named)
    made = _PLAIN_ITEMS.get(kind)
    if made is None:
        logger.warning("An item of a run's state is left out: its type is not known (%s).", kind)
        return None
    return made(agent, raw if kind in _KEPT_AS_DICTS else output_item(raw))


def _restore_guardrails(state: RunState[Any, Any], data: Mapping[str, Any], names: AgentNames) -> None:
    for one in data.get("input_guardrail_results") or ():
        guardrail: Any = InputGuardrail(_never, name=one["guardrail"]["name"])
        state.input_guardrail_results.append(InputGuardrailResult(guardrail, _output(one)))
    for one in data.get("output_guardrail_results") or ():
        output: Any = OutputGuardrail(_never, name=one["guardrail"]["name"])
        agent = names.named(one.get("agent"))
        state.output_guardrail_results.append(OutputGuardrailResult(output, one.get("agentOutput"), agent, _output(one)))
    for one in data.get("tool_input_guardrail_results") or ():
        of_input: Any = ToolInputGuardrail(_never, name=one["guardrail"]["name"])
        state.tool_input_results.append(ToolInputGuardrailResult(of_input, _tool_output(one)))
    for one in data.get("tool_output_guardrail_results") or ():
        of_output: Any = ToolOutputGuardrail(_never, name=one["guardrail"]["name"])
        state.tool_output_results.append(ToolOutputGuardrailResult(of_output, _tool_output(one)))


def _never(*_args: Any) -> Any:
    msg = "This guardrail was read from a run's state: its result is known, and it cannot be called."
    raise UserError(msg)


def _output(data: Mapping[str, Any]) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(data["output"].get("outputInfo"), bool(data["output"].get("tripwireTriggered")))


def _tool_output(data: Mapping[str, Any]) -> ToolGuardrailFunctionOutput:
    behavior: Any = data["output"].get("behavior") or {"type": "allow"}
    return ToolGuardrailFunctionOutput(data["output"].get("outputInfo"), behavior)
