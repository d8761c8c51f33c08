"""Agents as a graph.

Owns: the graph in Graphviz's language: agents, their tools, and where they hand over to. It must never draw: that is for Graphviz.
"""

from __future__ import annotations

from typing import Any

from ..agent import Agent
from ..handoffs import Handoff
from ..missing import refuse

__all__ = ["draw_graph", "get_all_edges", "get_all_nodes", "get_main_graph"]


def get_main_graph(agent: Agent[Any]) -> str:
    """The graph, as Graphviz reads it."""
    head = 'digraph G {\n  graph [splines=true];\n  node [fontname="Arial"];\n  edge [penwidth=1.5];\n'
    return f"{head}{get_all_nodes(agent)}{get_all_edges(agent)}}}"


def get_all_nodes(agent: Agent[Any]) -> str:
    """The nodes: the agents and their tools."""
    lines = ['  "__start__" [shape=ellipse, style=filled, fillcolor=lightblue];', '  "__end__" [shape=ellipse, style=filled, fillcolor=lightblue];']
    agents, tools = _parts(agent)
    lines += [f'  "{name}" [shape=box, style=filled, fillcolor=lightyellow];' for name in agents]
    lines += [f'  "{name}" [shape=ellipse, style=filled, fillcolor=lightgreen];' for name in dict.fromkeys(tool for _, tool in tools)]
    return "\n".join(lines) + "\n"


def get_all_edges(agent: Agent[Any]) -> str:
    """The edges: who begins, who calls what, who hands over to whom, who may end."""
    lines = [f'  "__start__" -> "{agent.name}";']
    agents, tools = _parts(agent)
    for owner, tool in tools:
        lines += [f'  "{owner}" -> "{tool}" [style=dotted];', f'  "{tool}" -> "{owner}" [style=dotted];']
    for name, targets in agents.items():
        lines += [f'  "{name}" -> "{target}";' for target in targets] or [f'  "{name}" -> "__end__";']
    return "\n".join(lines) + "\n"


def _parts(first: Agent[Any]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    agents: dict[str, list[str]] = {}
    tools: list[tuple[str, str]] = []
    waiting: list[Any] = [first]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, Handoff):
            agents.setdefault(one.agent_name, [])
            continue
        if agents.get(one.name):
            continue
        agents[one.name] = [target.agent_name if isinstance(target, Handoff) else target.name for target in one.handoffs]
        tools += [(one.name, tool.name) for tool in one.tools if (one.name, tool.name) not in tools]
        waiting += [target.agent if isinstance(target, Handoff) and target.agent is not None else target for target in one.handoffs]
    return agents, tools


def draw_graph(agent: Agent[Any], filename: str | None = None) -> Any:
    """The graph as Graphviz's `Source`; with a name, drawn into a file. Needs the package `graphviz`."""
    try:
        import graphviz  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415 -- for those who draw
    except ImportError:
        refuse("draw_graph without the package graphviz", "install graphviz, or use get_main_graph(agent)")
    graph = graphviz.Source(get_main_graph(agent))
    if filename:
        graph.render(filename, format="png", cleanup=True)
    return graph
