"""The parts of a diagram of agents: shapes and edges, as plain values.

They depend neither on definitions nor on the way they are drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Edge", "EdgeKind", "Shape", "ToolRow", "children_of"]

EdgeKind: TypeAlias = Literal["transfer", "both", "back", "handoff", "tool", "step", "loop"]
"""The kinds of edges.

`transfer`: may transfer to; `both`: in both directions; `back`: always transfers at its end;
`handoff`; `tool`: calls it as a tool; `step`: comes before; `loop`: starts again with.
"""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool in the shape of its agent."""

    name: str
    needs_approval: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """One agent.

    A shape `inside` another is a step of that workflow; a shape `under` another is a sub-agent.
    """

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
        """The lines in the shape, below its name: tools and guardrails."""
        tools = (
            f"{tool.name} (needs approval)" if tool.needs_approval else tool.name
            for tool in self.tools
        )
        return (
            *(f"tool {text}" for text in tools),
            *(f"guardrail {name}" for name in self.guardrails),
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from one shape to another."""

    source: str
    target: str
    kind: EdgeKind
    label: str = ""


def children_of(shapes: tuple[Shape, ...], of: str | None) -> list[Shape]:
    """Return the shapes directly inside or under that one, in order; with None, the roots."""
    return [shape for shape in shapes if (shape.inside or shape.under) == of]
