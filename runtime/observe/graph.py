"""A graph of agents: possible transfers and handoffs, tools, and nesting.

The module reads definitions into a `Graph` of plain values. It only reads their attributes, and
nothing about runs. An agent without attributes for tools, handoffs or guardrails has none here. No
agent, tool or model is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ..agent.tree import Definition, Node, build_tree
from .graph_mermaid import mermaid_of
from .graph_svg import svg_of
from .graph_text import text_of
from .shapes import Edge, Shape, ToolRow

__all__ = ["Graph", "graph"]


@runtime_checkable
class _Runs(Protocol):
    """The attributes of a Runner that a graph needs."""

    agent: Definition

    def query(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True)
class Graph:
    """A diagram of agents. A Jupyter notebook shows it directly."""

    shapes: tuple[Shape, ...]
    edges: tuple[Edge, ...]

    def text(self) -> str:
        """Return a tree of text lines, for a terminal."""
        return text_of(self.shapes, self.edges)

    def mermaid(self) -> str:
        """Return a Mermaid flowchart, for Markdown."""
        return mermaid_of(self.shapes, self.edges)

    def svg(self) -> str:
        """Return an SVG drawing."""
        return svg_of(self.shapes, self.edges)

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()


def graph(agent: Definition | _Runs) -> Graph:
    """Build the diagram of an agent, with all agents that it can reach by transfers and handoffs.

    Example: `print(graph(agent).text())`. A Runner stands for its agent.
    """
    root = build_tree(
        agent.agent if isinstance(agent, _Runs) and not hasattr(agent, "sub_agents") else agent  # type: ignore[arg-type]
    )
    reader = _Reader()
    for tree in root.trees():
        reader.read(tree, inside=None, under=None)
    reader.join()
    return Graph(tuple(reader.shapes.values()), tuple(dict.fromkeys(reader.edges)))


class _Reader:
    """Walks through trees.

    Shapes are in the order of the walk; edges are added when all shapes are known.
    """

    def __init__(self) -> None:
        self.shapes: dict[int, Shape] = {}  # by node, or by the definition called as a tool
        self.edges: list[Edge] = []
        self._nodes: list[Node] = []
        self._by_agent: dict[int, str] = {}  # definition -> id of its shape

    def read(self, node: Node, inside: str | None, under: str | None) -> str:
        """Return the id of a node's shape.

        A wrapper and its wrapped agent have one shape.
        """
        layers = [node]
        while layers[-1].inner is not None:
            layers.append(layers[-1].inner)
        agent, last = node.agent, layers[-1]
        known = self._by_agent.get(id(agent))
        if known is not None:
            return known
        played: Any = getattr(last.agent, "supervisor", last.agent)
        children = [child for layer in layers for child in layer.children]
        is_workflow = bool(children) and not last.agent.allows_transfer
        shape = Shape(
            id=f"a{len(self.shapes)}",
            name=node.name,
            type=type(last.agent).__name__,
            description=agent.description,
            inside=inside,
            under=under,
            tools=tuple(ToolRow(tool.name, bool(tool.needs_approval)) for tool in _tools(played)),
            guardrails=tuple(_guardrails(last.agent)),
            is_workflow=is_workflow,
        )
        self.shapes[id(node)] = shape
        for layer in layers:
            self._by_agent[id(layer.agent)] = shape.id
        self._nodes.append(node)
        steps = [
            self.read(child, *((shape.id, None) if is_workflow else (None, shape.id)))
            for child in children
        ]
        if is_workflow:
            self._steps(last.agent, steps)
        for tool in _tools(played):
            inner = getattr(tool, "tree", None)
            if isinstance(inner, Node):
                self.edges.append(Edge(shape.id, self.read(inner, None, None), "tool", tool.name))
        return shape.id

    def _steps(self, agent: Definition, steps: list[str]) -> None:
        if (
            agent.unique_children
            # a Parallel has no edges between its children: they are known by position, and have no
            # order
        ):
            self.edges += [Edge(one, two, "step") for one, two in itertools.pairwise(steps)]
            if hasattr(agent, "max_iterations") and steps:
                self.edges.append(
                    Edge(
                        steps[-1],
                        steps[0],
                        "loop",
                        f"at most {agent.max_iterations} times" if agent.max_iterations else "",
                    )
                )

    def join(self) -> None:
        """Add the edges of transfers and handoffs."""
        pairs: dict[tuple[str, str], None] = {}
        for node in self._nodes:
            own = self.shapes[id(node)].id
            always = getattr(node.agent, "to", ())
            for target in node.targets:
                other = self._by_agent.get(id(target.agent))
                if other is None:
                    continue
                if target.name in always:
                    self.edges.append(Edge(own, other, "back"))
                else:
                    pairs[own, other] = None
            for handoff in _handoffs(node):
                other = self._by_agent.get(id(handoff.agent))
                if other is not None:
                    self.edges.append(Edge(own, other, "handoff", handoff.tool_name))
        for one, two in pairs:
            if (two, one) not in pairs:
                self.edges.append(Edge(one, two, "transfer"))
            elif (Edge(two, one, "both")) not in self.edges:
                self.edges.append(Edge(one, two, "both"))


def _tools(agent: Any) -> Iterable[Any]:
    return [tool for tool in getattr(agent, "tools", ()) if hasattr(tool, "needs_approval")]


def _guardrails(agent: Any) -> Iterable[str]:
    for kind in ("input_guardrails", "output_guardrails"):
        for one in getattr(agent, kind, ()):
            yield one.get_name()


def _handoffs(node: Node) -> Iterable[Any]:
    at: Node | None = node
    while at is not None:
        agent: Any = getattr(at.agent, "supervisor", at.agent)
        yield from getattr(agent, "check_handoffs", tuple)()
        at = at.inner
