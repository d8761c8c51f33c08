"""A `ToolContext` for a tool called by a test, without a run. It records the tool's requests.

It starts no actor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.options import ToolOptions
from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.chat import ToolCall, new_id
from ...runtime.data.events import Action, AgentEvent
from ...runtime.data.interrupt import Answer, Due, InterruptContext, Pending
from .tool_call_state import ToolCallState, ToolInterrupted
from .tool_context import ToolContext

__all__ = ["ToolContextDouble", "tool_context"]

T = TypeVar("T")


class _Invocation:
    """The attributes of an invocation that a tool can see."""

    def __init__(self, agent_name: str) -> None:
        self.id = new_id()
        self.run_path = (agent_name,)


class _Agent:
    """The attributes of an agent that a tool can reach."""

    def __init__(self, run: RunContext, agent_name: str, options: tuple[ToolOptions, ...]) -> None:
        self.run = run
        self.agent_name = agent_name
        self.options = options
        self.invocation = _Invocation(agent_name)
        self._done: dict[str, object] = {}

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        if name not in self._done:
            self._done[name] = await make()
        return cast("T", self._done[name])

    async def run_tool(
        self, work: Callable[[], T], _name: str, began: Callable[[], object] | None
    ) -> T:
        if began is not None:
            began()
        return await asyncio.to_thread(work)


class _Door(ToolCallState):
    """Records the tool's events and questions, and answers from a list."""

    __slots__ = ("answers", "asked", "emitted")

    def __init__(
        self, agent: _Agent, call: ToolCall, answer: Answer | None, answers: Sequence[object]
    ) -> None:
        super().__init__(cast("AgentRuntime", agent), call, answer)
        self.answers = list(answers)
        self.asked: list[object] = []
        self.emitted: list[AgentEvent] = []

    @property
    def idempotency_key(self) -> str:
        return f"{self.runtime.run.run_id}:{self.runtime.invocation.id}:{self.call.id}"

    def interrupt(self, info: Any, state: Any, due: Due | None = None) -> Any:
        del due  # nobody waits for an answer
        self.asked.append(info)
        if self.answers:
            return self.answers.pop(0)
        raise ToolInterrupted((InterruptContext(new_id(), (self.address_step,), info),))

    def emit(self, event: AgentEvent) -> None:
        self.emitted.append(event)


class ToolContextDouble(ToolContext):
    """A `ToolContext` without a run. It exposes the events, questions and actions of the tool."""

    __slots__ = ()

    _call_state: _Door

    @property
    def emitted(self) -> list[AgentEvent]:
        """The events passed to `emit`."""
        return self._call_state.emitted

    @property
    def asked(self) -> list[object]:
        """The `info` of each `interrupt`."""
        return self._call_state.asked

    @property
    def action(self) -> Action | None:
        """The last action passed to `send_action`."""
        return self._call_state.action


def tool_context(
    *,
    tool_name: str = "tool",
    call_id: str = "call_1",
    agent_name: str = "agent",
    arguments: str = "{}",
    session_values: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
    answers: Sequence[object] = (),
    context: object = None,
) -> ToolContextDouble:
    """Make a `ToolContext` for the unit test of a tool.

        assert book("Chez Paul", context=tool_context()) == ...

    `answers` are the return values of successive `interrupt()` calls. A call without an answer
    raises `ToolInterrupted`, as in a run.
    """
    run = RunContext(new_id(), None, SessionValues(session_values), (), ())
    run.context = context
    given = (ToolOptions(**cast("dict[str, Any]", dict(options))),) if options else ()
    call = ToolCall(call_id, tool_name, arguments)
    pending = Pending(InterruptContext(new_id(), ()), call_id)
    answer = Answer(pending, is_target=True, data=answers[0]) if answers else None
    return ToolContextDouble(_Door(_Agent(run, agent_name, given), call, answer, answers))
