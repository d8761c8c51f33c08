"""The parts of an SVG drawing: rectangles, lines and texts.

All texts are escaped. The module does not depend on what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

__all__ = ["CHARACTER", "LINE", "box", "document", "label", "path", "shortened"]

CHARACTER: Final = 6.7
"""The width of a character of 11 px in a monospaced font, with some room."""
LINE: Final = 15
"""The height of a line of text."""

_LIGHT: Final = {
    "ink": "#1d2733",
    "dim": "#69788a",
    "box": "#f6f8fa",
    "accent": "#2f6fdd",
    "second": "#58a55c",
    "warn": "#d9902f",
    "bad": "#c93b3b",
}
_DARK: Final = {
    "ink": "#dbe4ee",
    "dim": "#8a99aa",
    "box": "#1c2530",
    "accent": "#6aa2ff",
    "second": "#6fc276",
    "warn": "#e6ad5c",
    "bad": "#ef6a6a",
}


def _colours(of: Mapping[str, str]) -> str:
    """Return the colours of each class as plain CSS: some viewers do not support variables."""
    return "".join(
        (
            (
                f"text, .head {{ fill: {of['ink']}; }} text.dim {{ fill: {of['dim']}; }} .box {{ "
                f"fill: {of['box']}; stroke: {of['ink']}; }} "
            ),
            (
                f".frame {{ stroke: {of['dim']}; }} .line {{ stroke: {of['ink']}; }} .soft {{ "
                f"stroke: {of['accent']}; }} .bar {{ fill: {of['accent']}; }} "
            ),
            (
                f".bar2 {{ fill: {of['second']}; }} .wait {{ fill: {of['warn']}; }} .bad {{ "
                f"fill: {of['bad']}; }} .gap {{ fill: {of['dim']}; }} "
            ),
            (
                f".soft-bar {{ fill: {of['dim']}; }} .tick {{ stroke: {of['dim']}; }} "
                f"text.on-bar {{ fill: {of['box']}; }} "
            ),
        )
    )


_STYLE: Final = (
    "text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; } text.name "
    "{ font-weight: bold; } "
    ".frame { fill: none; stroke-dasharray: 5 3; } .line { fill: none; } .soft { fill: none; "
    "stroke-dasharray: 4 3; } .gap, .band { opacity: .25; } "
    ".tick { fill: none; opacity: .3; } "
    f"{_colours(_LIGHT)}@media (prefers-color-scheme: dark) {{ {_colours(_DARK)}}}"
)


def document(width: float, height: float, parts: Iterable[str], title: str) -> str:
    """Return a whole drawing."""
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto-start-reverse">'
    )
    head = (
        f'<defs><style>{_STYLE}</style>{arrow}<path class="head" d="M0,0 L8,4 L0,8 '
        'z"/></marker></defs>'
    )
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'role="img"><title>{escape(title)}</title>{head}{"".join(parts)}</svg>'
    )


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str = "box",
    hint: str = "",
    radius: float = 5,
) -> str:
    """Return a rectangle. The `hint` is its tooltip."""
    inner = f"<title>{escape(hint)}</title>" if hint else ""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:g}">{inner}</rect>'
    )


def label(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text; `y` is its baseline."""
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def path(
    points: str, kind: str = "line", *, start: bool = False, end: bool = True, hint: str = ""
) -> str:
    """Return a line along a path, with an arrow at its `start` or its `end`."""
    marks = (' marker-start="url(#arrow)"' if start else "") + (
        ' marker-end="url(#arrow)"' if end else ""
    )
    return (
        f'<path class="{kind}" '
        f'd="{points}"{marks}>{f"<title>{escape(hint)}</title>" if hint else ""}</path>'
    )


def shortened(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters in one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
