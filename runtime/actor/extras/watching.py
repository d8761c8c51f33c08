"""Watches: notifications about the end of other actors.

Watcher and watched each have entries, and may be in different systems. Even if a watch and an end
race, the watcher is notified once. An ended actor has no entries, and the locks of both sides are
never held at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..messages import Ending, Stopped, Terminated
from ..ref import cell_of

if TYPE_CHECKING:
    from ..cell import Cell
    from ..ref import ActorRef

__all__ = ["end", "unwatch", "watch"]


def watch(watcher: Cell, ref: ActorRef[Any]) -> None:
    """Notify the watcher when the actor ends; immediately if it has already ended."""
    watched = cell_of(ref)
    with watcher.system.lock:
        watcher.watching = watcher.watching or {}
        watcher.watching[watched] = None
    with watched.system.lock:
        alive = watched.ending is None
        if alive:
            watched.watchers = watched.watchers or {}
            watched.watchers[watcher] = None
    if not alive:
        _forget_watched(watcher, watched)
        watcher.notify(Terminated(ref, watched.ending or Stopped()))


def unwatch(watcher: Cell, watched: Cell) -> None:
    _forget_watcher(watched, watcher)
    _forget_watched(watcher, watched)


def end(cell: Cell, ending: Ending) -> None:
    """Notify the watchers of an ended actor, and end its own watches.

    `cell.ending` is already set.
    """
    ref = cell.own_ref()
    with cell.system.lock:
        watchers, cell.watchers = cell.watchers, None
        watching, cell.watching = cell.watching, None
    for watched in watching or ():
        _forget_watcher(watched, cell)
    for watcher in watchers or ():
        _forget_watched(watcher, cell)
        watcher.notify(Terminated(ref, ending))


def _forget_watcher(watched: Cell, watcher: Cell) -> None:
    with watched.system.lock:
        if watched.watchers is not None:
            watched.watchers.pop(watcher, None)


def _forget_watched(watcher: Cell, watched: Cell) -> None:
    with watcher.system.lock:
        if watcher.watching is not None:
            watcher.watching.pop(watched, None)
