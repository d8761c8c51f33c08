"""The protocol of an agent's definition, and the tree that definitions form.

The tree of a Runner records parents and possible transfers. A definition does not know its parent,
so it may be part of any number of trees. Nothing here runs an agent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..actor.supervision import Restart
from ..data.events import AgentEvent
from ..data.output_type import OutputT_co
from ..errors import UsageError
from .relations import tell_relations

if TYPE_CHECKING:
    from ..data.agent_input import AgentInput
    from ..data.chat import Message
    from .context import AgentContext
    from .history import HistoryPolicy, HistoryRewriter
    from .invocation import Invocation
    from .options import Options

__all__ = ["INNER", "Definition", "Node", "build_tree"]

INNER: Final = "~"
"""The step in a tree path from a wrapper to the agent that it wraps."""


class Definition(Protocol[OutputT_co]):
    """A definition of an agent, as the runtime reads it.

    `offbook.actors.Agent` is the base class of all definitions.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def sub_agents(self) -> Sequence[Definition]: ...
    @property
    def disallow_transfer_to_parent(self) -> bool: ...
    @property
    def history(self) -> HistoryPolicy | HistoryRewriter | None: ...
    @property
    # `AgentHooks` or None; an agent that calls its hooks itself may have others.
    def hooks(self) -> Any: ...
    @property
    def on_failure(self) -> Restart | None: ...
    @property
    # True if it calls its `hooks` itself.
    def calls_own_hooks(self) -> bool: ...
    @property
    # True if it and its sub-agents were introduced to each other on construction.
    def has_told(
        self,
    ) -> bool: ...
    @property
    # For all its runs; a run's own options override them.
    def fixed_options(self) -> tuple[Options, ...]: ...
    @property
    # True if the agent and its sub-agents may transfer to each other; in a workflow they are steps.
    def allows_transfer(
        self,
    ) -> bool: ...
    @property
    # True if it does not see transfers, which another process has no use for.
    def skips_transfers(self) -> bool: ...
    @property
    # True if it has its own handoffs, which it must handle when the run resumes.
    def has_handoffs(
        self,
    ) -> bool: ...
    @property
    # The definition that this one wraps, under the same name.
    def wrapped(self) -> Definition | None: ...
    # The definitions outside of its sub-agents that it may hand off to.
    @property
    def followers(self) -> Sequence[Definition]: ...
    # True if children's names must be unique in the whole tree; children of a Parallel are known by
    # position.
    @property
    def unique_children(self) -> bool: ...

    # These three: see `offbook.actors.Agent`
    def on_set_sub_agents(self, sub_agents: Sequence[Any], /) -> None: ...
    def on_set_as_sub_agent(self, parent: Any, /) -> None: ...
    def on_disallow_transfer_to_parent(self) -> None: ...
    def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]: ...  # noqa: A002 -- the contract's
    # Why an interrupted invocation cannot continue with this definition.
    def problem_with(self, node: Node, invocation: Invocation) -> str | None: ...
    # The message as an object of the agent's output type; None without one.
    def answer_of(self, node: Node, message: Message) -> OutputT_co | None: ...
    # The tree of the agent that this tool calls.
    def tool_tree(self, node: Node, tool_name: str) -> Node | None: ...


