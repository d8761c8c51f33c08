"""Calls that must be approved first: the request, its answers, and their effect on the call.

A call that cannot be made is not submitted for approval.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ...runtime.codec.packing import register_type
from ...runtime.data.chat import ToolCall
from ...runtime.data.interrupt import Due
from ...runtime.errors import ToolError
from ...runtime.log import loggers
from ...runtime.maybe_await import maybe_await
from .tool import Tool
from .tool_context import ToolContext, call_state_of

__all__ = [
    "ApprovalRequest",
    "Approve",
    "Denied",
    "Deny",
    "OriginalApprovalRequest",
    "approved",
    "needs_approval",
]


class Denied(ToolError):
    """The call was denied.

    A denial is an answer, not a failure of the tool, so it is returned to the model whatever
    `on_tool_error` is.
    """


@register_type(name="Approve")
@dataclass(frozen=True, slots=True)
class Approve:
    """Approves the call, optionally with other arguments.

    They are JSON text, or a mapping to encode as such.
    """

    arguments: str | Mapping[str, object] | None = None


@register_type(name="Deny")
@dataclass(frozen=True, slots=True)
class Deny:
    """Denies the call; the reason is returned to the model."""

    reason: str = ""


@register_type(name="ApprovalRequest")
@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """The `info` of an interrupt for a call that needs approval."""

    tool_name: str
    arguments: str

    def approve(self, arguments: str | Mapping[str, object] | None = None) -> Approve:
        """Return the answer that approves the call, for a caller that does not import `Approve`."""
        return Approve(arguments)

    def deny(self, reason: str = "") -> Deny:
        """Return the answer that denies the call."""
        return Deny(reason)

    def check_answer(self, data: object) -> str | None:
        """Return the problem with an answer, or None if it is valid."""
        if isinstance(data, bool | Approve | Deny):
            return None
        return (
            f"the call of {self.tool_name!r} waits for an approval. The answer must be True, "
            f"False, Approve(arguments=...) or Deny(reason), got {data!r}."
        )


@register_type(name="OriginalApprovalRequest")
@dataclass(frozen=True, slots=True)
class OriginalApprovalRequest(ApprovalRequest):
    """The request for a tool that its name alone does not identify, such as an MCP tool.

    An approval applies to this tool only.
    """

    origin: str = ""
    """The server's own name of the tool, and a digest of its schema."""


async def needs_approval(tool: Tool, context: ToolContext, call: ToolCall) -> bool:
    """Return whether the call needs approval. Raise `ToolArgumentsError` if it cannot be made.

    A `needs_approval` function receives the values with which the tool would be called. If it
    raises or returns None, the call needs approval.
    """
    values, needed = tool.validated(call.arguments), tool.needs_approval
    if not callable(needed):
        return bool(needed)
    try:
        verdict = await maybe_await(needed(context, values))
        if verdict is None:
            raise TypeError("it must return True or False, got None")  # noqa: TRY301 -- handled like its other failures
        return bool(verdict)
    except Exception as error:  # noqa: BLE001 -- a failed check is not a permission
        text = "needs_approval of tool %s has failed, so call %s of run %s needs approval: %s"
        loggers.tools.warning(text, call.name, call.id, context.run.run_id, error, exc_info=error)
        return True


def _due(tool: Tool, request: ApprovalRequest) -> Due | None:
    """Return until when the approval is awaited, and the answer after that."""
    if tool.approval_timeout is None:
        return None
    default = (
        request.approve()
        if tool.on_timeout == "approve"
        else request.deny(f"nobody approved it within {tool.approval_timeout:g} s")
    )
    return Due(datetime.now(UTC) + timedelta(seconds=tool.approval_timeout), default)


async def approved(context: ToolContext, tool: Tool, call: ToolCall) -> ToolCall:
    """Return the call as it may be made.

    Interrupts the run if the call has no answer yet. Raises `ToolError`, for the model to read, if
    it was denied.
    """
    if not tool.needs_approval:
        return call
    call_state = call_state_of(context)
    if not call_state.was_approved and not await needs_approval(tool, context, call):
        return call
    request = (
        OriginalApprovalRequest(call.name, call.arguments, tool.origin)
        if tool.origin
        else ApprovalRequest(call.name, call.arguments)
    )
    answer = call_state.approval(request, _due(tool, request))
    if answer is False or isinstance(answer, Deny):
        reason = answer.reason if isinstance(answer, Deny) else ""
        msg = f"the call of {call.name} was denied{f': {reason}' if reason else ''}"
        raise Denied(msg, agent=context.agent_name, message=call)
    if isinstance(answer, Approve) and answer.arguments is not None:
        given = answer.arguments
        return ToolCall(
            call.id,
            call.name,
            given if isinstance(given, str) else json.dumps(dict(given), ensure_ascii=False),
        )
    return call
