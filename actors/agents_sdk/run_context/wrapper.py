"""The context of a run, as callbacks see it.

Owns: `RunContextWrapper`: the program's own object, the usage, and the decisions about calls; and understudy's session values, for programs that use them.
It must never hold what only one call of a tool has: that is `ToolContext`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from ..exceptions import ModelBehaviorError
from ..invocation import hosted_request
from ..tool_names import LookupKey
from ..usage import Usage
from .decisions import Decisions

if TYPE_CHECKING:
    from ....runtime.agent.run_context import RunContext
    from ..items import ToolApprovalItem, TResponseInputItem

__all__ = ["AgentHookContext", "RunContextWrapper", "TContext"]

TContext = TypeVar("TContext", default=Any)


@dataclass(eq=False)
class RunContextWrapper(Generic[TContext]):
    """The object that was given to `Runner.run(context=...)`, and what the run has cost so far. Models see nothing of it."""

    context: TContext
    usage: Usage = field(default_factory=Usage)
    turn_input: list[TResponseInputItem] = field(default_factory=list)
    tool_input: Any | None = None
    """What an agent that is called as a tool was called with, if it takes more than a text."""
    decisions: Decisions = field(default_factory=Decisions, repr=False)
    understudy: RunContext | None = field(default=None, repr=False)
    """understudy's own context of the run, while it lasts."""

    # --- decisions ---

    def is_tool_approved(self, tool_name: str, call_id: str) -> bool | None:
        """Whether the call may be made: None if nothing was decided."""
        return self.decisions.by_name(tool_name, call_id)

    def get_approval_status(
        self,
        tool_name: str,
        call_id: str,
        *,
        tool_namespace: str | None = None,
        existing_pending: ToolApprovalItem | None = None,
        tool_lookup_key: LookupKey | None = None,
        current_invocation: ToolApprovalItem | None = None,
    ) -> bool | None:
        """The same, for a call that may be given itself."""
        if not isinstance(call_id, str) or not call_id:
            msg = "Approval-gated tool calls require a non-empty call ID."
            raise ModelBehaviorError(msg)
        item = current_invocation or existing_pending
        if item is not None:
            return self.decisions.about(item)
        return self.decisions.by_name(tool_name, call_id, tool_namespace, tool_lookup_key)

    def get_rejection_message(
        self,
        tool_name: str,
        call_id: str,
        *,
        tool_namespace: str | None = None,
        existing_pending: ToolApprovalItem | None = None,
        tool_lookup_key: LookupKey | None = None,
    ) -> str | None:
        """What the model is told of a call that was rejected, if the rejection says so."""
        if existing_pending is not None:
            hosted = hosted_request(existing_pending)
            if hosted is not None:
                return self.decisions.hosted_message(hosted, call_id)
            tool_namespace = tool_namespace or existing_pending.tool_namespace
            tool_lookup_key = tool_lookup_key or existing_pending.tool_lookup_key
        return self.decisions.message(tool_name, call_id, tool_namespace, tool_lookup_key)

    def approve_tool(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        """Let the call be made, or all calls of its tool."""
        self.decisions.decide(approval_item, approve=True, always=always_approve)

    def reject_tool(self, approval_item: ToolApprovalItem, always_reject: bool = False, rejection_message: str | None = None) -> None:
        """Refuse the call, or all calls of its tool."""
        self.decisions.decide(approval_item, approve=False, always=always_reject, message=rejection_message)

    # --- copies ---

    def derived(self, tool_input: Any = None) -> RunContextWrapper[TContext]:
        """A plain one for a run within this one: with the same object, usage and decisions."""
        return RunContextWrapper(self.context, self.usage, self.turn_input, tool_input, self.decisions, self.understudy)

    def detached(self) -> RunContextWrapper[TContext]:
        """A copy whose usage and decisions are its own."""
        twin = copy.copy(self)
        twin.usage = self.usage.copy()
        twin.decisions = self.decisions.copy()
        return twin

    # --- understudy's session values ---

    @property
    def session(self) -> Any:
        """The session values that all agents of the run share."""
        return {} if self.understudy is None else self.understudy.session

    def get(self, key: str, default: object = None) -> Any:
        """The session value of that name."""
        return default if self.understudy is None else self.understudy.get(key, default)

    def set(self, key: str, value: object) -> None:
        """Put a session value."""
        if self.understudy is not None:
            self.understudy.set(key, value)

    def delete(self, key: str) -> None:
        """Remove a session value, if it is there."""
        if self.understudy is not None:
            self.understudy.delete(key)


@dataclass(eq=False)
class AgentHookContext(RunContextWrapper[TContext]):
    """The context of the hooks that are called when an agent begins and ends; `turn_input` is what it is given."""
