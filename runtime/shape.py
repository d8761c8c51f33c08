"""The shape of a tree of agents, and whether a run that was interrupted in one can go on in another.

Owns: the comparison. Compatible is what leaves those agents in their places that have begun and have not ended: an agent that was added elsewhere, a tool
that was added. What is not is refused with a text that says what has changed; nothing has run then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .definition import Node
from .errors import CheckpointError

if TYPE_CHECKING:
    from .invocation import Invocation

__all__ = ["find_nodes", "shape_of"]


def shape_of(node: Node) -> tuple[Any, ...]:
    """Name and kind of an agent, and the shapes of those below it."""
    inner = None if node.inner is None else shape_of(node.inner)
    return (node.name, type(node.agent).__name__, tuple(shape_of(child) for child in node.children), inner)


def find_nodes(root: Node, shape: Any, invocations: list[Invocation]) -> None:
    """Give each invocation its place in the tree, those above first. Raises CheckpointError if the tree has changed too much.

    Agents that were cast and stand in no tree are left: their casters give them again.
    """
    if shape[0] != root.name:
        msg = f"the checkpoint is of a run of agent {shape[0]!r}, and this Runner runs {root.name!r}. Resume it with a Runner of {shape[0]!r}."
        raise CheckpointError(msg)
    known = dict(_places(shape, ()))
    for invocation in invocations:
        parent = invocation.seat.parent
        if parent is None:
            tree: Node | None = root
        elif parent.node is None:
            continue  # below one that its caster gives again
        elif invocation.seat.scope is not parent.seat.scope:
            tool = invocation.seat.tool
            tree = None if tool is None else parent.node.agent.tool_tree(parent.node, tool.name)
            if tree is None:
                name = "?" if tool is None else tool.name
                msg = f"the agents have changed: {parent.node.name!r} has no tool {name!r} any more that calls the agent {invocation.names[0]!r}."
                raise CheckpointError(msg, agent=parent.node.name)
        else:
            tree = parent.node.root
        assert tree is not None
        node = tree.find(invocation.place)
        if node is None:
            if invocation.place[0] != tree.name:
                continue  # it stood in no tree
            where = " / ".join(invocation.place)
            msg = f"the agents have changed: there is no agent {where} any more, which is to go on. What there is: {_drawn(shape_of(tree))}."
            raise CheckpointError(msg, agent=invocation.place[-1])
        if tree is root:
            _compare(node, known.get(tuple(invocation.place)))
        invocation.node = node
        problem = node.agent.problem_with(node, invocation)
        if problem is not None:
            msg = f"the agents have changed: {problem}"
            raise CheckpointError(msg, agent=node.name)


def _compare(node: Node, before: Any) -> None:
    """Refuse, if the agent that is to go on has become another one."""
    if before is None:
        return
    kind, children = before[1], [child[0] for child in before[2]]
    if type(node.agent).__name__ != kind:
        msg = f"the agents have changed: {node.name!r} was a {kind}, and is a {type(node.agent).__name__} now."
        raise CheckpointError(msg, agent=node.name)
    now = [child.name for child in node.children]
    if not node.agent.hands_over and now[: len(children)] != children:
        msg = f"the agents have changed: {node.name!r}, which is to go on, had the sub-agents {children}, and has {now} now. New ones may be added behind them."
        raise CheckpointError(msg, agent=node.name)


def _places(shape: Any, above: tuple[str, ...]) -> Any:
    name, _, children, inner = shape
    place = (*above, name)
    yield place, shape
    for child in children:
        yield from _places(child, place)
    while inner is not None:
        place = (*place, "~")
        yield place, inner
        for child in inner[2]:
            yield from _places(child, place)
        inner = inner[3]


def _drawn(shape: Any) -> str:
    name, _, children, inner = shape
    below = [*children, *((inner[2]) if inner is not None else ())]
    return f"{name}({', '.join(_drawn(child) for child in below)})" if below else str(name)
