"""The context of one call of a tool.

Owns: `ToolContext`. It must never outlive its call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .run_context import RunContextWrapper, TContext
from .run_context.decisions import Decisions
from .tool_names import call_namespace, trace_name
from .usage import Usage

if TYPE_CHECKING:
    from openai.types.responses import ResponseFunctionToolCall

    from .agent import AgentBase
    from .items import ToolApprovalItem, TResponseInputItem
    from .run_config import RunConfig

__all__ = ["ToolContext"]

_MISSING: Any = object()


def _needed(name: str) -> str:
    msg = f"{name} must be passed to ToolContext"
    raise ValueError(msg)


@dataclass(eq=False)
class ToolContext(RunContextWrapper[TContext]):
    """The context of a run, for one call of a tool."""

    tool_name: str = field(default_factory=lambda: _needed("tool_name"))
    tool_call_id: str = field(default_factory=lambda: _needed("tool_call_id"))
    tool_arguments: str = field(default_factory=lambda: _needed("tool_arguments"))
    tool_call: ResponseFunctionToolCall | None = None
    tool_namespace: str | None = None
    agent: AgentBase[Any] | None = None
    run_config: RunConfig | None = None

    def __init__(
        self,
        context: TContext,
        usage: Usage = _MISSING,
        tool_name: str = _MISSING,
        tool_call_id: str = _MISSING,
        tool_arguments: str = _MISSING,
        tool_call: ResponseFunctionToolCall | None = None,
        *,
        tool_namespace: str | None = None,
        agent: AgentBase[Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        turn_input: list[TResponseInputItem] | None = None,
        tool_input: Any | None = None,
        decisions: Decisions | None = None,
        understudy: Any = None,
    ) -> None:
        self.context = context
        self.usage = Usage() if usage is _MISSING else usage
        self.turn_input = list(turn_input or ())
        self.tool_input = tool_input
        self.decisions = Decisions() if decisions is None else decisions
        self.understudy = understudy
        self.tool_name = _needed("tool_name") if tool_name is _MISSING else tool_name
        self.tool_arguments = _needed("tool_arguments") if tool_arguments is _MISSING else tool_arguments
        self.tool_call_id = _needed("tool_call_id") if tool_call_id is _MISSING else tool_call_id
        self.tool_call = tool_call
        self.tool_namespace = tool_namespace if isinstance(tool_namespace, str) else call_namespace(tool_call)
        self.agent = agent
        if isinstance(run_config, dict):
            from .run_config import as_run_config  # noqa: PLC0415 -- built on tools

            run_config = as_run_config(run_config)
        self.run_config = run_config
        self.custom_data: dict[str, Any] | None = None
        """What is kept with the output of this call, and no model sees."""
        self.failure_reported = False
        """Whether the result of this call is what the default error function has made of its failure."""
        self.nested_states: dict[str, Any] = {}
        """The states of agents that calls of the run have begun and that wait for approvals, by the ids of the calls."""
        self.nested: Any = None
        """The result of the agent that this call has run, if that waits for an approval."""

    @property
    def qualified_tool_name(self) -> str:
        """The tool's name with its namespace."""
        return trace_name(self.tool_name, self.tool_namespace) or self.tool_name

    @classmethod
    def from_agent_context(
        cls,
        context: RunContextWrapper[TContext],
        tool_call_id: str,
        tool_call: ResponseFunctionToolCall | None = None,
        agent: AgentBase[Any] | None = None,
        *,
        tool_name: str | None = None,
        tool_arguments: str | None = None,
        tool_namespace: str | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
    ) -> ToolContext[TContext]:
        """The context of a call within that run."""
        outer = context if isinstance(context, ToolContext) else None
        if tool_name is None:
            tool_name = tool_call.name if tool_call is not None else _needed("tool_name")
        if tool_arguments is None:
            tool_arguments = tool_call.arguments if tool_call is not None else _needed("tool_arguments")
        return cls(
            context.context,
            context.usage,
            tool_name,
            tool_call_id,
            tool_arguments,
            tool_call,
            tool_namespace=tool_namespace,
            agent=agent if agent is not None or outer is None else outer.agent,
            run_config=run_config if run_config is not None or outer is None else outer.run_config,
            turn_input=context.turn_input,
            tool_input=context.tool_input,
            decisions=context.decisions,
            understudy=context.understudy,
        )

    def approve_tool(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        owner = self._owner(approval_item)
        RunContextWrapper.approve_tool(owner, approval_item, always_approve)

    def reject_tool(self, approval_item: ToolApprovalItem, always_reject: bool = False, rejection_message: str | None = None) -> None:
        owner = self._owner(approval_item)
        RunContextWrapper.reject_tool(owner, approval_item, always_reject, rejection_message)

    def _owner(self, item: ToolApprovalItem) -> RunContextWrapper[Any]:
        """The context of the run that waits for that approval: this one, or that of the agent which this call has run."""
        pending = getattr(self.nested, "interruptions", None) or ()
        return self.nested.context_wrapper if any(one is item for one in pending) else self
