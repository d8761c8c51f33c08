"""An agent of which there is only the name, so that a store's runs can be looked at, cancelled and forgotten without their agents.

Owns: the stand-in, and the Runner of it. It must never play.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..runner import Runner

if TYPE_CHECKING:
    from ..agent.context import AgentContext
    from ..agent.invocation import Invocation
    from ..agent.options import Options
    from ..agent.tree import Definition, Node
    from ..data.agent_input import AgentInput
    from ..data.events import AgentEvent
    from ..stores import Store

__all__ = ["LookOnly", "looking_runner"]


def looking_runner(store: Store, name: str = "understudy") -> Runner:
    """A Runner that only looks at what is in a store. What is asked by the agent's name is asked by that one."""
    return Runner(LookOnly(name), store=store, durability="step")


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
    fixed_options: tuple[Options, ...] = ()
    allows_transfer = True
    has_handoffs = False
    wrapped: Definition | None = None
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
        msg = f"{self.name!r} is only looked at: to play it, name where the agent is."
        raise UsageError(msg)

    def problem_with(self, node: Node, invocation: Invocation) -> str | None:
        """It cannot go on."""
        del node, invocation
        return f"{self.name!r} is only looked at"

    def tool_tree(self, node: Node, tool_name: str) -> Node | None:
        """It has none."""
        del node, tool_name
        return None
