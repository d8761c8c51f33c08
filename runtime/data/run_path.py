"""The names of the agents that led somewhere, with shared prefixes.

A long run has long paths: if a loop calls an agent a thousand times, the path has a thousand names.
A path of more than a few names is therefore a `SharedPath`: a prefix, and the names after it.
Adding a name costs the same, however long the path is. Users see a tuple, which is built on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

__all__ = ["SHORT", "Path", "SharedPath", "as_path", "begins_with", "extended", "names_of"]

SHORT: Final = 32
"""The longest path that is a plain tuple, and the longest tail of a longer path."""


class SharedPath:
    """A path of more than a few names.

    Immutable. Compare two paths by identity, or by their names with `names_of`.
    """

    __slots__ = ("above", "length", "tail")

    def __init__(self, above: Path, tail: tuple[str, ...]) -> None:
        self.above = above
        self.tail = tail
        self.length = len(above) + len(tail)

    def __repr__(self) -> str:
        return f"<SharedPath of {self.length} names, the last {self.tail[-1]!r}>"

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[str]:
        return iter(names_of(self))

    def __deepcopy__(self, memo: object) -> SharedPath:
        return self


Path: TypeAlias = tuple[str, ...] | SharedPath


def extended(path: Path, name: str) -> Path:
    """Return the path with one more name."""
    if type(path) is tuple:
        return (*path, name) if len(path) < SHORT else SharedPath(path, (name,))
    assert isinstance(path, SharedPath)
    if len(path.tail) < SHORT:
        return SharedPath(path.above, (*path.tail, name))
    return SharedPath(path, (name,))


def as_path(names: Iterable[str], behind: Path = ()) -> Path:
    """Return a path with these names appended."""
    for name in names:
        behind = extended(behind, name)
    return behind


def names_of(path: Path) -> tuple[str, ...]:
    """Return the path as a plain tuple."""
    if type(path) is tuple:
        return path
    parts: list[tuple[str, ...]] = []
    while isinstance(path, SharedPath):
        parts.append(path.tail)
        path = path.above
    parts.append(path)
    return tuple(chain.from_iterable(reversed(parts)))


def begins_with(path: Path, start: Path) -> bool:
    """Return True if `start` is a prefix of `path`."""
    if len(start) > len(path):
        return False
    while isinstance(path, SharedPath) and len(path.above) >= len(start):
        path = path.above
    if isinstance(path, SharedPath) and isinstance(start, SharedPath) and path.above is start.above:
        return path.tail[: len(start.tail)] == start.tail
    return names_of(path)[: len(start)] == names_of(start)
