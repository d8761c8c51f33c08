"""A timeline as text lines, for a terminal.

It is never wider than requested, and is plain text without colours; with `ascii`, in ASCII only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from .svg import shortened
from .timeline_axis import Axis, duration_text
from .timeline_values import BandKind, TimelinePart, TimelineRow, TimelineSpan

if TYPE_CHECKING:
    from .timeline import Timeline

__all__ = ["BAND_NAMES", "text_of"]

BAND_NAMES: Final[dict[BandKind, str]] = {
    "waits": "waits for an answer",
    "lost": "without a process",
    "rests": "at rest",
}

_CELLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "█",
        "tool": "▒",
        "own": "▓",
        "idle": "─",
        "still": "┄",
        "waits": "░",
        "lost": "×",  # noqa: RUF001 -- a cross
        "rests": "░",
        "more": "…",
    }
)
_ASCII: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "#",
        "tool": "=",
        "own": "+",
        "idle": "-",
        "still": ".",
        "waits": "~",
        "lost": "x",
        "rests": "~",
        "more": "...",
    }
)
_WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "model": "model",
        "tool": "tool",
        "own": "own work",
        "idle": "between calls",
        "still": "stands still",
    }
)
"""The meaning of the cells in the lines of agents and tools.

The bands have separate, named lines.
"""
_MOST_ROWS: Final = 200
_LONGEST_NAME: Final = 26
_DURATION: Final = 9
_TICK: Final = 12
_LEAST: Final = 40


def text_of(picture: Timeline, width: int, *, ascii: bool = False) -> str:  # noqa: A002 -- the contract's name
    """Return the whole text."""
    width = max(width, _LEAST)
    cells = _ASCII if ascii else _CELLS
    lines = _Lines(picture, width, cells)
    rows = [line for row in picture.rows[:_MOST_ROWS] for line in lines.of_row(row)]
    if len(picture.rows) > _MOST_ROWS:
        rows.append(f"{cells['more']} and {len(picture.rows) - _MOST_ROWS} more")
    legend = [f"{cells[kind]} {word}" for kind, word in _WORDS.items() if cells[kind] in lines.used]
    found = [
        *_head(picture, width, cells["more"]),
        lines.ticks(),
        *rows,
        *lines.bands(),
        *_wrapped(legend, width, "  "),
    ]
    text = "\n".join(line.rstrip() for line in found)
    return text.replace("…", "~").encode("ascii", "replace").decode() if ascii else text


def _head(picture: Timeline, width: int, more: str) -> list[str]:
    first = picture.title()
    return [
        first if len(first) <= width else first[: width - len(more)] + more,
        *_wrapped(picture.summary(), width, ", "),
    ]


def _wrapped(parts: Iterable[str], width: int, between: str) -> list[str]:
    lines: list[str] = []
    line = ""
    for part in parts:
        if line and len(line) + len(between) + len(part) > width:
            lines.append(line)
            line = ""
        line = f"{line}{between}{part}" if line else part
    return [*lines, line] if line else lines


class _Lines:
    def __init__(self, picture: Timeline, width: int, cells: Mapping[str, str]) -> None:
        self._picture, self._cells = picture, cells
        self._axis = Axis(picture.start, picture.end, picture.bands)
        names = [f"{'  ' * min(row.depth, 4)}{row.name}" for row in picture.rows[:_MOST_ROWS]]
        names += [
            f"{'  ' * min(row.depth, 4)}  {name}"
            for row in picture.rows[:_MOST_ROWS]
            for name in _tools(row)
        ]
        names += [BAND_NAMES[band.kind] for band in picture.bands]
        self._label = min(max((len(name) for name in names), default=4), _LONGEST_NAME, width // 3)
        self._duration = max(
            _DURATION, *(len(duration_text(seconds)) for seconds in self._all_seconds())
        )
        self.used: set[str] = set()  # the cells in the lines so far
        self._room = width - self._label - self._duration - 2

    def _all_seconds(self) -> Iterator[float]:
        """Yield the values at the ends of the lines."""
        yield from (self._seconds_of(row.spans) for row in self._picture.rows[:_MOST_ROWS])
        yield from (
            self._seconds_of(calls)
            for row in self._picture.rows[:_MOST_ROWS]
            for calls in _tools(row).values()
        )
        yield from (
            sum(band.end - band.start for band in self._picture.bands if band.kind == kind)
            for kind in BAND_NAMES
        )

    def _seconds_of(self, done: Iterable[TimelineSpan | TimelinePart]) -> float:
        return sum(self._picture.active(one.start, one.end) for one in done)

    def of_row(self, row: TimelineRow) -> Iterable[str]:
        indent = "  " * min(row.depth, 4)
        cells = [" "] * self._room
        for span in row.spans:
            self._fill(cells, span.start, span.end, self._cells["idle"])
        parts = [part for span in row.spans for part in span.parts]
        for part in parts:
            if part.kind != "tool":
                self._fill(cells, part.start, part.end, self._cells[part.kind])
        for band in self._picture.bands:
            self._fill(cells, band.start, band.end, self._cells["still"], only_at_work=True)
        yield self._line(indent + row.name, cells, self._seconds_of(row.spans))
        for name, calls in _tools(row).items():
            cells = [" "] * self._room
            for part in calls:
                self._fill(cells, part.start, part.end, self._cells["tool"])
            for band in self._picture.bands:
                self._fill(cells, band.start, band.end, self._cells["still"], only_at_work=True)
            yield self._line(f"{indent}  {name}", cells, self._seconds_of(calls))

    def bands(self) -> Iterable[str]:
        for kind, name in BAND_NAMES.items():
            bands = [band for band in self._picture.bands if band.kind == kind]
            if not bands:
                continue
            cells = [" "] * self._room
            for band in bands:
                self._fill(cells, band.start, band.end, self._cells[kind])
            yield self._line(name, cells, sum(band.end - band.start for band in bands))

    def ticks(self) -> str:
        cells = [" "] * (self._room + self._duration)
        free = 0
        for place, text in self._axis.ticks(max(1, self._room // _TICK)):
            at = round(place * (self._room - 1))
            if at >= free and at + len(text) <= len(cells):
                cells[at : at + len(text)] = text
                free = at + len(text) + 2
        return " " * (self._label + 1) + "".join(cells)

    def _fill(
        self, cells: list[str], start: float, end: float, what: str, *, only_at_work: bool = False
    ) -> None:
        first = min(int(self._axis.place(start) * self._room), self._room - 1)
        last = max(first, min(int(self._axis.place(end) * self._room + 0.5), self._room) - 1)
        for at in range(first, last + 1):
            if not only_at_work or cells[at] != " ":
                cells[at] = what

    def _line(self, name: str, cells: list[str], seconds: float) -> str:
        self.used.update(cells)
        return (
            f"{_cut(name, self._label):<{self._label}} {''.join(cells)} "
            f"{duration_text(seconds):>{self._duration}}"
        )


def _cut(name: str, most: int) -> str:
    indent = len(name) - len(name.lstrip())
    return name[:indent] + shortened(name[indent:], most - indent)


def _tools(row: TimelineRow) -> dict[str, list[TimelinePart]]:
    found: dict[str, list[TimelinePart]] = {}
    for span in row.spans:
        for part in span.parts:
            if part.kind == "tool":
                found.setdefault(part.name, []).append(part)
    return found
