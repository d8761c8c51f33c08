"""The read-only part of `ActorSystem`: snapshots, names and dead letters, for any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..actor.report import ActorNode, DeadLetter, SystemStats
from .names import Names
from .stats import take_stats, take_tree, walk

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.ref import ActorRef
    from .system import ActorSystem

__all__ = ["Overview"]


class Overview:
    """The base of `ActorSystem`."""

    names: Names

    @property
    def itself(self) -> ActorSystem:
        """This system: nothing else has this base."""
        return cast("ActorSystem", self)

    @property
    def not_entered(self) -> str:
        """The error text for use before the system is entered."""
        return (
            f"{self!r} has not been entered. Write `async with ActorSystem() as system:`, or "
            "`with ActorSystem.in_thread() as system:`."
        )

    def cells(self) -> list[Cell]:
        """Return all actors, parents before children."""
        return list(walk(self.itself))

    def actor_of(self, path: str) -> ActorRef[Any] | None:
        """Return the living root of that name, or a child by its path, such as `"parent/child"`.

        None if there is none. From any thread.
        """
        with self.itself.lock:
            found = self.names.find(path)
        return None if found is None else found.own_ref()

    def stats(self) -> SystemStats:
        """Return the number of actors by class and state, and their counters.

        From any thread.
        """
        return take_stats(self.itself)

    def tree(self) -> ActorNode:
        """Return all actors as a tree. `print(system.tree())` draws it. From any thread."""
        return take_tree(self.itself)

    def subscribe_dead_letters(
        self, callback: Callable[[DeadLetter], object]
    ) -> Callable[[], None]:
        """Call `callback(letter)` for every message that is not handled.

        Returns a function that ends the subscription. The callback runs in the thread that lost the
        message, and should be quick. A callback that raises is logged and removed.
        """
        return self.itself.monitor.subscribe(callback)