class Node:
    """A definition at its place in a tree."""

    __slots__ = (
        "agent",
        "children",
        "detached",
        "front",
        "inner",
        "kept",
        "linked",
        "name",
        "parent",
        "places",
        "targets",
    )

    def __init__(self, agent: Definition, parent: Node | None) -> None:
        self.agent = agent
        self.name: str = agent.name
        self.parent = parent
        self.children: tuple[Node, ...] = ()
        self.inner: Node | None = None  # node of the wrapped definition
        self.front: Node = self  # node of the outermost wrapper
        self.targets: tuple[
            Node, ...
        ] = ()  # possible transfers: sub-agents in order, then the parent
        self.kept: Any = None  # data that the definition computed once for this place
        # Agents that it called which are not in the tree.
        self.detached: dict[int, Node] | None = None
        self.places: dict[int, Node] | None = (
            # Root only: the place of each definition in this tree and in linked trees.
            None
        )
        self.linked: dict[str, Node] | None = (
            # Root only: the roots of all agents that can take over from outside of the tree, by
            # name. Linked trees share it.
            None
        )

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()
        if self.inner is not None:
            yield from self.inner.walk()

    @property
    def tree_path(self) -> tuple[str, ...]:
        """The names that lead here from the root of the tree.

        A wrapped definition is `INNER` in its wrapper.
        """
        depth, at = 0, self.front
        while at is not self:
            assert at.inner is not None
            depth, at = depth + 1, at.inner
        front = self.front
        above = () if front.parent is None else front.parent.tree_path
        return (*above, front.name, *(INNER,) * depth)

    @property
    def root(self) -> Node:
        """The root of its tree."""
        at = self.front
        while at.parent is not None:
            at = at.parent.front
        return at

    def find(self, tree_path: Sequence[str]) -> Node | None:
        """Return the node at that path in the tree of this root."""
        if not tree_path:
            return None
        at: Node | None = (
            self if tree_path[0] == self.name else (self.linked or {}).get(tree_path[0])
        )
        for name in tree_path[1:]:
            if at is None:
                return None
            at = (
                at.inner
                if name == INNER
                else next((child for child in at.children if child.name == name), None)
            )
        return at

    def named(self, name: str) -> Node | None:
        """Return the agent of that name in this root's tree, or in a linked one."""
        return next(
            (node for tree in self.trees() for node in tree.walk() if node.name == name), None
        )

    def trees(self) -> Iterator[Node]:
        """Yield this root, and the roots of all linked trees."""
        yield self
        yield from (node for node in (self.linked or {}).values() if node is not self)

    def follower(self, agent: Definition) -> Node:
        """Return the place of a definition that takes over, in this tree or a linked one.

        A definition that has no place gets a new one.
        """
        root = self.root
        if root.places is None:
            places: dict[int, Node] = {}
            for node in (node for tree in root.trees() for node in tree.walk()):
                places.setdefault(id(node.agent), node)
            root.places = places  # assigned as a whole, because others read it meanwhile
        found = root.places.get(id(agent))
        if found is None or found.agent is not agent:
            return build_tree(agent, tuple(root.trees()))
        return found if self._shares_front(found) else found.front

    def _shares_front(self, other: Node) -> bool:
        """Return True if the wrapper of `other` also wraps this node or one of its ancestors."""
        at: Node | None = self
        while at is not None:
            if (
                at.front is not at
                and other.front is not other
                and at.front.parent is other.front.parent
            ):
                return True
            at = at.front.parent
        return False

    def target(self, name: str) -> Node | None:
        """Return the agent of that name, if this one may transfer to it."""
        for node in self.targets:
            if node.name == name:
                return node
        return None

    def no_target(self, name: str) -> str:
        """Return the error text for a transfer to an agent that is not a possible target."""
        known = ", ".join(node.name for node in self.targets) or "none"
        return (
            f"transfer failed: agent '{name}' not found when transferring from '{self.name}'. "
            f"Agents that exist: {known}."
        )

    def node_of(self, agent: Definition) -> Node:
        """Return the place of a definition that this one calls.

        A definition that has no place gets a new one.
        """
        for child in self.children:
            if child.agent is agent:
                return child
        if self.inner is not None and self.inner.agent is agent:
            return self.inner
        if self.detached is None:
            self.detached = {}
        node = self.detached.get(id(agent))
        if node is None or node.agent is not agent:
            node = self.detached[id(agent)] = build_tree(agent)
        return node


def build_tree(root: Definition, beside: Sequence[Node] = ()) -> Node:
    """Build the tree under a definition.

    Raises `UsageError` for a cycle, a duplicate name, or an agent with two parents. The new tree is
    linked to the trees `beside` it, but not the other way round.
    """
    node = _build(root, None, ())
    trees = _link(node, beside)
    for tree in trees:
        _check_names(tree)
    for one in (one for tree in trees for one in tree.walk()):
        if one.children and not one.agent.has_told:
            tell_relations(one.agent)
    return node


def _link(root: Node, beside: Sequence[Node]) -> list[Node]:
    """Build the trees of all agents that one of these may hand off to, and that have no tree yet.

    Returns the new trees, the root first.
    """
    known = {id(node.agent): node.name for tree in beside for node in tree.walk()}
    trees, linked = [root], {**{tree.name: tree for tree in beside}, root.name: root}
    for tree in trees:  # grows in the loop
        known.update((id(node.agent), node.name) for node in tree.walk())
        for node in tree.walk():
            for agent in getattr(node.agent, "followers", ()):
                if id(agent) in known:
                    continue
                following = _build(agent, None, ())
                if following.name in linked:
                    msg = (
                        f"two agents are named {following.name!r}, and one of them takes over "
                        f"from {node.name!r}. Names are unique: rename one."
                    )
                    raise UsageError(msg, agent=following.name)
                known[id(agent)] = following.name
                linked[following.name] = following
                trees.append(following)
    if len(linked) > 1:
        for tree in trees:
            tree.linked = linked
    return trees


