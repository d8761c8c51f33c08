"""What has become of a run, from which it can go on.

Owns: `RunState`: the input, the items, the decisions, the turn. It must never hold what only a process has: tasks, connections, spans.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from ..exceptions import UserError
from ..handoffs.owned import Owned
from ..invocation import identity_of
from ..items import ItemHelpers, ModelResponse, ToolApprovalItem
from ..run_context import RunContextWrapper, TContext
from ..tool_names import part
from ..tracing.traces import Trace, TraceState

if TYPE_CHECKING:
    from ..guardrail import InputGuardrailResult, OutputGuardrailResult
    from ..run_config import ReasoningItemIdPolicy
    from ..tool_guardrails import ToolInputGuardrailResult, ToolOutputGuardrailResult

__all__ = ["RunState"]

TAgent = TypeVar("TAgent", default=Any)


class RunState(Generic[TContext, TAgent]):
    """A run that can go on: give it to `Runner.run` in the place of an input."""

    def __init__(
        self,
        context: RunContextWrapper[TContext],
        original_input: str | list[Any],
        starting_agent: TAgent,
        max_turns: int | None = 10,
        *,
        conversation_id: str | None = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
    ) -> None:
        self.context = context
        self.original_input: Any = original_input if isinstance(original_input, str) else list(original_input)
        self.starting_agent = starting_agent
        self.current_agent: Any = starting_agent
        self.max_turns = max_turns
        self.current_turn = 0
        self.model_responses: list[ModelResponse] = []
        self.last_response: ModelResponse | None = None
        self.generated_items: list[Any] = []
        """What the model is given behind the input."""
        self.session_items: list[Any] = []
        """What is recorded: a handoff may have changed what the model is given."""
        self.interruptions: list[ToolApprovalItem] = []
        self.goes_on = False
        """Whether the run would ask the model next: it has neither ended nor does it wait."""
        self.input_guardrail_results: list[InputGuardrailResult] = []
        self.output_guardrail_results: list[OutputGuardrailResult] = []
        self.tool_input_results: list[ToolInputGuardrailResult] = []
        self.tool_output_results: list[ToolOutputGuardrailResult] = []
        self.conversation_id = conversation_id
        self.previous_response_id = previous_response_id
        self.auto_previous_response_id = auto_previous_response_id
        self.reasoning_policy: ReasoningItemIdPolicy | None = None
        self.persisted_count = 0
        """How many items of this turn a session has already."""
        self.owned: list[Owned] = []
        """Which items of the input are recorded as well: a handoff has folded the history around them."""
        self.trace_state: TraceState | None = None
        self.waiting_input: list[Any] = []
        self.nested: dict[str, RunState[Any, Any]] = {}
        """The states of agents that calls of this run have begun and that wait for decisions, by the ids of the calls."""
        self.used_tools: dict[int, tuple[Any, list[str]]] = {}
        """The names of the tools that each agent has used."""

    # --- what a run does with it ---

    @property
    def omits_reasoning_ids(self) -> bool:
        """Whether what a model has thought is given back to it without its ids."""
        return self.reasoning_policy == "omit"

    def note_tools(self, agent: Any, names: Sequence[str]) -> None:
        """Note that an agent has used tools."""
        if not names:
            return
        _, known = self.used_tools.setdefault(id(agent), (agent, []))
        known.extend(names)

    def has_used_tools(self, agent: Any) -> bool:
        """Whether an agent has used a tool in this run."""
        entry = self.used_tools.get(id(agent))
        return entry is not None and bool(entry[1])

    def own_history(self, history: Any, owned: Sequence[Owned], items: Sequence[Any]) -> None:
        """A handoff has folded the history: note which of its items are recorded, too. Called before those of this turn are."""
        known = {id(item) for item in (*self.session_items, *items)}
        self.owned = [] if isinstance(history, str) else [one for one in owned if id(one.item) in known]

    def unsent_outputs(self) -> set[str]:
        """The ids of calls whose results the provider does not have yet: the run waits in the middle of a turn."""
        if not self.interruptions or not self.model_responses:
            return set()
        asked = {part(item, "call_id") for item in self.model_responses[-1].output}
        return {call_id for item in self.generated_items if (call_id := part(item.raw_item, "call_id")) in asked and part(item.raw_item, "output") is not None}

    def forked(self) -> RunState[TContext, TAgent]:
        """One of its own for a run that goes on from here: what it adds does not show in this one."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list):
                setattr(twin, name, list(value))
        twin.original_input = self.original_input if isinstance(self.original_input, str) else list(self.original_input)
        twin.used_tools = {key: (agent, list(names)) for key, (agent, names) in self.used_tools.items()}
        return twin

    def follow(self, other: RunState[Any, Any]) -> None:
        """Take over what a run has made of this state, so that no call is made again if the run goes on from here once more."""
        for name in ("generated_items", "session_items", "interruptions", "tool_input_results", "tool_output_results", "model_responses"):
            setattr(self, name, list(getattr(other, name)))
        for name in ("current_agent", "original_input", "goes_on", "owned", "persisted_count", "previous_response_id"):
            setattr(self, name, getattr(other, name))

    def snapshot(self) -> RunState[TContext, TAgent]:
        """A copy for a program: its decisions and its usage are its own."""
        twin = self.forked()
        twin.context = self.context.detached()
        twin.nested = {call_id: state.snapshot() for call_id, state in self.nested.items()}
        return twin

    # --- what a program does with it ---

    @property
    def pending_input(self) -> list[Any]:
        """What was added, and no model has been given yet."""
        return copy.deepcopy(self.waiting_input)

    def add_input(self, input: str | list[Any]) -> None:
        """Add input for the next call of the model."""
        if not self.interruptions and not self.goes_on:
            msg = "Cannot add input to a terminal RunState"
            raise UserError(msg)
        if self.max_turns is not None and self.current_turn >= self.max_turns:
            msg = "Cannot add input to a RunState with no remaining model turns"
            raise UserError(msg)
        if self.interruptions and self._may_end_with_tool():
            msg = "Cannot add input to an interrupted RunState whose tool result may end the run"
            raise UserError(msg)
        self.waiting_input.extend(copy.deepcopy(ItemHelpers.input_to_new_input_list(input)))

    def _may_end_with_tool(self) -> bool:
        behavior = self.current_agent.tool_use_behavior
        if isinstance(behavior, dict):
            return bool({item.tool_name for item in self.interruptions} & set(behavior.get("stop_at_tool_names", ())))
        return behavior == "stop_on_first_tool" or callable(behavior)

    def clear_pending_input(self) -> None:
        """Take back what was added."""
        self.waiting_input.clear()

    def get_interruptions(self) -> list[ToolApprovalItem]:
        """The calls that wait for a decision, as copies."""
        try:
            return [replace(item, raw_item=_copied(item.raw_item)) for item in self.interruptions]
        except Exception as error:
            msg = "Cannot safely copy pending tool approvals. Each of them has to be a call of a tool, or a mapping of what JSON can say."
            raise UserError(msg) from error

    def approve(self, approval_item: ToolApprovalItem, always_approve: bool = False) -> None:
        """Let the call be made, or all calls of its tool, when the run goes on."""
        owner, item = self._owner(approval_item)
        owner.context.approve_tool(item, always_approve=always_approve)

    def reject(self, approval_item: ToolApprovalItem, always_reject: bool = False, *, rejection_message: str | None = None) -> None:
        """Refuse the call, or all calls of its tool; the model is told so when the run goes on."""
        owner, item = self._owner(approval_item)
        owner.context.reject_tool(item, always_reject=always_reject, rejection_message=rejection_message)

    def _owner(self, item: ToolApprovalItem) -> tuple[RunState[Any, Any], ToolApprovalItem]:
        """The state whose run waits for that decision: this one, or that of an agent which a call of it has begun."""
        found = [(state, one) for state, one in self._waiting() if one is item] or [(state, one) for state, one in self._waiting() if _is_same(one, item)]
        owners = {id(state): (state, one) for state, one in found}
        if len(owners) > 1:
            msg = (
                "Cannot apply approval because the same tool invocation identity belongs to more than one run that waits: the current one and a nested "
                "agent-tool run. Use unique call IDs."
            )
            raise UserError(msg)
        if len(found) > 1 and not any(one is item for _, one in found):
            msg = "Cannot apply approval because multiple current pending approvals contain the same tool invocation identity. Use unique call IDs."
            raise UserError(msg)
        return found[0] if found else (self, item)

    def _waiting(self) -> list[tuple[RunState[Any, Any], ToolApprovalItem]]:
        nested = [one for state in self.nested.values() for one in state._waiting()]
        inner = {id(item) for _, item in nested}
        return [*nested, *((self, item) for item in self.interruptions if id(item) not in inner)]

    # --- as JSON ---

    def to_json(
        self, *, context_serializer: Callable[[Any], Any] | None = None, strict_context: bool = False, include_tracing_api_key: bool = False
    ) -> dict[str, Any]:
        """The state as JSON, in the SDK's form."""
        from .writing import state_data  # noqa: PLC0415 -- built on states

        return state_data(self, context_serializer, strict=strict_context, with_key=include_tracing_api_key)

    def to_string(self, *, context_serializer: Callable[[Any], Any] | None = None, strict_context: bool = False, include_tracing_api_key: bool = False) -> str:
        """The same as text."""
        data = self.to_json(context_serializer=context_serializer, strict_context=strict_context, include_tracing_api_key=include_tracing_api_key)
        return json.dumps(data, indent=2)

    @staticmethod
    async def from_json(
        initial_agent: Any,
        state_json: dict[str, Any],
        *,
        context_override: Any = None,
        context_deserializer: Callable[[Mapping[str, Any]], Any] | None = None,
        strict_context: bool = False,
    ) -> RunState[Any, Any]:
        """The state of that JSON. Its agents are found from the first one."""
        from .contexts import restored_context  # noqa: PLC0415 -- for those who read one
        from .reading import state_of  # noqa: PLC0415 -- built on states
        from .versions import check_version  # noqa: PLC0415 -- for those who read one

        if not isinstance(state_json, dict):
            msg = "Run state JSON must be an object"
            raise UserError(msg)
        check_version(state_json)
        state = state_of(
            initial_agent,
            state_json,
            lambda data: restored_context(data, context_override, context_deserializer, strict=strict_context),
        )
        if context_override is None and state.context.tool_input is None:
            state.context.tool_input = (state_json.get("context") or {}).get("tool_input")
        return state

    @staticmethod
    async def from_string(
        initial_agent: Any,
        state_string: str,
        *,
        context_override: Any = None,
        context_deserializer: Callable[[Mapping[str, Any]], Any] | None = None,
        strict_context: bool = False,
    ) -> RunState[Any, Any]:
        """The state of that text."""
        return await RunState.from_json(
            initial_agent,
            _parsed(state_string),
            context_override=context_override,
            context_deserializer=context_deserializer,
            strict_context=strict_context,
        )

    def set_trace(self, trace: Trace | None) -> None:
        """Keep what the trace of the run is."""
        self.trace_state = TraceState.from_trace(trace)

    def set_reasoning_item_id_policy(self, policy: ReasoningItemIdPolicy | None) -> None:
        """Whether what a model has thought is given back to it with its ids."""
        self.reasoning_policy = policy

    def get_tool_use_tracker_snapshot(self) -> dict[str, list[str]]:
        """Which tools each agent has used."""
        return {agent.name: list(names) for agent, names in self.used_tools.values()}


def _copied(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        json.dumps(raw)
    return copy.deepcopy(raw)


def _is_same(one: ToolApprovalItem, other: ToolApprovalItem) -> bool:
    if one.agent is not other.agent:
        return False
    identity = identity_of(one.raw_item, one.tool_lookup_key, one.tool_name)
    return identity is not None and identity == identity_of(other.raw_item, other.tool_lookup_key, other.tool_name)


def _parsed(text: str) -> Any:
    """The JSON of a text. What is said of one that is none does not repeat it: it may hold secrets."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, TypeError):
        pass
    msg = "Failed to parse run state JSON"
    raise UserError(msg)
