"""The shape of a tree of agents, and whether a run that was interrupted in one can go on in another.

Owns: the comparison, and which formats of an image are read. Compatible is what leaves those agents in their places that have begun and have not ended: an
agent that was added elsewhere, a tool that was added. What is not is refused with a text that says what has changed; nothing has run then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..agent.tree import Node
from ..data.chat import Usage
from ..data.run_path import names_of
from ..errors import CheckpointError

if TYPE_CHECKING:
    from ..agent.invocation import Invocation

__all__ = ["FORMAT", "check_format", "find_below", "find_nodes", "shape_of"]

FORMAT: Final = 3
"""Of images, and of the journals that begin with them. One that is higher was written by a newer version. Before 2, each run path had all its names; before 3,
what is nothing was written, too."""

_MOST_FORMATS: Final = 1_000_000
_NOTHING: Final = ("session_id", "fresh", "seen", "begins_with", "null_answer")
_NONE_OF: Final = ("values", "frames", "ended", "steps")
_NO_USAGE: Final = Usage()


def check_format(image: Any) -> None:
    """Raise CheckpointError, if that is no image, or one of a newer version. What was left out of it, because it is nothing, is put there."""
    if not isinstance(image, dict) or type(image.get("format")) is not int or not 0 < image["format"] < _MOST_FORMATS:
        raise CheckpointError("it is damaged, or something else: it holds no image of a run.")
    if image["format"] > FORMAT:
        msg = f"it was written by a newer version: its format is {image['format']}, and this one reads up to {FORMAT}. Update understudy."
        raise CheckpointError(msg)
    if image["format"] > 2:  # noqa: PLR2004 -- a format
        for name in _NOTHING:
            image.setdefault(name, None)
        for name in _NONE_OF:
            image.setdefault(name, {})
        image.setdefault("options", [])
        image.setdefault("skip_transfers", False)
        image.setdefault("seq", 0)
        image.setdefault("transfers", 0)
        image.setdefault("usage", _NO_USAGE)
        image.setdefault("lanes", {"": [None, 0, []]})


def shape_of(node: Node) -> list[Any]:
    """Name and kind of an agent, and the shapes of those below it."""
    inner = None if node.inner is None else shape_of(node.inner)
    children = [shape_of(child) for child in node.children] if node.children else []
    return [node.name, type(node.agent).__name__, children, inner]


def find_nodes(root: Node, shape: Any, invocations: list[Invocation]) -> None:
    """Give each invocation its place in the tree, those above first. Raises CheckpointError if the tree has changed too much.

    Agents that were cast and stand in no tree are left: their casters give them again.
    """
    if shape[0] != root.name:
        msg = f"the checkpoint is of a run of agent {shape[0]!r}, and this Runner runs {root.name!r}. Resume it with a Runner of {shape[0]!r}."
        raise CheckpointError(msg)
    known = dict(_tree_paths(shape, ()))
    for invocation in invocations:
        tree = root if invocation.assignment.parent is None else _tree_around(invocation)
        if tree is not None and _find(invocation, tree) and tree is root:
            _compare(invocation.node, known.get(tuple(invocation.tree_path)))


def find_below(tree: Node, invocations: list[Invocation]) -> None:
    """The same for an agent that was cast and stands in no tree, now that its caster has given it again, and for those below it."""
    first = invocations[0]
    if not _find(first, tree):
        raise _gone(first, tree)
    for invocation in invocations[1:]:
        around = _tree_around(invocation)
        if around is not None:
            _find(invocation, around)


def _tree_around(invocation: Invocation) -> Node | None:
    """The root of the tree in which it is to be looked for; None, if its caster gives that again."""
    parent = invocation.assignment.parent
    assert parent is not None
    if parent.node is None:
        return None
    if invocation.assignment.dialogue is parent.assignment.dialogue:
        return parent.node.root
    tool = invocation.assignment.tool
    tree: Node | None = None if tool is None else parent.node.agent.tool_tree(parent.node, tool.name)
    if tree is None:
        name = "?" if tool is None else tool.name
        msg = f"the agents have changed: {parent.node.name!r} has no tool {name!r} any more that calls the agent {names_of(invocation.names)[0]!r}."
        raise CheckpointError(msg, agent=parent.node.name)
    return tree


def _find(invocation: Invocation, tree: Node) -> bool:
    """Give it its place. Returns False if it never stood in that tree."""
    node = tree.find(invocation.tree_path)
    if node is None:
        parent = invocation.assignment.parent
        in_call = parent is not None and invocation.assignment.dialogue is not parent.assignment.dialogue  # who is called as a tool stands in the tool's tree
        if invocation.tree_path[0] != tree.name and not in_call and not _took_over(invocation):
            return False
        raise _gone(invocation, tree)
    invocation.node = node
    problem = node.agent.problem_with(node, invocation)
    if problem is not None:
        msg = f"the agents have changed: {problem}"
        raise CheckpointError(msg, agent=node.name)
    return True


def _took_over(invocation: Invocation) -> bool:
    """Whether it has the place of one that stood in the tree: then it stood there too, or was linked to it."""
    parent, first = invocation.assignment.parent, names_of(invocation.names)[0]
    if parent is None:
        return True
    node = parent.node
    return first != invocation.tree_path[0] and (any(child.name == first for child in node.children) or (node.inner is not None and node.inner.name == first))


def _gone(invocation: Invocation, tree: Node) -> CheckpointError:
    where = " / ".join(invocation.tree_path)
    msg = f"the agents have changed: there is no agent {where} any more, which is to go on. What there is: {_drawn(shape_of(tree))}."
    return CheckpointError(msg, agent=invocation.tree_path[-1])


def _compare(node: Node, before: Any) -> None:
    """Refuse, if the agent that is to go on has become another one."""
    if before is None:
        return
    kind, children = before[1], [child[0] for child in before[2]]
    if type(node.agent).__name__ != kind:
        msg = f"the agents have changed: {node.name!r} was a {kind}, and is a {type(node.agent).__name__} now."
        raise CheckpointError(msg, agent=node.name)
    now = [child.name for child in node.children]
    if not node.agent.allows_transfer and now[: len(children)] != children:
        msg = f"the agents have changed: {node.name!r}, which is to go on, had the sub-agents {children}, and has {now} now. New ones may be added behind them."
        raise CheckpointError(msg, agent=node.name)


def _tree_paths(shape: Any, above: tuple[str, ...]) -> Any:
    name, _, children, inner = shape
    tree_path = (*above, name)
    yield tree_path, shape
    for child in children:
        yield from _tree_paths(child, tree_path)
    while inner is not None:
        tree_path = (*tree_path, "~")
        yield tree_path, inner
        for child in inner[2]:
            yield from _tree_paths(child, tree_path)
        inner = inner[3]


def _drawn(shape: Any) -> str:
    name, _, children, inner = shape
    below = [*children, *((inner[2]) if inner is not None else ())]
    return f"{name}({', '.join(_drawn(child) for child in below)})" if below else str(name)
