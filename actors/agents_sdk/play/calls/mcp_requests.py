"""Requests of hosted MCP servers' tools for an approval.

Owns: who answers them: the tool's callback, the program, or a person who is asked. It must never answer one itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .....runtime.maybe_await import maybe_await
from ...items import MCPApprovalResponseItem, ToolApprovalItem
from ...tool import MCPToolApprovalRequest
from ..live import LiveRun
from ..steps import McpRequest

__all__ = ["answered_requests"]


async def answered_requests(run: LiveRun, agent: Any, requests: Sequence[McpRequest], before: Sequence[Any]) -> tuple[list[ToolApprovalItem], list[Any]]:
    """What has to be decided first, and the answers to the others."""
    waiting: list[ToolApprovalItem] = []
    answers: list[Any] = []
    for request, tool in requests:
        if tool.on_approval_request is not None:
            said = await maybe_await(tool.on_approval_request(MCPToolApprovalRequest(run.context, request)))
            approve, reason = bool(said["approve"]), said.get("reason")
        else:
            item = next((one for one in before if isinstance(one, ToolApprovalItem) and one.call_id == request.id), None)
            item = item or ToolApprovalItem(agent, request, request.name)
            decision = run.context.decisions.about(item)
            if decision is None:
                waiting.append(item)
                continue
            approve = decision
            reason = None if approve else run.context.get_rejection_message(request.name, request.id, existing_pending=item)
        raw: dict[str, Any] = {"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}
        if not approve and reason:
            raw["reason"] = reason
        answers.append(MCPApprovalResponseItem(agent, raw))
        run.context.decisions.completed(raw)
    return waiting, answers
