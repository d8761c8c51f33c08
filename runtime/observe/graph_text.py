"""A diagram of agents as a tree of text lines, for a terminal.

It is plain text without colours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .shapes import Edge, EdgeKind, Shape, children_of

__all__ = ["text_of"]

_WORDS: Final[dict[EdgeKind, str]] = {
    "transfer": "may hand over to",
    "both": "may hand over to",
    "back": "then hands off to",
    "handoff": "handoff to",
    "tool": "calls",
}


def text_of(shapes: tuple[Shape, ...], edges: tuple[Edge, ...]) -> str:
    """Return the whole diagram."""
    lines: list[str] = []
    for shape in children_of(shapes, None):
        lines += _lines(shape, shapes, edges)
    return "\n".join(lines)


def _lines(shape: Shape, shapes: tuple[Shape, ...], edges: tuple[Edge, ...]) -> Iterator[str]:
    about = f": {' '.join(shape.description.split())}" if shape.description else ""
    yield f"{shape.name} ({shape.type}){about}"
    children = children_of(shapes, shape.id)
    parts = [[note] for note in (*shape.notes, *_ways(shape, shapes, edges))]
    parts += [list(_lines(child, shapes, edges)) for child in children]
    for part in parts:
        is_last = part is parts[-1]
        yield f"{'└─' if is_last else '├─'} {part[0]}"
        yield from (f"{'   ' if is_last else '│  '}{line}" for line in part[1:])


def _ways(shape: Shape, shapes: tuple[Shape, ...], edges: tuple[Edge, ...]) -> Iterator[str]:
    """Yield the edges of a shape, except to its steps and sub-agents, which the tree shows."""
    names = {one.id: one for one in shapes}
    for kind, words in _WORDS.items():
        found = [edge.target for edge in edges if edge.kind == kind and edge.source == shape.id]
        if kind == "both":
            found += [
                edge.source for edge in edges if edge.kind == kind and edge.target == shape.id
            ]
        found = [
            target
            for target in found
            if kind not in ("transfer", "both") or names[target].under != shape.id
        ]
        if found:
            yield f"{words} {', '.join(names[target].name for target in dict.fromkeys(found))}"
