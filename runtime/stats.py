"""What a system looks like from outside: immutable records, made when they are asked for.

Owns: `SystemStats`, `ActorNode`, `DrainReport`, and how the first two are taken from the living tree. Taking one walks all actors (about half a
microsecond each) and disturbs none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .monitor import SlowestHandler

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef
    from .system import ActorSystem

__all__ = ["ActorNode", "DrainReport", "SystemStats", "take_stats", "take_tree", "walk"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ActorNode:
    """An actor and what is below it. `str(node)` draws the tree."""

    name: str
    class_name: str
    state: str
    depth: int
    """How many messages wait in its mailbox."""
    ref: ActorRef[Any] | None
    """None for the system itself, which is the root of the tree."""
    children: tuple[ActorNode, ...] = ()

    @property
    def path(self) -> str:
        """The names from the root to this actor; of the system itself, nothing."""
        return "" if self.ref is None else self.ref.path

    def __repr__(self) -> str:
        return f"<ActorNode {self.name} ({self.class_name}, {self.state}), {len(self.children)} children>"

    def walk(self) -> Iterator[tuple[int, ActorNode]]:
        """All the nodes with their levels, parents before children."""
        stack = [(0, self)]
        while stack:
            level, node = stack.pop()
            yield level, node
            stack.extend((level + 1, child) for child in reversed(node.children))

    def __str__(self) -> str:
        lines = []
        for level, node in self.walk():
            waiting = f", {node.depth} waiting" if node.depth else ""
            lines.append(f"{'  ' * level}{node.name} ({node.class_name}, {node.state}{waiting})")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class SystemStats:
    """The state of a system at one instant, and what has happened in it so far."""

    name: str
    state: str
    actors: int
    by_class: Mapping[str, int]
    by_state: Mapping[str, int]
    by_class_and_state: Mapping[tuple[str, str], int]
    queued: int
    """How many messages wait in all the mailboxes."""
    deepest: tuple[tuple[str, int], ...]
    """The paths of the actors with most messages waiting, and how many; ten at most."""
    handled: int
    restarts: int
    dead_letters: int
    slowest_handler: SlowestHandler | None


@dataclass(frozen=True, slots=True)
class DrainReport:
    """How a drain ended."""

    drained: bool
    """Whether everything was done in time."""
    seconds: float
    busy: tuple[str, ...]
    """The paths of the actors that still had something to do."""
    queued: int
    """How many messages were still waiting."""


def walk(system: ActorSystem) -> Iterator[Cell]:
    """All the actors, parents before children. From any thread."""
    stack = list(reversed(tuple(system.roots)))
    while stack:
        cell = stack.pop()
        yield cell
        if cell.children:
            stack.extend(reversed(tuple(cell.children)))


def take_stats(system: ActorSystem) -> SystemStats:
    both: Counter[tuple[str, str]] = Counter()
    depths: list[tuple[int, Cell]] = []
    queued = 0
    for cell in walk(system):
        both[cell.actor_class.__name__, cell.state] += 1
        depth = len(cell.mailbox)
        if depth:
            queued += depth
            depths.append((depth, cell))
    by_class: Counter[str] = Counter()
    by_state: Counter[str] = Counter()
    for (class_name, state), count in both.items():
        by_class[class_name] += count
        by_state[state] += count
    depths.sort(key=lambda pair: pair[0], reverse=True)
    monitor = system.monitor
    return SystemStats(
        name=system.name,
        state=system.state.value,
        actors=by_class.total(),
        by_class=dict(by_class),
        by_state=dict(by_state),
        by_class_and_state=dict(both),
        queued=queued,
        deepest=tuple((cell.path, depth) for depth, cell in depths[:10]),
        handled=monitor.handled,
        restarts=monitor.restarts,
        dead_letters=monitor.dead_letters,
        slowest_handler=monitor.slowest,
    )


def take_tree(system: ActorSystem) -> ActorNode:
    # Children are made before their parents, which are frozen: the walk backwards does that without recursion, however deep the tree is.
    cells = list(walk(system))
    below: dict[Cell | None, list[ActorNode]] = {}
    for cell in reversed(cells):
        children = tuple(reversed(below.pop(cell, [])))
        node = ActorNode(cell.name, cell.actor_class.__name__, cell.state, len(cell.mailbox), cell.own_ref(), children)
        below.setdefault(cell.parent, []).append(node)
    return ActorNode(system.name, "ActorSystem", system.state.value, 0, None, tuple(reversed(below.get(None, []))))
