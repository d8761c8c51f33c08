"""One agent that decides who is next, and others that always transfer back to it.

`Supervisor` uses transfers only: the supervisor transfers by its tool, the others
deterministically.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import ClassVar, Literal

from ...runtime.agent.context import AgentContext
from ...runtime.agent.invocation import Invocation
from ...runtime.agent.tree import Node
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.events import AgentEvent
from ...runtime.errors import UsageError
from ..agent import Agent
from ..handoffs.transfer import DeterministicTransfer

__all__ = ["Supervisor"]


class Supervisor(Agent):
    """Runs as its supervisor, with the same name and description, and with sub-agents under it.

    If a sub-agent fails, the run ends (`on_error="abort"`), or the supervisor receives the error
    and continues (`"report"`).
    """

    def __init__(
        self,
        *,
        supervisor: Agent,
        sub_agents: Sequence[Agent],
        on_error: Literal["abort", "report"] = "abort",
    ) -> None:
        if not isinstance(supervisor, Agent):
            msg = f"Supervisor: supervisor must be an Agent, got {supervisor!r}."
            raise UsageError(msg)
        if on_error not in ("abort", "report"):
            msg = (
                f"Supervisor of {supervisor.name!r}: on_error must be 'abort' or 'report', "
                f"got {on_error!r}."
            )
            raise UsageError(msg, agent=supervisor.name)
        if not supervisor.allows_transfer or supervisor.wrapped is not None:
            msg = (
                "Supervisor: supervisor must be an agent that can transfer, got "
                f"{supervisor.name!r}, a {type(supervisor).__name__}. Pass a "
                "ChatModelAgent, for example."
            )
            raise UsageError(msg, agent=supervisor.name)
        if supervisor.sub_agents:
            msg = (
                f"Supervisor: {supervisor.name!r} already has sub-agents. Pass all "
                "sub-agents here: sub_agents=[...]."
            )
            raise UsageError(msg, agent=supervisor.name)
        back = _Reporting if on_error == "report" else DeterministicTransfer
        team = tuple(back(agent, to=[supervisor.name]) for agent in sub_agents)
        for member in team:
            # It may not by itself, but it always transfers back.
            member.disallow_transfer_to_parent = False
        super().__init__(
            name=supervisor.name,
            description=supervisor.description,
            sub_agents=team,
            disallow_transfer_to_parent=supervisor.disallow_transfer_to_parent,
            history=supervisor.history,
            hooks=supervisor.hooks,
            on_failure=supervisor.on_failure,
        )
        self.fixed_options = supervisor.fixed_options
        self.supervisor = supervisor
        self.on_error = on_error

    # It runs as its supervisor, so it shares the supervisor's properties.

    @property
    def followers(self) -> Sequence[Agent]:  # type: ignore[override]  # a read-only property
        return self.supervisor.followers

    @property
    def has_handoffs(self) -> bool:  # type: ignore[override]  # a read-only property
        return self.supervisor.has_handoffs

    @property
    def input_guardrails(self) -> Sequence[object]:
        return getattr(self.supervisor, "input_guardrails", ())

    @property
    def output_guardrails(self) -> Sequence[object]:
        return getattr(self.supervisor, "output_guardrails", ())

    def on_set_sub_agents(self, sub_agents: Sequence[Agent]) -> None:
        self.supervisor.on_set_sub_agents(sub_agents)

    def on_set_as_sub_agent(self, parent: Agent) -> None:
        self.supervisor.on_set_as_sub_agent(parent)

    def on_disallow_transfer_to_parent(self) -> None:
        self.supervisor.on_disallow_transfer_to_parent()

    @property
    def asks_approval(self) -> Sequence[str]:
        return getattr(self.supervisor, "asks_approval", ())

    def check(self, node: object) -> None:
        """Run the supervisor's own checks in that place."""
        check = getattr(self.supervisor, "check", None)
        if check is not None:
            check(node)

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        return self.supervisor.problem_with(node, invocation)

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        return self.supervisor.tool_tree(node, tool_name)

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        return self.supervisor.run(input, context)


class _Reporting(DeterministicTransfer):
    """Transfers back even after a failure, with a message that describes it."""

    reports_failure: ClassVar[bool] = True
