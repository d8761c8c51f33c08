"""A timeline as a drawing.

Spans that are too narrow to see are merged, so that a browser can show a long run. It needs only
Python's standard library.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from . import svg
from .timeline_axis import Axis, duration_text
from .timeline_text import BAND_NAMES
from .timeline_values import BandKind, PartKind, TimelinePart, TimelineRow

if TYPE_CHECKING:
    from .timeline import Timeline

__all__ = ["svg_of"]

_WIDTH: Final = 900.0
_RIGHT: Final = 70.0
_ROW: Final = 22.0
_TOP: Final = 56.0
_PAD: Final = 10.0
_LONGEST_NAME: Final = 30
_MOST_ROWS: Final = 500
_NARROWEST: Final = 1.5
_TICK: Final = 110.0
_PARTS: Final[dict[PartKind, str]] = {"model": "bar", "tool": "bar2", "own": "soft-bar"}
_BANDS: Final[dict[BandKind, str]] = {"waits": "wait", "lost": "bad", "rests": "gap"}


def svg_of(picture: Timeline) -> str:
    """Return the whole drawing."""
    rows = picture.rows[:_MOST_ROWS]
    names = [f"{'  ' * min(row.depth, 4)}{row.name}" for row in rows]
    left = (
        _PAD
        + min(max((len(name) for name in names), default=0), _LONGEST_NAME) * svg.CHARACTER
        + _PAD
    )
    drawing = _Drawing(picture, left)
    more = len(picture.rows) - len(rows)
    bottom = _TOP + _ROW * (len(rows) + bool(more))
    parts = [*drawing.head(), *drawing.ticks(bottom), *drawing.bands(bottom)]
    for number, row in enumerate(rows):
        parts += drawing.row(row, names[number], _TOP + number * _ROW)
    if more:
        parts.append(svg.label(_PAD, bottom - 7, f"… and {more} more", "dim"))
    parts += drawing.legend(bottom)
    return svg.document(
        left + _WIDTH + _RIGHT, bottom + 34, parts, f"Timeline of {picture.agent or 'a run'}"
    )


class _Drawing:
    def __init__(self, picture: Timeline, left: float) -> None:
        self._picture, self._left = picture, left
        self._axis = Axis(picture.start, picture.end, picture.bands)

    def _x(self, time: float) -> float:
        return self._left + self._axis.place(time) * _WIDTH

    def head(self) -> Iterator[str]:
        yield svg.label(_PAD, 16, svg.shortened(self._picture.title(), 120), "name")
        yield svg.label(_PAD, 31, svg.shortened(", ".join(self._picture.summary()), 150), "dim")

    def ticks(self, bottom: float) -> Iterator[str]:
        free = 0.0
        for place, text in self._axis.ticks(int(_WIDTH / _TICK)):
            x = self._left + place * _WIDTH
            if x < free:
                continue
            free = x + len(text) * svg.CHARACTER + 6
            yield svg.path(f"M{x:.1f},{_TOP - 4:.1f} L{x:.1f},{bottom:.1f}", "tick", end=False)
            yield svg.label(x + 2, _TOP - 8, text, "dim")

    def bands(self, bottom: float) -> Iterator[str]:
        for band in self._picture.bands:
            x, width = self._x(band.start), max(self._x(band.end) - self._x(band.start), _NARROWEST)
            length = duration_text(band.end - band.start)
            yield svg.box(
                x,
                _TOP - 4,
                width,
                bottom - _TOP + 4,
                f"{_BANDS[band.kind]} band",
                f"{BAND_NAMES[band.kind]}: {length}",
                0,
            )
            if width > len(length) * svg.CHARACTER + 4:
                yield svg.label(x + width / 2, bottom - 4, length, "dim", "middle")

    def row(self, row: TimelineRow, name: str, top: float) -> Iterator[str]:
        indent = len(name) - len(name.lstrip())
        text = svg.shortened(name, _LONGEST_NAME - indent)
        yield svg.label(
            _PAD + indent * svg.CHARACTER, top + 15, text, "name" if not row.depth else ""
        )
        seen = -1.0
        for span in row.spans:
            x, width = self._x(span.start), self._x(span.end) - self._x(span.start)
            if x + width < seen + 0.5:  # it would cover nothing new
                continue
            seen = x + max(width, _NARROWEST)
            hint = (
                f"{span.agent}: "
                f"{duration_text(self._picture.active(span.start, span.end))}{', failed' if span.failed else ''}"
            )
            yield svg.box(
                x, top + 8, max(width, _NARROWEST), 6, "bad" if span.failed else "gap", hint, 2
            )
            yield from self._parts(span.parts, top)
        seconds = sum(self._picture.active(span.start, span.end) for span in row.spans)
        yield svg.label(
            self._left + _WIDTH + _RIGHT - _PAD, top + 15, duration_text(seconds), "dim", "end"
        )

    def _parts(self, parts: tuple[TimelinePart, ...], top: float) -> Iterator[str]:
        seen: dict[str, float] = {}
        for part in parts:
            x, width = self._x(part.start), self._x(part.end) - self._x(part.start)
            if x + width < seen.get(part.kind, -1.0) + 0.5:
                continue
            seen[part.kind] = x + max(width, _NARROWEST)
            what = {"model": "model", "tool": f"tool {part.name}", "own": part.name}[part.kind]
            hint = (
                f"{what}: "
                f"{duration_text(self._picture.active(part.start, part.end))}{f': {part.note}' if part.note else ''}"
            )
            y, height = (top + 3, 15.0) if part.kind != "tool" else (top + 5, 11.0)
            for start, end in self._picture.at_work(part.start, part.end):
                x, width = self._x(start), self._x(end) - self._x(start)
                yield svg.box(
                    x,
                    y,
                    max(width, _NARROWEST),
                    height,
                    "bad" if part.failed else _PARTS[part.kind],
                    hint,
                    3,
                )
            if part.kind == "tool" and width > len(part.name) * svg.CHARACTER + 8:
                yield svg.label(x + 4, top + 14.5, part.name, "on-bar")

    def legend(self, bottom: float) -> Iterator[str]:
        spans = [span for row in self._picture.rows for span in row.spans]
        kinds = {part.kind for span in spans for part in span.parts}
        shown = [
            (_PARTS[kind], word)
            for kind, word in (("model", "model"), ("tool", "tool"), ("own", "own work"))
            if kind in kinds
        ]
        shown += [("gap", "between calls")] if spans else []
        shown += (
            [("bad", "failed")]
            if any(span.failed or any(part.failed for part in span.parts) for span in spans)
            else []
        )
        shown += [
            (f"{_BANDS[kind]} band", name)
            for kind, name in BAND_NAMES.items()
            if any(band.kind == kind for band in self._picture.bands)
        ]
        x = self._left
        for kind, word in shown:
            yield svg.box(x, bottom + 14, 12, 10, kind, radius=2)
            yield svg.label(x + 17, bottom + 23, word, "dim")
            x += 17 + (len(word) + 3) * svg.CHARACTER
