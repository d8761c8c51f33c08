"""The shape of a tree of agents, and whether a run that was interrupted in one can resume in
another.

A tree is compatible if every agent that has started and not ended is still in its place: agents may
be added elsewhere, and tools may be added anywhere. An incompatible tree is refused before any code
runs, with an error that names the change.
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

FORMAT: Final = 1
"""The format of images, and of the journals that start with them. A higher one was written by a
newer version.
"""

_MOST_FORMATS: Final = 1_000_000
_NOTHING: Final = ("session_id", "fresh", "seen", "begins_with", "null_answer")
_NONE_OF: Final = ("values", "frames", "ended", "steps")
_NO_USAGE: Final = Usage()


def check_format(image: Any) -> None:
    """Raise CheckpointError if this is not an image, or is one of a newer version.

    Restores the defaults of fields that were omitted because they were empty.
    """
    if (
        not isinstance(image, dict)
        or type(image.get("format")) is not int
        or not 0 < image["format"] < _MOST_FORMATS
    ):
        raise CheckpointError(
            "it is damaged, or not a checkpoint: it contains no image of a run. Restore the "
            "store from a backup."
        )
    if image["format"] > FORMAT:
        msg = (
            f"it was written by a newer version of offbook: its format is {image['format']}, "
            f"and this version reads up to {FORMAT}. Update offbook."
        )
        raise CheckpointError(msg)
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
    """Return the name and kind of an agent, and the shapes of those below it."""
    inner = None if node.inner is None else shape_of(node.inner)
    children = [shape_of(child) for child in node.children] if node.children else []
    return [node.name, type(node.agent).__name__, children, inner]


def find_nodes(root: Node, shape: Any, invocations: list[Invocation]) -> None:
    """Give each invocation its place in the tree, parents first.

    Raises CheckpointError if the tree has changed too much.

    Agents that were called without being in the tree are skipped: their callers provide them again.
    """
    if shape[0] != root.name:
        msg = (
            f"the checkpoint belongs to a run of agent {shape[0]!r}, but this Runner runs "
            f"{root.name!r}. Resume it with a Runner of {shape[0]!r}."
        )
        raise CheckpointError(msg)
    known = dict(_tree_paths(shape, ()))
    for invocation in invocations:
        tree = root if invocation.agent_call.parent is None else _tree_around(invocation)
        if tree is not None and _find(invocation, tree) and tree is root:
            _compare(invocation.node, known.get(tuple(invocation.tree_path)))


def find_below(tree: Node, invocations: list[Invocation]) -> None:
    """Do the same for an agent outside the tree, now that its caller has provided it again."""
    first = invocations[0]
    if not _find(first, tree):
        raise _gone(first, tree)
    for invocation in invocations[1:]:
        around = _tree_around(invocation)
        if around is not None:
            _find(invocation, around)


def _tree_around(invocation: Invocation) -> Node | None:
    """Return the root of the tree to search; None if the caller provides the agent again."""
    parent = invocation.agent_call.parent
    assert parent is not None
    if parent.node is None:
        return None
    if invocation.agent_call.conversation is parent.agent_call.conversation:
        return parent.node.root
    tool = invocation.agent_call.tool
    tree: Node | None = (
        None if tool is None else parent.node.agent.tool_tree(parent.node, tool.name)
    )
    if tree is None:
        name = "?" if tool is None else tool.name
        msg = (
            f"the agents have changed: {parent.node.name!r} no longer has the tool {name!r} "
            f"that calls the agent {names_of(invocation.names)[0]!r}. Add it again."
        )
        raise CheckpointError(msg, agent=parent.node.name)
    return tree


def _find(invocation: Invocation, tree: Node) -> bool:
    """Give the invocation its place. Returns False if it was never in that tree."""
    node = tree.find(invocation.tree_path)
    if node is None:
        parent = invocation.agent_call.parent
        # An agent that is called as a tool is in the tool's tree
        in_call = (
            parent is not None
            and invocation.agent_call.conversation is not parent.agent_call.conversation
        )
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
    """Return whether it replaced an agent of the tree.

    Then it was in the tree too, or linked to it.
    """
    parent, first = invocation.agent_call.parent, names_of(invocation.names)[0]
    if parent is None:
        return True
    node = parent.node
    return first != invocation.tree_path[0] and (
        any(child.name == first for child in node.children)
        or (node.inner is not None and node.inner.name == first)
    )


def _gone(invocation: Invocation, tree: Node) -> CheckpointError:
    where = " / ".join(invocation.tree_path)
    msg = (
        f"the agents have changed: there is no longer an agent {where}, which the run must "
        f"continue. Add it again. The agents are: {_drawn(shape_of(tree))}."
    )
    return CheckpointError(msg, agent=invocation.tree_path[-1])


def _compare(node: Node, before: Any) -> None:
    """Raise CheckpointError if the agent that must resume has become a different one."""
    if before is None:
        return
    kind, children = before[1], [child[0] for child in before[2]]
    if type(node.agent).__name__ != kind:
        msg = (
            f"the agents have changed: {node.name!r} was a {kind}, and is now a "
            f"{type(node.agent).__name__}. Make it a {kind} again."
        )
        raise CheckpointError(msg, agent=node.name)
    now = [child.name for child in node.children]
    if not node.agent.allows_transfer and now[: len(children)] != children:
        msg = (
            f"the agents have changed: {node.name!r}, which the run must continue, had the "
            f"sub-agents {children}, and now has {now}. Add new ones only after them."
        )
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
