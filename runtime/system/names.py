"""The names of root actors, to find an actor by name.

A name is reserved while its actor takes messages. Children's names need not be unique, because this
library's own actors use the names of agents. The table has no ended actors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from ..actor.cell import Cell

__all__ = ["Names"]


class Names:
    """The living roots by name. Use it under the system's lock."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}

    def claim(self, cell: Cell, name: str) -> None:
        """Assign a name to a root. Raises `UsageError` if another living root has the name."""
        other = self._cells.get(name)
        if other is not None and other.is_open:
            msg = (
                f"spawn({cell.actor_class.__name__}, name={name!r}): a "
                f"{other.actor_class.__name__} already has that name. "
                "Pass another name, stop that one first, or send to it: "
                f"system.actor_of({name!r}) finds it."
            )
            raise UsageError(msg, actor=name)
        self._cells[name] = cell

    def release(self, cell: Cell) -> None:
        """Remove the name of an ended root."""
        if cell.given_name is not None and self._cells.get(cell.given_name) is cell:
            del self._cells[cell.given_name]

    def find(self, path: str) -> Cell | None:
        """Return the living actor with that path: a root's name, then the names of children."""
        found = self._cells.get(path)
        if found is None:
            first, *others = path.split("/")
            found = self._cells.get(first)
            for name in others:
                found = next(
                    (
                        child
                        for child in (found.children if found is not None else None) or ()
                        if child.name == name and child.is_open
                    ),
                    None,
                )
        return found if found is not None and found.is_open else None
