"""Run paths as plain data, with shared prefixes written once.

A short path is the list of its names. A longer one is `[number, names]`: the path of that number in
a table, and the names that follow it. A row of the table is `[number, number of its prefix,
names]`, and follows the row of its prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..data.run_path import Path, SharedPath, as_path
from ..errors import CheckpointError

__all__ = ["PathTable", "read_names", "read_path", "read_paths"]

_TEXTS: Final = frozenset((str,))


class PathTable:
    """The numbers of the paths of one run, and the rows that define them."""

    __slots__ = ("_numbers", "rows")

    def __init__(self) -> None:
        # Numbers of long paths, by object identity: their extensions share the object.
        self._numbers: dict[Path, int] = {}
        self.rows: list[list[Any]] = []

    def know(self, rows: Iterable[list[Any]], paths: Mapping[int, Path]) -> None:
        """Note rows that are already written."""
        self.rows = [*rows]
        self._numbers = {path: number for number, path in paths.items()}

    def write(self, path: Path) -> list[Any]:
        """Return the path as plain data, after adding its prefix to `rows`."""
        return [self._number(path.above), [*path.tail]] if isinstance(path, SharedPath) else [*path]

    def _number(self, path: Path) -> int:
        number = self._numbers.get(path)
        if number is not None:
            return number
        line: list[Path] = []
        at: Path | None = path
        while at is not None and at not in self._numbers:
            line.append(at)
            at = at.above if isinstance(at, SharedPath) else None
        for one in reversed(line):
            number = self._numbers[one] = len(self.rows)
            if isinstance(one, SharedPath):
                self.rows.append([number, self._numbers[one.above], [*one.tail]])
            else:
                self.rows.append([number, None, [*one]])
        assert number is not None
        return number


def read_names(value: Any) -> tuple[str, ...]:
    """Return the names, of which there must be at least one. Raises CheckpointError."""
    names = tuple(value)
    if names and not isinstance(value, str) and set(map(type, names)) == _TEXTS:
        return names
    msg = (
        f"the checkpoint is damaged: expected names, got {value!r:.40}. Restore the store from a "
        "backup."
    )
    raise CheckpointError(msg)


def read_paths(rows: Iterable[Any], known: dict[int, Path] | None = None) -> dict[int, Path]:
    """Return the paths of a table by their numbers, added to those of earlier rows."""
    paths: dict[int, Path] = {} if known is None else known
    for number, above, names in rows:
        if type(number) is not int or number in paths:
            msg = (
                f"the checkpoint is damaged: expected the number of a path, got {number!r:.40}. "
                "Restore the store from a backup."
            )
            raise CheckpointError(msg)
        paths[number] = (
            read_names(names) if above is None else SharedPath(paths[above], read_names(names))
        )
    return paths


def read_path(value: Any, paths: Mapping[int, Path]) -> Path:
    """Return a path from the output of `PathTable.write`, or from a full list of names.

    Raises CheckpointError.
    """
    if type(value) is list and value and type(value[0]) is int:
        number, names = value
        return SharedPath(paths[number], read_names(names))
    return as_path(read_names(value))
