"""Handoffs in a session: the same tools as elsewhere, with a `RealtimeAgent` as the target.

The session performs the handoff.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

from ...runtime.errors import UsageError
from ..handoffs.handoff import Handoff, handoff
from .agent import RealtimeAgent

__all__ = ["RealtimeHandoff", "as_realtime_handoff", "realtime_handoff"]

RealtimeHandoff: TypeAlias = Handoff
"""A `Handoff` to a `RealtimeAgent`."""

_REFUSED = MappingProxyType(
    {
        "input_filter": "a connection has one conversation, and what was said stays in it",
        "nest_handoff_history": "a connection has one conversation, and what was said stays in it",
        "mode": (
            "a realtime session speaks with one agent at a time. Pass agent.as_tool() in tools= "
            "instead"
        ),
    }
)


def realtime_handoff(
    agent: RealtimeAgent,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: Callable[..., object] | None = None,
    input_type: Any = None,
    is_enabled: Any = True,  # noqa: FBT002 -- the SDK's signature
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    **others: object,
) -> Handoff:
    """Make a tool that hands the session off to another `RealtimeAgent`."""
    for name, value in others.items():
        if name in _REFUSED and (name != "mode" or value == "call"):
            msg = f"realtime_handoff({name}=...): {_REFUSED[name]}."
            raise UsageError(msg)
        if name != "mode":
            msg = f"realtime_handoff() got an unexpected keyword argument {name!r}"
            raise TypeError(msg)
    if not isinstance(agent, RealtimeAgent):
        msg = (
            "realtime_handoff: agent must be a RealtimeAgent, got a "
            f"{type(agent).__name__}: {agent!r}. Use agent.as_tool() for other agents."
        )
        raise UsageError(msg)
    make: Any = handoff
    made: Handoff = make(
        agent,
        on_handoff=on_handoff,
        input_type=input_type,
        is_enabled=is_enabled,
        tool_name=tool_name or tool_name_override,
        tool_description=tool_description or tool_description_override,
    )
    return made


def as_realtime_handoff(given: object, whose: str) -> Handoff:
    """Return an element of an agent's `handoffs` as a `Handoff`."""
    if isinstance(given, RealtimeAgent):
        return realtime_handoff(given)
    if isinstance(given, Handoff):
        if given.mode == "call" or given.input_filter is not None or given.nest_handoff_history:
            name = (
                "mode"
                if given.mode == "call"
                else "input_filter"
                if given.input_filter is not None
                else "nest_handoff_history"
            )
            msg = f"agent {whose!r}: the handoff {given.tool_name} has {name}: {_REFUSED[name]}."
            raise UsageError(msg, agent=whose)
        return given
    # In the Agents SDK's spelling.
    if hasattr(given, "on_invoke_handoff") and hasattr(given, "tool_name"):
        return Handoff(
            tool_name=str(given.tool_name),
            tool_description=str(getattr(given, "tool_description", "")),
            input_json_schema=dict(getattr(given, "input_json_schema", None) or {}),
            on_invoke_handoff=given.on_invoke_handoff,
            agent_name=str(getattr(given, "agent_name", "")),
            is_enabled=getattr(given, "is_enabled", True),
        )
    msg = (
        f"agent {whose!r}: handoffs must contain realtime agents or "
        f"realtime_handoff(agent), got {given!r}."
    )
    raise UsageError(msg, agent=whose)
