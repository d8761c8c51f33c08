"""Stand-ins for agents without a definition, so that their runs can be inspected.

A store has the runs of all agents, and a console has the definition of at most one of them. Actions
that need no definition (inspecting, cancelling, forgetting) use a Runner of a stand-in. A stand-in
never runs: attempts are refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from ..data.events import AgentEvent
from ..errors import UsageError

if TYPE_CHECKING:
    from ..agent.context import AgentContext
    from ..agent.invocation import Invocation
    from ..agent.tree import Definition, Node
    from ..data.agent_input import AgentInput
    from ..data.chat import Message

__all__ = ["LookOnly"]


class LookOnly:
    """The stand-in for an agent of that name."""

    description = ""
    sub_agents: Sequence[Definition] = ()
    disallow_transfer_to_parent = False
    history = None
    hooks = None
    on_failure = None
    calls_own_hooks = False
    has_told = True
    fixed_options = ()
    allows_transfer = True
    has_handoffs = False
    skips_transfers = False
    wrapped = None
    followers: Sequence[Definition] = ()
    unique_children = True

    def __init__(self, name: str) -> None:
        self.name = name

    def on_set_sub_agents(self, sub_agents: Sequence[Any], /) -> None:
        """Do nothing: it has none."""

    def on_set_as_sub_agent(self, parent: Any, /) -> None:
        """Do nothing: it is not one."""

    def on_disallow_transfer_to_parent(self) -> None:
        """Do nothing: it has none."""

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the protocol's
        """Refuse."""
        del input, context
        raise self.refusal()

    def answer_of(self, node: Node, message: Message) -> Any:
        """Return None: without a type, the JSON value is the output."""
        del node, message

    def refusal(self) -> UsageError:
        """Return the error for actions that need the definition."""
        msg = (
            f"the console has no definition of the agent {self.name!r}: it can show its runs, "
            "but not resume them. Start it with the file of that agent."
        )
        return UsageError(msg, agent=self.name)

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        """Return the refusal: it cannot continue any invocation."""
        del node, invocation
        return str(self.refusal())

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        """Return None: it has no tools."""
        del node, tool_name
        return None
