"""A timeline as a page: the drawing, and the same in numbers.

The page is one file and loads nothing. All texts of users, models and tools are escaped.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from .timeline_axis import duration_text
from .timeline_svg import svg_of
from .timeline_text import BAND_NAMES
from .timeline_values import TimelineRow

if TYPE_CHECKING:
    from .timeline import Timeline

__all__ = ["html_of"]

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 14px system-ui, sans-serif; margin: 1.5rem; }
.picture { overflow-x: auto; }
table { border-collapse: collapse; margin-top: 1rem; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
th { border-bottom: 1px solid #8888; }
summary { cursor: pointer; }
"""
_MOST: Final = 2_000


def html_of(picture: Timeline) -> str:
    """Return the whole page."""
    title = escape(f"Timeline of {picture.title()}")
    facts = escape(", ".join(picture.summary()))
    rows = "".join(_row(picture, row) for row in picture.rows[:_MOST])
    bands = "".join(
        f"<tr><td>{escape(BAND_NAMES[band.kind])}</td>{_number(band.start - picture.start)}"
        f"{_number(band.end - band.start)}<td colspan=2></td></tr>"
        for band in picture.bands[:_MOST]
    )
    parts = "".join(_part(picture, row) for row in picture.rows[:_MOST])
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title><style>{_STYLE}</style></head><body>'
        f'<h1>{title}</h1><p>{facts}</p><div class="picture">{svg_of(picture)}</div>'
        "<table><thead><tr><th>who</th><th>from</th><th>for</th><th>model</th><th>tools</th></tr></thead>"
        f"<tbody>{rows}{bands}</tbody></table><details><summary>Each model call and tool call</summary><table><thead><tr><th>who</th><th>what</th>"
        f"<th>from</th><th>for</th><th></th></tr></thead><tbody>{parts}</tbody></table></details></body></html>\n"
    )


def _row(picture: Timeline, row: TimelineRow) -> str:
    parts = [part for span in row.spans for part in span.parts]
    seconds = {
        kind: sum(picture.active(part.start, part.end) for part in parts if part.kind == kind)
        for kind in ("model", "tool")
    }
    times = f" ({len(row.spans):,} times)" if len(row.spans) > 1 else ""
    active = sum(picture.active(span.start, span.end) for span in row.spans)
    numbers = "".join(
        _number(one)
        for one in (row.spans[0].start - picture.start, active, seconds["model"], seconds["tool"])
    )
    return f"<tr><td>{escape(row.name)}{times}</td>{numbers}</tr>"


def _part(picture: Timeline, row: TimelineRow) -> str:
    found = [part for span in row.spans for part in span.parts]
    return "".join(
        f"<tr><td>{escape(row.name)}</td><td>{escape('model' if part.kind == 'model' else part.name)}{' (failed)' if part.failed else ''}</td>"
        f"{_number(part.start - picture.start)}{_number(picture.active(part.start, part.end))}<td>{escape(part.note)}</td></tr>"
        for part in found[:_MOST]
    )


def _number(seconds: float) -> str:
    return f'<td class="number">{escape(duration_text(seconds))}</td>'
