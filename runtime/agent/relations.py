"""The callbacks that introduce definitions to each other: parents and sub-agents.

The module calls the three callbacks and wraps their errors. A definition holds no run state, so it
may only remember facts that hold in all of its trees.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ..errors import UsageError, text_of

if TYPE_CHECKING:
    from .tree import Definition

__all__ = ["tell_parent", "tell_relations"]


def tell_relations(agent: Definition) -> None:
    """Introduce an agent's sub-agents to it, and it to each of them."""
    _tell(agent, "on_set_sub_agents", tuple(agent.sub_agents))
    for child in agent.sub_agents:
        tell_parent(child, agent)


def tell_parent(child: Definition, parent: Definition) -> None:
    """Introduce a parent to its sub-agent, and tell the sub-agent if it may not transfer back."""
    _tell(child, "on_set_as_sub_agent", parent)
    if child.disallow_transfer_to_parent or not parent.allows_transfer:
        _tell(child, "on_disallow_transfer_to_parent")


def _tell(agent: Definition, name: str, *args: object) -> None:
    try:
        returned = getattr(agent, name)(*args)
    except Exception as error:
        msg = f"agent {agent.name!r}: {name}() raised {type(error).__name__}: {text_of(error)}"
        raise UsageError(msg, agent=agent.name) from error
    if inspect.iscoroutine(returned):
        returned.close()
        msg = (
            f"agent {agent.name!r}: {name}() must be `def`, not `async def`: it is called "
            "while agents are composed."
        )
        raise UsageError(msg, agent=agent.name)
