"""What a picture of agents is made of: shapes, and the lines between them.

Owns: these plain values, and how the kinds of lines are called. They know nothing of definitions, nor of how they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Edge", "EdgeKind", "Shape", "ToolRow", "children_of"]

EdgeKind: TypeAlias = Literal["transfer", "both", "back", "handoff", "tool", "step", "loop"]
"""`transfer`: may hand over to; `both`: and back; `back`: always hands over at its end; `handoff`; `tool`: calls it as a tool; `step`: comes before;
`loop`: begins again with."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool in the shape of its agent."""

    name: str
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """One agent. What is `inside` another is a step of that workflow; what is `under` one is a sub-agent."""

    id: str
    name: str
    type: str
    description: str = ""
    inside: str | None = None
    under: str | None = None
    tools: tuple[ToolRow, ...] = ()
    guardrails: tuple[str, ...] = ()
    is_workflow: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said in the shape, below its name: tools, and what guards it."""
        tools = (f"{tool.name} (needs approval)" if tool.needs_approval else tool.name for tool in self.tools)
        return (*(f"tool {text}" for text in tools), *(f"guardrail {name}" for name in self.guardrails))


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from one shape to another."""

    source: str
    target: str
    kind: EdgeKind
    label: str = ""


def children_of(shapes: tuple[Shape, ...], of: str | None) -> list[Shape]:
    """The shapes that stand inside or under that one, in order; with None, those that stand by themselves."""
    return [shape for shape in shapes if (shape.inside or shape.under) == of]