def _build(agent: Definition, parent: Node | None, above: tuple[Definition, ...]) -> Node:
    _check_definition(agent, parent)
    if any(agent is other for other in above):
        circle = " -> ".join(
            other.name
            for other in (
                *above[next(i for i, other in enumerate(above) if other is agent) :],
                agent,
            )
        )
        msg = (
            f"the agents form a cycle: {circle}. An agent must not be its own descendant. Remove "
            "the last one: a sub-agent can transfer back to its parent anyway."
        )
        raise UsageError(msg, agent=agent.name)
    node = Node(agent, parent)
    path = (*above, agent)
    node.children = tuple(_build(child, node, path) for child in agent.sub_agents)
    if agent.wrapped is not None:
        node.inner = _build(agent.wrapped, None, path)
        at: Node | None = node
        while at is not None:
            at.front, at = node, at.inner
    targets = list(node.children) if agent.allows_transfer else []
    if node.inner is not None and node.inner.agent.allows_transfer:
        targets += node.inner.children
    if (
        parent is not None
        and parent.agent.allows_transfer
        and not agent.disallow_transfer_to_parent
    ):
        targets.append(parent)
    node.targets = tuple(targets)
    return node


_PARTS: Final = (
    "description",
    "sub_agents",
    "disallow_transfer_to_parent",
    "history",
    "hooks",
    "on_failure",
    "allows_transfer",
    "wrapped",
    "unique_children",
)


def _check_definition(agent: Definition, parent: Node | None) -> None:
    """Raise if `agent` is not an agent, or lacks an attribute that all agents have."""
    where = f" among the sub-agents of {parent.name!r}" if parent is not None else ""
    instead = "Pass a ChatModelAgent, a workflow, or your own subclass of Agent."
    if isinstance(agent, type):
        msg = f"{agent!r}{where} is a class, not an agent. Pass an instance: {agent.__name__}(...)."
        raise UsageError(msg)
    if not hasattr(agent, "run"):
        msg = f"{agent!r}{where} is not an agent. {instead}"
        raise UsageError(msg)
    if not isinstance(getattr(agent, "name", None), str):
        msg = (
            f"{agent!r}{where} is not an agent, because it has no name. {instead} A custom "
            "__init__ must call super().__init__(name=...)."
        )
        raise UsageError(msg)
    if missing := [part for part in _PARTS if not hasattr(agent, part)]:
        what = f"a {type(agent).__name__}, which has no {', '.join(missing)}"
        msg = (
            f"agent {agent.name!r}{where} must be an Agent, got {what}. Derive it from "
            "offbook.actors.Agent, and call super().__init__(name=...)."
        )
        raise UsageError(msg, agent=agent.name)


def _check_names(root: Node) -> None:
    by_name: dict[str, Node] = {}
    for node in root.walk():
        other = by_name.setdefault(node.name, node)
        if other.front is node.front:
            continue
        if _by_position(other, node):
            continue
        if other.agent is node.agent:
            msg = (
                f"agent {node.name!r} has two parents: {_owner(other)} and {_owner(node)}. An "
                "agent must have one parent. Make a second one with another name, or pass it as "
                "a tool: agent.as_tool()."
            )
        else:
            msg = (
                f"two agents are named {node.name!r}: one under {_owner(other)}, one under "
                f"{_owner(node)}. Names are unique in a tree: rename one."
            )
        raise UsageError(msg, agent=node.name)


def _by_position(one: Node, two: Node) -> bool:
    """Return True if both are below different workflows that know their children by position."""
    lines = []
    for node in (one, two):
        line = []
        at: Node | None = node
        while at is not None:
            if at.parent is not None and not at.parent.agent.unique_children:
                line.append(at)
            at = at.parent
        lines.append(line)
    return (
        bool(lines[0] and lines[1])
        and not (set(lines[0]) & set(lines[1]))
        and lines[0][0].parent is not lines[1][0].parent
    )


def _owner(node: Node) -> str:
    return repr(node.parent.name) if node.parent is not None else "the root"
