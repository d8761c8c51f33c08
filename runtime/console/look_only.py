"""Agents of which there is only the name, so that their runs can be looked at.

A store has the runs of all agents, and a console is given the definition of one of them, or of none. What needs no definition (looking on, cancelling,
forgetting) goes by a Runner of such a stand-in.

Owns: the stand-in. It must never play: what would make it do so is refused before.
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
    wrapped = None
    followers: Sequence[Definition] = ()
    unique_children = True

    def __init__(self, name: str) -> None:
        self.name = name

    def on_set_sub_agents(self, sub_agents: Sequence[Any], /) -> None:
        """It has none."""

    def on_set_as_sub_agent(self, parent: Any, /) -> None:
        """It is none."""

    def on_disallow_transfer_to_parent(self) -> None:
        """It has none."""

    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the protocol's
        """Refuse."""
        del input, context
        raise self.refusal()

    def refusal(self) -> UsageError:
        """What is said where the definition is needed."""
        msg = (
            f"the console has no definition of the agent {self.name!r}: it can look at its runs, but not go on with them. Start it with the file of that agent."
        )
        return UsageError(msg, agent=self.name)

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        """It goes on with nothing."""
        del node, invocation
        return str(self.refusal())

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        """It has no tools."""
        del node, tool_name
        return None
