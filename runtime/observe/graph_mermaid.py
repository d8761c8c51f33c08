"""A diagram of agents as a Mermaid flowchart, which Markdown viewers draw.

All names are escaped, so that none can change the chart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .shapes import Edge, EdgeKind, Shape, children_of

__all__ = ["mermaid_of"]

_ARROWS: Final[dict[EdgeKind, str]] = {
    "transfer": "-->",
    "both": "<-->",
    "back": "-->",
    "handoff": "-.->",
    "tool": "-.->",
    "step": "==>",
    "loop": "==>",
}
_LABELS: Final[dict[EdgeKind, str]] = {"back": "always", "loop": "again"}


def mermaid_of(shapes: tuple[Shape, ...], edges: tuple[Edge, ...]) -> str:
    """Return the whole diagram."""
    lines = ["flowchart TD"]
    for shape in shapes:
        if shape.inside is None:
            lines += _lines(shape, shapes, 1)
    for edge in edges:
        label = " ".join(part for part in (_LABELS.get(edge.kind, ""), edge.label) if part)
        lines.append(
            f"    {edge.source} {_ARROWS[edge.kind]}{f'|{_quoted(label)}|' if label else ''} "
            f"{edge.target}"
        )
    return "\n".join(lines)


def _lines(shape: Shape, shapes: tuple[Shape, ...], depth: int) -> Iterator[str]:
    gap = "    " * depth
    if not shape.is_workflow:
        words = "<br/>".join(
            (f"<b>{_escaped(shape.name)}</b>", *(_escaped(note) for note in shape.notes))
        )
        yield f'{gap}{shape.id}["{words}"]'
        return
    yield f"{gap}subgraph {shape.id} [{_quoted(f'{shape.name} ({shape.type})')}]"
    for child in children_of(shapes, shape.id):
        yield from _lines(child, shapes, depth + 1)
    yield f"{gap}end"


def _escaped(text: str) -> str:
    for character, code in (
        ("&", "&amp;"),
        ("#", "#35;"),
        ('"', "#quot;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("`", "#96;"),
    ):
        text = text.replace(character, code)
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'
