"""Snapshots of a system: `SystemStats` and `ActorNode`, built from the living tree.

Each snapshot walks all actors (about half a microsecond each), without disturbing any of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..actor.report import ActorNode, SystemStats

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from .system import ActorSystem

__all__ = ["take_stats", "take_tree", "walk"]


def walk(system: ActorSystem) -> Iterator[Cell]:
    """Yield all actors, parents before children. From any thread."""
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
        depth = cell.queued()
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
        worker_threads=system.workers.busy,
        waiting_calls=system.workers.waiting,
    )


def take_tree(system: ActorSystem) -> ActorNode:
    # Nodes are frozen, so children are created before their parents: the reversed walk does that
    # without recursion, however deep the tree is.
    cells = list(walk(system))
    below: dict[Cell | None, list[ActorNode]] = {}
    for cell in reversed(cells):
        children = tuple(reversed(below.pop(cell, [])))
        node = ActorNode(
            cell.name,
            cell.actor_class.__name__,
            cell.state,
            cell.queued(),
            cell.own_ref(),
            children,
        )
        below.setdefault(cell.parent, []).append(node)
    return ActorNode(
        system.name,
        "ActorSystem",
        system.state.value,
        0,
        None,
        tuple(reversed(below.get(None, []))),
    )
