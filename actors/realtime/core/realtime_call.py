"""The part of a session that a tool can reach through its `ToolContext`.

A tool cannot interrupt for an answer during its call. A call that needs one uses `needs_approval`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import get_ident
from types import SimpleNamespace
from typing import Any, NoReturn, TypeVar, cast

from ....runtime.actor.host import Host
from ....runtime.agent.agent_runtime import AgentRuntime
from ....runtime.agent.options import Options
from ....runtime.agent.run_context import RunContext
from ....runtime.agent.tree import Node
from ....runtime.clock import Clock
from ....runtime.data.agent_input import AgentInput
from ....runtime.data.chat import ToolCall
from ....runtime.data.events import AgentEvent
from ....runtime.data.interrupt import Due
from ....runtime.data.outcome import Outcome
from ....runtime.errors import ToolError
from ....runtime.runner import Runner
from ...tools.tool_call_state import ToolCallState
from ...tools.tool_context import ToolContext
from ..agent import RealtimeAgent

__all__ = ["call_context"]

T = TypeVar("T")


class _Door:
    """One session, as a tool of one of its agents sees it."""

    streaming = False
    is_over = False

    def __init__(self, agent: RealtimeAgent, run: RunContext, system: Host) -> None:
        self._system = system
        self.agent = agent
        self.run = run
        self.agent_name = agent.name
        self.options: tuple[Options, ...] = agent.fixed_options
        self.invocation = SimpleNamespace(id="realtime", run_path=(agent.name,))
        self.node = SimpleNamespace(agent=agent, name=agent.name)
        self._done: dict[str, object] = {}

    @property
    def clock(self) -> Clock:
        return self._system.clock

    def is_own_thread(self) -> bool:
        return get_ident() == self._system.dispatcher.thread

    def is_alive(self) -> bool:
        return not self._system.closing

    async def run_tool(
        self, function: Callable[[], T], tool: str, began: Callable[[], object] | None
    ) -> T:
        return await self._system.run_named(
            function,
            f"tool {tool} of agent {self.agent_name!r} in session {self.run.run_id}",
            began,
        )

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        if name not in self._done:
            self._done[name] = await make()
        return cast("T", self._done[name])

    async def make_sure(self) -> None:
        if self.run.lease is not None:
            await self.run.lease.make_sure()

    async def emit(self, event: AgentEvent) -> None:
        """Ignore parts of a tool's result. The consumer of a session receives the whole result."""

    async def call_agent(
        self, node: Node, given: AgentInput, cast_key: object, *, shown: bool, tool: object
    ) -> Outcome:
        """Run a text agent as a tool of this agent, in its own run with the session's values."""
        del cast_key, shown, tool
        runner = Runner(node.agent, system=cast("Any", self._system))
        result = await runner.run(
            given.messages, session_values=self.run.session.to_dict(), context=self.run.context
        )
        self.run.usage += result.usage
        if result.status == "interrupted":
            msg = (
                f"agent {node.name} interrupted to wait for an answer, which a realtime session "
                "cannot pass on. Use an agent that does not interrupt"
            )
            raise ToolError(msg, agent=self.agent_name)
        for key, value in result.session_values.items():
            self.run.session[key] = value
        return cast(
            "Outcome",
            SimpleNamespace(
                kind="completed" if result.error is None else "failed",
                error=result.error,
                message=result.final_message,
            ),
        )


class _RealtimeCallState(ToolCallState):
    __slots__ = ()

    @property
    def idempotency_key(self) -> str:
        """A key that is the same in each process that continues the session.

        A provider's ids are recorded with the session, and a restored session does not request a
        call again.
        """
        return f"{self.runtime.run.run_id}:{self.runtime.invocation.id}:{self.call.id}"

    def interrupt(self, info: Any, state: Any, due: Due | None = None) -> NoReturn:
        msg = (
            f"tool {self.call.name!r} interrupted during its call, which a realtime "
            "session cannot wait for. Use @tool(needs_approval=...), which asks before "
            "the call"
        )
        raise ToolError(msg, message=self.call)

    def emit(self, event: AgentEvent) -> None:
        """Ignore the event: the consumer receives the whole result."""


def call_context(
    agent: RealtimeAgent, run: RunContext, system: Host, call: ToolCall
) -> ToolContext:
    """Return the context of one call."""
    return ToolContext(
        _RealtimeCallState(cast("AgentRuntime", _Door(agent, run, system)), call, None)
    )
