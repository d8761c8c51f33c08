"""The names that root actors were given, so that one can be found by its own.

Owns: the table of them. A name is taken as long as its actor takes messages. Children's names need not be unique: what the package spawns for itself bears the
names of agents. It must never keep an actor that has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from ..actor.cell import Cell

__all__ = ["Names"]


class Names:
    """Which living root has which name. To be used under the system's lock."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}

    def claim(self, cell: Cell, name: str) -> None:
        """Give a root its name. Raises `UsageError` if another one lives under it."""
        other = self._cells.get(name)
        if other is not None and other.mailbox.is_open:
            msg = (
                f"spawn({cell.actor_class.__name__}, name={name!r}): a {other.actor_class.__name__} of that name lives already. "
                f"Take another name, stop that one first, or send to it: system.actor_of({name!r}) finds it."
            )
            raise UsageError(msg, actor=name)
        self._cells[name] = cell

    def release(self, cell: Cell) -> None:
        """A root has ended."""
        if cell.given_name is not None and self._cells.get(cell.given_name) is cell:
            del self._cells[cell.given_name]

    def find(self, path: str) -> Cell | None:
        """The living actor with that path: the name that was given to a root, and the names of children below it."""
        found = self._cells.get(path)
        if found is None:
            first, *others = path.split("/")
            found = self._cells.get(first)
            for name in others:
                found = next((child for child in (found.children if found is not None else None) or () if child.name == name and child.mailbox.is_open), None)
        return found if found is not None and found.mailbox.is_open else None
