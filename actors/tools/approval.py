"""Calls that have to be approved first.

Owns: what is asked, the answers that there are, and what becomes of the call by them. What cannot be called is not asked about.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ...runtime.codec.packing import register_type
from ...runtime.data.chat import ToolCall
from ...runtime.errors import ToolError
from ...runtime.maybe_await import maybe_await
from .tool import Tool
from .tool_context import ToolContext, call_door_of

__all__ = ["ApprovalRequest", "Approve", "Denied", "Deny", "approved"]


class Denied(ToolError):
    """The answer was no. That is an answer, and no failure of the tool: the model is told, whatever becomes of errors."""


@register_type(name="Approve")
@dataclass(frozen=True, slots=True)
class Approve:
    """The call may be made; with these arguments, if there are any: as JSON text, or as what is to be such."""

    arguments: str | Mapping[str, object] | None = None


@register_type(name="Deny")
@dataclass(frozen=True, slots=True)
class Deny:
    """The call must not be made; the model is told, and why."""

    reason: str = ""


@register_type(name="ApprovalRequest")
@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What an interrupt says of a call that needs approval."""

    tool_name: str
    arguments: str

    def approve(self, arguments: str | Mapping[str, object] | None = None) -> Approve:
        """The answer that the call may be made, for a caller that answers without knowing what asks."""
        return Approve(arguments)

    def deny(self, reason: str = "") -> Deny:
        """The answer that it must not."""
        return Deny(reason)

    def check_answer(self, data: object) -> str | None:
        """What is wrong with an answer; None if it is one."""
        if isinstance(data, bool | Approve | Deny):
            return None
        return f"the call of {self.tool_name!r} waits to be approved, and {data!r} is no answer. Give True, False, Approve(arguments=...) or Deny(reason)."


async def approved(context: ToolContext, tool: Tool, call: ToolCall) -> ToolCall:
    """The call as it may be made. Interrupts the run if it was not asked about yet; raises ToolError, for the model to read, if it was denied."""
    needed = tool.needs_approval
    if not needed:
        return call
    door = call_door_of(context)
    if not door.was_approved:
        tool.check_arguments(call.arguments)
        if callable(needed):
            needed = await maybe_await(needed(context, json.loads(call.arguments or "{}")))
        if not needed:
            return call
    answer = door.approval(ApprovalRequest(call.name, call.arguments))
    if answer is False or isinstance(answer, Deny):
        reason = answer.reason if isinstance(answer, Deny) else ""
        msg = f"the call of {call.name} was denied{f': {reason}' if reason else ''}"
        raise Denied(msg, agent=context.agent_name, message=call)
    if isinstance(answer, Approve) and answer.arguments is not None:
        given = answer.arguments
        return ToolCall(call.id, call.name, given if isinstance(given, str) else json.dumps(dict(given), ensure_ascii=False))
    return call
