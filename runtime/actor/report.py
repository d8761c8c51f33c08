"""Reports about the actors of a system: immutable records, created on request by `system/`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ref import ActorRef

__all__ = ["ActorNode", "DeadLetter", "DrainReport", "SlowestHandler", "SystemStats"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that is not handled.

    Its actor had stopped, stopped before it handled the message, or dropped it for a newer one.
    """

    message: object
    ref: ActorRef[Any]
    reason: str


@dataclass(frozen=True, slots=True)
class SlowestHandler:
    """The handler that has blocked the loop longest, over all its steps, without its waits.

    For a `ThreadActor`, the thread it has blocked.
    """

    actor: str
    handler: str
    seconds: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ActorNode:
    """An actor and its descendants. `str(node)` draws the tree."""

    name: str
    class_name: str
    state: str
    depth: int
    """The number of messages in its mailbox."""
    ref: ActorRef[Any] | None
    """None for the system itself, which is the root of the tree."""
    children: tuple[ActorNode, ...] = ()

    @property
    def path(self) -> str:
        """The names from the root to this actor; empty for the system itself."""
        return "" if self.ref is None else self.ref.path

    def __repr__(self) -> str:
        return (
            f"<ActorNode {self.name} ({self.class_name}, {self.state}), {len(self.children)} "
            "children>"
        )

    def walk(self) -> Iterator[tuple[int, ActorNode]]:
        """Yield all nodes with their levels, parents before children."""
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
    """The state of a system at one instant, and its counters so far."""

    name: str
    state: str
    actors: int
    by_class: Mapping[str, int]
    by_state: Mapping[str, int]
    by_class_and_state: Mapping[tuple[str, str], int]
    queued: int
    """The number of messages in all mailboxes."""
    deepest: tuple[tuple[str, int], ...]
    """The paths of the actors with the most messages, with their numbers; ten at most."""
    handled: int
    restarts: int
    dead_letters: int
    slowest_handler: SlowestHandler | None
    worker_threads: int
    """The number of worker threads that run a blocking call."""
    waiting_calls: int
    """The number of blocking calls that wait for a worker thread."""


@dataclass(frozen=True, slots=True)
class DrainReport:
    """The result of a drain."""

    drained: bool
    """True if all work was done in time."""
    seconds: float
    busy: tuple[str, ...]
    """The paths of the actors that still had work."""
    queued: int
    """The number of messages still waiting."""
