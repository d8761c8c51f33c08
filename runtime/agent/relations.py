"""Telling definitions of one another: who is whose parent, and who may not hand back.

Owns: when the three callbacks of a definition are called, and what one that raises becomes. A definition holds no state of a run; what it keeps of what it is
told here is what is the same in all of its trees.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from ..errors import UsageError, text_of

if TYPE_CHECKING:
    from .tree import Definition

__all__ = ["tell_parent", "tell_relations"]


def tell_relations(agent: Definition) -> None:
    """Tell an agent of its sub-agents, and then each of them of it."""
    _tell(agent, "on_set_sub_agents", tuple(agent.sub_agents))
    for child in agent.sub_agents:
        tell_parent(child, agent)


def tell_parent(child: Definition, parent: Definition) -> None:
    """Tell an agent whose sub-agent it is; and, if that is so, that it may not hand back."""
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
        msg = f"agent {agent.name!r}: {name}() is `async def`: it is called where agents are put together, and has to be `def`."
        raise UsageError(msg, agent=agent.name)
