"""A run's state as JSON.

Owns: the writing, in the SDK's form. It must never leave out what a run needs to go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

from ..guardrail import OutputGuardrailResult
from ..items import ModelResponse, ToolApprovalItem
from ..items.kinds import plain
from ..tool import FunctionTool
from ..usage import serialize_usage
from .agents_by_name import AgentNames
from .contexts import context_data
from .versions import CURRENT_SCHEMA_VERSION

if TYPE_CHECKING:
    from .state import RunState

__all__ = ["state_data"]


def state_data(state: RunState[Any, Any], serializer: Callable[[Any], Any] | None, *, strict: bool, with_key: bool) -> dict[str, Any]:
    """The state as JSON."""
    names = AgentNames(state.starting_agent)
    places = {id(item): index for index, item in enumerate(state.session_items)}
    responses = [_response(one) for one in state.model_responses]
    interrupted = bool(state.interruptions)
    data: dict[str, Any] = {
        "$schemaVersion": CURRENT_SCHEMA_VERSION,
        "current_turn": state.current_turn,
        "current_agent": names.reference(state.current_agent),
        "original_input": state.original_input if isinstance(state.original_input, str) else [_asked(item) for item in state.original_input],
        "pending_input": [_plain(item) for item in state.waiting_input],
        "model_responses": responses,
        "context": _context(state, serializer, strict=strict),
        "tool_use_tracker": {names.name_of(agent): list(used) for agent, used in state.used_tools.values()},
        "max_turns": state.max_turns,
        "no_active_agent_run": True,
        "input_guardrail_results": [_guardrail(one, names) for one in state.input_guardrail_results],
        "output_guardrail_results": [_guardrail(one, names) for one in state.output_guardrail_results],
        "tool_input_guardrail_results": [_tool_guardrail(one, "tool_input") for one in state.tool_input_results],
        "tool_output_guardrail_results": [_tool_guardrail(one, "tool_output") for one in state.tool_output_results],
        "conversation_id": state.conversation_id,
        "previous_response_id": state.previous_response_id,
        "auto_previous_response_id": state.auto_previous_response_id,
        "generated_prompt_cache_key": None,
        "reasoning_item_id_policy": state.reasoning_policy,
        "nested_history_owned_session_item_refs": [
            {"session_item_index": places[id(one.item)], "input_item_index": one.index, "input_item_digest": one.digest}
            for one in state.owned
            if id(one.item) in places
        ],
        "generated_session_item_indexes": [places.get(id(item)) for item in state.generated_items],
        "generated_items": [_item(item, names) for item in state.generated_items],
        "session_items": [_item(item, names) for item in state.session_items],
        "current_step": None,
        "last_model_response": responses[-1] if responses else None,
        "last_processed_response": _last_response(state, names) if interrupted and state.model_responses else None,
        "current_turn_persisted_item_count": state.persisted_count,
        "trace": None if state.trace_state is None else state.trace_state.to_json(include_tracing_api_key=with_key),
    }
    if interrupted:
        waiting = {"interruptions": [_item(item, names) for item in state.interruptions], "response_accepted": False, "llm_end_hooks_started": True}
        data["current_step"] = {"type": "next_step_interruption", "data": waiting}
    elif state.goes_on:
        data["current_step"] = {"type": "next_step_run_again"}
    if state.nested:
        data["pending_agent_tool_runs"] = {call_id: state_data(one, serializer, strict=False, with_key=with_key) for call_id, one in state.nested.items()}
    return data


def _context(state: RunState[Any, Any], serializer: Callable[[Any], Any] | None, *, strict: bool) -> dict[str, Any]:
    decisions = state.context.decisions
    value, meta = context_data(state.context.context, serializer, strict=strict)
    found = {
        "usage": serialize_usage(state.context.usage),
        "approvals": {key: one.to_json() for key, one in decisions.by_key.items()},
        "tool_invocations": {
            call_id: {
                "type": call.kind,
                "approval_scope": call.scope,
                "fingerprint": call.fingerprint,
                "executed": call.executed,
                "completed": call.completed,
            }
            for call_id, call in decisions.calls.items()
        },
        "context": _json(value),
        "context_meta": meta,
    }
    if decisions.by_server:
        found["hosted_mcp_approvals"] = [{"server_label": server, "tool_name": tool, **one.to_json()} for (server, tool), one in decisions.by_server.items()]
    if state.context.tool_input is not None:
        found["tool_input"] = _plain(state.context.tool_input)
    return found


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return _json(plain(value))


def _asked(item: Any) -> Any:
    """An item of the input: what an assistant has said is a list of parts."""
    data = _plain(item)
    if isinstance(data, dict) and data.get("role") == "assistant":
        if isinstance(data.get("content"), str):
            data["content"] = [{"type": "output_text", "text": data["content"]}]
        data.setdefault("status", "completed")
    return data


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _response(response: ModelResponse) -> dict[str, Any]:
    data = {
        "usage": serialize_usage(response.usage),
        "output": [_plain(item) for item in response.output],
        "response_id": response.response_id,
        "request_id": response.request_id,
    }
    if response.raw_usage is not None:
        data["raw_usage"] = response.raw_usage
    return data


def _item(item: Any, names: AgentNames) -> dict[str, Any]:
    """An item of a run."""
    data: dict[str, Any] = {"type": str(item.type), "raw_item": _plain(item.raw_item), "agent": names.reference(item.agent)}
    if item.type == "tool_call_output_item":
        data["output"] = _plain(item.output)
    for name in ("source_agent", "target_agent"):
        agent = getattr(item, name, None)
        if agent is not None:
            data[name] = names.reference(agent)
    for name in ("tool_name", "tool_namespace", "description", "title", "custom_data", "input_id"):
        value = getattr(item, name, None)
        if value is not None:
            data[name] = _plain(value)
    if isinstance(item, ToolApprovalItem):
        if item.tool_lookup_key is not None:
            kind, *parts = item.tool_lookup_key
            data["tool_lookup_key"] = {"kind": kind, "name": parts[-1], **({"namespace": parts[0]} if len(parts) > 1 else {})}
        if item.allow_bare_name_alias:
            data["allow_bare_name_alias"] = True
    origin = getattr(item, "tool_origin", None)
    if origin is not None:
        data["tool_origin"] = origin.to_json_dict()
    return data


def _guardrail(result: Any, names: AgentNames) -> dict[str, Any]:
    is_output = isinstance(result, OutputGuardrailResult)
    data: dict[str, Any] = {
        "guardrail": {"type": "output" if is_output else "input", "name": result.guardrail.get_name()},
        "output": {"tripwireTriggered": result.output.tripwire_triggered, "outputInfo": _plain(result.output.output_info)},
    }
    if isinstance(result, OutputGuardrailResult):
        data |= {"agentOutput": _plain(result.agent_output), "agent": names.reference(result.agent)}
    return data


def _tool_guardrail(result: Any, kind: str) -> dict[str, Any]:
    output = {"outputInfo": _plain(result.output.output_info), "behavior": _plain(result.output.behavior)}
    return {"guardrail": {"type": kind, "name": result.guardrail.get_name()}, "output": output}


def _last_response(state: RunState[Any, Any], names: AgentNames) -> dict[str, Any]:
    """What the last reply asks for, for the SDK; here it is read again from the reply."""
    output: Sequence[Any] = state.model_responses[-1].output
    ids = {id(item) for item in output}
    tools = {tool.name: tool for tool in state.current_agent.tools if isinstance(tool, FunctionTool)}
    functions = [
        {
            "tool_call": _plain(call),
            "tool": {
                "name": tools[call.name].name,
                "lookupKey": {"kind": "bare", "name": call.name},
                "description": tools[call.name].description,
                "paramsJsonSchema": tools[call.name].params_json_schema,
            },
        }
        for call in output
        if isinstance(call, ResponseFunctionToolCall) and call.name in tools
    ]
    return {
        "new_items": [_item(item, names) for item in state.session_items if id(item.raw_item) in ids and not isinstance(item, ToolApprovalItem)],
        "tools_used": [call["tool"]["name"] for call in functions],
        "functions": functions,
        "computer_actions": [],
        "custom_tool_actions": [],
        "local_shell_actions": [],
        "shell_actions": [],
        "apply_patch_actions": [],
        "handoffs": [],
        "mcp_approval_requests": [],
        "interruptions": [_item(item, names) for item in state.interruptions],
    }
