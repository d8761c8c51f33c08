"""An agent that speaks.

Owns: what describes one. It must never open a session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..agent import AgentBase
from ..handoffs import Handoff, handoff
from ..missing import refuse
from ..prompts import Prompt
from ..run_context import RunContextWrapper, TContext

__all__ = ["RealtimeAgent", "RealtimeRunner", "realtime_handoff"]


@dataclass(eq=False)
class RealtimeAgent(AgentBase[TContext]):
    """An agent that speaks."""

    instructions: str | Callable[[RunContextWrapper[TContext], Any], Any] | None = None
    prompt: Prompt | None = None
    handoffs: list[Any] = field(default_factory=list)
    output_guardrails: list[Any] = field(default_factory=list)
    hooks: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            msg = f"RealtimeAgent name must be a string, got {type(self.name).__name__}"
            raise TypeError(msg)
        for name in ("tools", "handoffs"):
            if not isinstance(getattr(self, name), list):
                msg = f"RealtimeAgent {name} must be a list, got {type(getattr(self, name)).__name__}"
                raise TypeError(msg)


def realtime_handoff(
    agent: RealtimeAgent[Any],
    *,
    tool_name_override: str | None = None,
    tool_description_override: str | None = None,
    on_handoff: Any = None,
    input_type: type[Any] | None = None,
    is_enabled: Any = True,
) -> Handoff[Any, Any]:
    """A handoff to an agent that speaks."""
    given: Any = agent
    return handoff(given, tool_name_override, tool_description_override, on_handoff, input_type, is_enabled=is_enabled)


class RealtimeRunner:
    """Refused: there are no sessions in which agents speak."""

    def __init__(self, *_args: object, **_options: object) -> None:
        refuse("RealtimeRunner")
