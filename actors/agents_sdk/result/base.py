"""What is left of a run.

Owns: `RunResultBase`, `RunResult`, and how a result becomes the input or the state of another run. It must never change the state that it was made of.
"""

from __future__ import annotations

import abc
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from ..exceptions import AgentsException
from ..handoffs.owned import still_owned
from ..items import ItemHelpers
from ..items.history import run_items_to_input
from ..tool_context import ToolContext

if TYPE_CHECKING:
    from ....runtime.data.run_result import RunResult as CoreResult
    from ..agent import Agent
    from ..guardrail import InputGuardrailResult, OutputGuardrailResult
    from ..items import ModelResponse, RunItem, ToolApprovalItem
    from ..run_context import RunContextWrapper
    from ..run_state import RunState
    from ..tool_guardrails import ToolInputGuardrailResult, ToolOutputGuardrailResult

__all__ = ["AgentToolInvocation", "RunResult", "RunResultBase", "ToInputListMode"]

T = TypeVar("T")

ToInputListMode: TypeAlias = Literal["preserve_all", "normalized"]


@dataclass(frozen=True)
class AgentToolInvocation:
    """The call of a tool that this run was."""

    tool_name: str
    tool_call_id: str
    tool_arguments: str


@dataclass
class RunResultBase(abc.ABC):
    """What is known of a run, whether it goes on or not."""

    input: str | list[Any]
    """What the run was asked; a filter of a handoff may have changed it."""
    new_items: list[RunItem[Any]]
    """What it has produced."""
    raw_responses: list[ModelResponse]
    """What models have answered."""
    final_output: Any
    input_guardrail_results: list[InputGuardrailResult]
    output_guardrail_results: list[OutputGuardrailResult]
    tool_input_guardrail_results: list[ToolInputGuardrailResult]
    tool_output_guardrail_results: list[ToolOutputGuardrailResult]
    context_wrapper: RunContextWrapper[Any]

    state: RunState[Any, Any] | None = field(default=None, init=False, repr=False)
    """From what the run would go on."""
    outcome: CoreResult | None = field(default=None, init=False, repr=False)
    """The result of the same run, as understudy has it: with its events, its session values, its id."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 -- for results within models

        return core_schema.is_instance_schema(cls)

    @property
    @abc.abstractmethod
    def last_agent(self) -> Agent[Any]:
        """The agent that was at work last."""

    @abc.abstractmethod
    def _release_last_agent(self) -> None: ...

    def __getattr__(self, name: str) -> Any:
        # What understudy knows of a run beside what the SDK does: `events`, `session_values`, `status`, `usage`.
        outcome = self.__dict__.get("outcome")
        if outcome is not None and not name.startswith("_"):
            return getattr(outcome, name)
        msg = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(msg)

    def release_agents(self, *, release_new_items: bool = True) -> None:
        """Keep the agents only as long as something else does."""
        if release_new_items:
            for item in self.new_items:
                item.release_agent()
        self._release_last_agent()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending
            self.release_agents(release_new_items=False)

    def final_output_as(self, cls: type[T], raise_if_incorrect_type: bool = False) -> T:
        """The final output, for type checkers; raises `TypeError` if it is not of that type and that is asked for."""
        if raise_if_incorrect_type and not isinstance(self.final_output, cls):
            msg = f"Final output is not of type {cls.__name__}"
            raise TypeError(msg)
        return cast("T", self.final_output)

    def to_input_list(self, *, mode: ToInputListMode = "preserve_all") -> list[Any]:
        """The whole conversation, as the input of the next run: with all that is recorded, or, `"normalized"`, as the next model would have been given it."""
        state = self.state
        without_ids = state is not None and state.omits_reasoning_ids
        asked = ItemHelpers.input_to_new_input_list(self.input)
        if mode == "normalized":
            items = self.new_items
            if state is not None and [id(one) for one in state.generated_items] != [id(one) for one in items]:
                items = state.generated_items
            return [*asked, *run_items_to_input(items, without_ids=without_ids)]
        if mode != "preserve_all":
            msg = f"Unsupported to_input_list mode: {mode}"
            raise ValueError(msg)
        owned = {id(one.item) for one in still_owned(self.input, state.owned)} if state is not None else set()
        return [*asked, *run_items_to_input([item for item in self.new_items if id(item) not in owned], without_ids=without_ids)]

    @property
    def agent_tool_invocation(self) -> AgentToolInvocation | None:
        """The call of a tool that this run was; None for a run of its own."""
        context = self.context_wrapper
        if not isinstance(context, ToolContext):
            return None
        return AgentToolInvocation(context.tool_name, context.tool_call_id, context.tool_arguments)

    @property
    def last_response_id(self) -> str | None:
        """By which the provider knows the last response."""
        return self.raw_responses[-1].response_id if self.raw_responses else None

    def to_state(self) -> RunState[Any, Any]:
        """The state from which the run goes on: decide about its interruptions, and give it to `Runner.run`."""
        state = self.state
        if state is None:
            from ..run_state import RunState  # noqa: PLC0415 -- for results that programs have made themselves

            state = RunState(self.context_wrapper, self.input, self.last_agent, getattr(self, "max_turns", 10))
            state.generated_items = list(self.new_items)
            state.model_responses = list(self.raw_responses)
        found = state.snapshot()
        found.current_agent = self.last_agent
        found.session_items = list(self.new_items)
        found.interruptions = list(getattr(self, "interruptions", ()))
        return found

    def _described(self, *lines: str) -> str:
        return "\n".join([f"{type(self).__name__}:", *(f"- {line}" for line in lines), "(See `" + type(self).__name__ + "` for more details)"])

    def _output_lines(self) -> str:
        output = self.final_output
        dump = getattr(output, "model_dump_json", None)
        text = dump(indent=2) if callable(dump) else str(output)
        return "\n".join([f"Final output ({type(output).__name__}):", *("    " + line for line in text.splitlines())])

    def _counts(self) -> tuple[str, ...]:
        return (
            f"{len(self.new_items)} new item(s)",
            f"{len(self.raw_responses)} raw response(s)",
            f"{len(self.input_guardrail_results)} input guardrail result(s)",
            f"{len(self.output_guardrail_results)} output guardrail result(s)",
        )


@dataclass
class RunResult(RunResultBase):
    """The result of a run."""

    _last_agent: Agent[Any]
    max_turns: int | None = 10
    interruptions: list[ToolApprovalItem] = field(default_factory=list)
    """The calls that wait for a decision."""

    def __post_init__(self) -> None:
        self._last_agent_ref = weakref.ref(self._last_agent)

    @property
    def last_agent(self) -> Agent[Any]:
        agent = self.__dict__.get("_last_agent") or self._last_agent_ref()
        if agent is None:
            msg = "Last agent reference is no longer available."
            raise AgentsException(msg)
        return cast("Agent[Any]", agent)

    def _release_last_agent(self) -> None:
        self.__dict__["_last_agent"] = None

    def __str__(self) -> str:
        return self._described(f'Last agent: Agent(name="{self.last_agent.name}", ...)', self._output_lines(), *self._counts())
