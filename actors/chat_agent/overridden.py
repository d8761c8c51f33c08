"""A copy of an agent with other models and tools, for a test. The agent itself stays unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..tools.tool import Tool, tool
from .setup import Setup

if TYPE_CHECKING:
    from ...runtime.agent.override import Override
    from ...runtime.agent.tree import Node
    from .chat_model_agent import ChatModelAgent

__all__ = ["overridden", "replaced"]


def overridden(
    agent: ChatModelAgent, node: Node, override: Override
) -> tuple[ChatModelAgent, Setup]:
    """Return the copy of the agent in that place, and its setup.

    All runs of an `override` block share them.
    """
    made: tuple[Node, ChatModelAgent, Setup] | None = override.made.get(id(node))
    if made is None:
        twin = agent.overridden_twin(override.model_of(agent.name), dict(override.tools))
        made = override.made[id(node)] = (
            node,
            twin,
            Setup(twin, node),
        )  # retained with the node, so that no other object can reuse its id
    return made[1:]


def replaced(
    tools: tuple[Tool, ...], others: Mapping[str, Callable[..., object]]
) -> tuple[Tool, ...]:
    """Return these tools, with some replaced by others of the same name."""
    return tuple(
        _as_tool(one.name, others[one.name]) if one.name in others else one for one in tools
    )


def _as_tool(name: str, given: Callable[..., object] | Tool) -> Tool:
    return given if isinstance(given, Tool) else tool(name=name)(given)
