"""Calls that wait for a decision.

Owns: whether a call needs one, whether there is one, and what the model is told of a refusal. It must never make a call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .....runtime.maybe_await import maybe_await
from ...exceptions import ModelBehaviorError, UserError
from ...items import ItemHelpers, ToolApprovalItem, ToolCallOutputItem
from ...logger import logger
from ...run_config import ToolErrorFormatterArgs
from ...tool.failure import is_from_program
from ...tool.function import origin_of
from ..live import LiveRun

__all__ = ["REJECTED", "error_output", "formatted", "needs_approval", "parsed", "rejected_function", "rejection", "status_of"]

REJECTED: Final = "Tool execution was not approved."


async def needs_approval(setting: Any, run: LiveRun, arguments: Any, call_id: str) -> bool:
    """What a tool's `needs_approval` says of a call."""
    if isinstance(setting, bool):
        return setting
    if not callable(setting):
        msg = f"Invalid needs_approval value: expected a bool or callable, got {type(setting).__name__}."
        raise UserError(msg)
    return bool(await maybe_await(setting(run.context, arguments, call_id)))


def parsed(text: str) -> dict[str, Any] | None:
    """The arguments of a call as `needs_approval` is given them; None if they are no JSON object."""
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


async def status_of(run: LiveRun, item: ToolApprovalItem, setting: Any, arguments: Any, on_approval: Any = None) -> tuple[bool | None, bool]:
    """What was decided about a call, and whether it has to wait for that. `on_approval` may decide at once."""
    call_id = item.call_id
    if not isinstance(call_id, str) or not call_id:
        msg = "Approval-gated tool calls require a non-empty call ID."
        raise ModelBehaviorError(msg)
    decisions = run.context.decisions
    answer = run.answers.pop(call_id, None)
    if answer is not None:
        decisions.decide(item, approve=answer[0], always=False, message=answer[1])
    found = decisions.about(item)
    if found is not None:
        return found, False
    needed = arguments is None or await needs_approval(setting, run, arguments, call_id)
    found = decisions.about(item)
    if found is None and needed and on_approval is not None:
        said = await maybe_await(on_approval(run.context, item))
        if isinstance(said, Mapping) and isinstance(said.get("approve"), bool):
            reason = said.get("reason")
            if said["approve"]:
                run.context.approve_tool(item)
            else:
                run.context.reject_tool(item, rejection_message=reason if isinstance(reason, str) and reason else None)
        found = decisions.about(item)
    return found, found is None and needed


async def formatted(run: LiveRun, kind: Any, tool_type: Any, name: str, call_id: str, default: str) -> str:
    """What the model is told of a call that is not made, as the run's formatter has it."""
    make = run.config.tool_error_formatter
    if make is None:
        return default
    try:
        said = await maybe_await(make(ToolErrorFormatterArgs(kind, tool_type, name, call_id, default, run.context)))
    except Exception:
        logger.exception("Tool error formatter failed")
        return default
    if said is not None and not isinstance(said, str):
        logger.error("Tool error formatter returned a non-string value")
    return said if isinstance(said, str) else default


async def rejection(run: LiveRun, item: ToolApprovalItem, tool_type: Any) -> str:
    """What the model is told of a call that was refused."""
    name, call_id = item.tool_name or "", item.call_id or ""
    said = run.context.get_rejection_message(name, call_id, existing_pending=item)
    if said is not None:
        return said
    if run.config.tool_error_formatter is not None:
        run.context.decisions.executed(item.raw_item, item.tool_lookup_key, None if item.tool_lookup_key else item.tool_name)
    return await formatted(run, "approval_rejected", tool_type, item.qualified_name or name, call_id, REJECTED)


def error_output(call: Any, output: Any, schema: dict[str, Any] | None) -> Any:
    """What a program is told of an error: it takes nothing but objects."""
    if schema is None or not isinstance(output, str) or not is_from_program(call):
        return output
    return json.dumps({"error": output}, ensure_ascii=False, separators=(",", ":"))


def rejected_function(agent: Any, call: Any, tool: Any, said: str) -> ToolCallOutputItem:
    """The result of a call of a function that was refused."""
    raw = ItemHelpers.tool_call_output_item(call, error_output(call, said, tool.output_json_schema))
    return ToolCallOutputItem(agent, raw, said, tool_origin=origin_of(tool))
