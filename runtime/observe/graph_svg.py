"""A diagram of agents as a drawing: boxes with tools, frames around workflows, and edges.

The module defines the layout: sub-agents below their parent, steps next to each other in their
frame, and targets of handoffs or tool calls to the right. It needs only Python's standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from . import svg
from .shapes import Edge, Shape, children_of

__all__ = ["svg_of"]

_GAP: Final = 26.0
_DROP: Final = 46.0
_PAD: Final = 10.0
_WIDEST: Final = 44


@dataclass(slots=True)
class _Block:
    """A shape with everything inside or below it. The layout sets its corner."""

    shape: Shape
    blocks: list[_Block] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)  # (text, class)
    own: tuple[float, float] = (
        0.0,
        0.0,
    )  # width and height of its own box, or of a workflow's frame
    size: tuple[float, float] = (0.0, 0.0)
    at: tuple[float, float] = (0.0, 0.0)  # the upper left corner of its own box


def svg_of(shapes: tuple[Shape, ...], edges: tuple[Edge, ...]) -> str:
    """Return the whole diagram."""
    roots = [_measured(shape, shapes) for shape in children_of(shapes, None)]
    left, tallest = _PAD, 0.0
    for root in roots:
        _place(root, left, _PAD)
        left += root.size[0] + 2 * _GAP
        tallest = max(tallest, root.size[1])
    blocks = {block.shape.id: block for root in roots for block in _walk(root)}
    drawn = [part for block in blocks.values() for part in _drawn(block)]
    lines = [_line(edge, blocks[edge.source], blocks[edge.target]) for edge in edges]
    title = f"Agents: {', '.join(shape.name for shape in shapes)}"
    return svg.document(
        left - 2 * _GAP + 3 * _PAD, tallest + 2 * _PAD + _DROP, [*drawn, *lines], title
    )


def _walk(block: _Block) -> list[_Block]:
    return [block, *(other for child in block.blocks for other in _walk(child))]


def _measured(shape: Shape, shapes: tuple[Shape, ...]) -> _Block:
    block = _Block(shape, [_measured(child, shapes) for child in children_of(shapes, shape.id)])
    block.lines = [
        (svg.shortened(shape.name, _WIDEST), "name"),
        (shape.type, "dim"),
        *((svg.shortened(note, _WIDEST), "") for note in shape.notes),
    ]
    width = max(len(text) for text, _ in block.lines) * svg.CHARACTER + 2 * _PAD
    height = len(block.lines) * svg.LINE + 2 * _PAD - 4
    row = sum(child.size[0] for child in block.blocks) + _GAP * max(0, len(block.blocks) - 1)
    tallest = max((child.size[1] for child in block.blocks), default=0.0)
    if shape.is_workflow:
        block.own = block.size = (max(width, row + 2 * _PAD), height + tallest + 3 * _PAD)
    else:
        block.own = (width, height)
        block.size = (max(width, row), height + (tallest + _DROP if block.blocks else 0))
    return block


def _place(block: _Block, x: float, y: float) -> None:
    width, height = block.own
    block.at = (x + (block.size[0] - width) / 2, y)
    row = sum(child.size[0] for child in block.blocks) + _GAP * max(0, len(block.blocks) - 1)
    left = x + (block.size[0] - row) / 2
    top = (
        y + len(block.lines) * svg.LINE + 2 * _PAD
        if block.shape.is_workflow
        else y + height + _DROP
    )
    for child in block.blocks:
        _place(child, left, top)
        left += child.size[0] + _GAP


def _drawn(block: _Block) -> list[str]:
    x, y = block.at
    parts = [
        svg.box(
            x, y, *block.own, "frame" if block.shape.is_workflow else "box", block.shape.description
        )
    ]
    for number, (text, kind) in enumerate(block.lines, 1):
        parts.append(svg.label(x + _PAD, y + number * svg.LINE + 2, text, kind))
    return parts


def _line(edge: Edge, one: _Block, two: _Block) -> str:
    soft = edge.kind in ("handoff", "tool")
    kind, both = "soft" if soft else "line", edge.kind == "both"
    hint = " ".join(part for part in (edge.kind, edge.label) if part)
    (x1, y1), (w1, h1), (x2, y2), (w2, h2) = one.at, one.own, two.at, two.own
    if edge.kind == "loop":
        low = max(y1 + h1, y2 + h2)
        start, end = x1 + w1 / 2, x2 + w2 / 2 - (8 if one is two else 0)
        return svg.path(
            f"M{start:.1f},{y1 + h1:.1f} C{start:.1f},{low + 22:.1f} "
            f"{end:.1f},{low + 22:.1f} {end:.1f},{y2 + h2 + 1:.1f}",
            kind,
            hint=hint,
        )
    if y1 + h1 <= y2 + 1:  # downwards
        shift = 14 if soft or edge.kind == "back" else 0
        start, end = x1 + w1 / 2 + shift, x2 + w2 / 2 + shift
        middle = (y1 + h1 + y2) / 2
        points = (
            f"M{start:.1f},{y1 + h1 + 1:.1f} C{start:.1f},{middle:.1f} {end:.1f},{middle:.1f} "
            f"{end:.1f},{y2 - 1:.1f}"
        )
        return svg.path(points, kind, start=both, hint=hint)
    if y2 + h2 <= y1 + 1:  # upwards
        start, end = x1 + w1 / 2 - 14, x2 + w2 / 2 - 14
        middle = (y2 + h2 + y1) / 2
        points = (
            f"M{start:.1f},{y1 - 1:.1f} C{start:.1f},{middle:.1f} {end:.1f},{middle:.1f} "
            f"{end:.1f},{y2 + h2 + 1:.1f}"
        )
        return svg.path(points, kind, start=both, hint=hint)
    if x1 + w1 <= x2 and (
        edge.kind == "step" or x2 - x1 - w1 <= 2 * _GAP + 1
    ):  # directly to the right
        height = min(h1, h2) / 2
        return svg.path(
            f"M{x1 + w1 + 1:.1f},{y1 + height:.1f} L{x2 - 1:.1f},{y2 + height:.1f}",
            kind,
            start=both,
            hint=hint,
        )
    low = max(y1 + h1, y2 + h2) + 20 + abs(x1 - x2) / 20
    start, end = x1 + w1 / 2 + 6, x2 + w2 / 2 - 6
    return svg.path(
        f"M{start:.1f},{y1 + h1 + 1:.1f} C{start:.1f},{low:.1f} {end:.1f},{low:.1f} "
        f"{end:.1f},{y2 + h2 + 1:.1f}",
        kind,
        start=both,
        hint=hint,
    )
