"""Our actors in pykka's global registry.

It has only the roots, so that `pykka.ActorRegistry.stop_all()` stops everything, children through
parents. pykka keeps a list, and removing one of a million refs from a list takes milliseconds. Our
container is a dictionary with the list methods that pykka uses. It replaces the list once, when
this module is imported. Nothing else of pykka is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pykka

from ..actor.cell import Cell
from ..actor.ref import ActorRef, cell_of

if TYPE_CHECKING:
    import threading

__all__ = ["Refs", "add", "discard", "forget", "lock"]


class Refs:
    """The refs of all actors in the registry, in the order of their start.

    Our actors are stored as cells: hashing a cell calls no Python code, so adding or removing one
    is a single step, which needs no lock. Iteration therefore uses a copy.
    """

    def __init__(self, refs: Iterable[pykka.ActorRef[Any]] = ()) -> None:
        self.keys: dict[object, None] = dict.fromkeys(map(_key, refs))

    def append(self, ref: pykka.ActorRef[Any]) -> None:
        self.keys[_key(ref)] = None

    def remove(self, ref: pykka.ActorRef[Any]) -> None:
        try:
            del self.keys[_key(ref)]
        except KeyError:
            msg = f"{ref} is not in the registry: it was never registered, or has stopped"
            raise ValueError(msg) from None

    def clear(self) -> None:
        self.keys.clear()

    def __contains__(self, ref: object) -> bool:
        return _key(ref) in self.keys

    def __iter__(self) -> Iterator[pykka.ActorRef[Any]]:
        return iter(self[:])

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: Any) -> Any:
        return [key.own_ref() if isinstance(key, Cell) else key for key in tuple(self.keys)][index]


def _key(ref: object) -> object:
    return cell_of(ref) if isinstance(ref, ActorRef) else ref


# Not `ActorRegistry.register()` and `unregister()`, because they format a log message with a new
# UUID for each actor.


def lock() -> threading.RLock:
    """Return the lock of pykka's registry."""
    return pykka.ActorRegistry._actor_refs_lock


def add(cell: Cell) -> None:
    pykka.ActorRegistry._actor_refs.keys[cell] = None  # type: ignore[attr-defined]  # our container: see below


def discard(cell: Cell) -> None:
    pykka.ActorRegistry._actor_refs.keys.pop(cell, None)  # type: ignore[attr-defined]


def forget() -> None:
    """Remove our actors in a forked process, because they do not exist there.

    Actors of pykka itself stay, as with pykka alone.
    """
    others = [ref for ref in pykka.ActorRegistry._actor_refs if not isinstance(ref, ActorRef)]
    pykka.ActorRegistry._actor_refs.clear()
    for ref in others:
        pykka.ActorRegistry._actor_refs.append(ref)


with pykka.ActorRegistry._actor_refs_lock:
    pykka.ActorRegistry._actor_refs = Refs(pykka.ActorRegistry._actor_refs)  # type: ignore[assignment]  # has the list methods that pykka uses
