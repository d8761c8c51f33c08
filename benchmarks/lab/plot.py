"""One page of small bar charts on a log scale, all with the same rows: for each contender a bar to
its p50, and a line on to its p99.

The page is written as SVG and as PNG. This file must never know of actors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "FAINT",
    "INK",
    "PAPER",
    "RULE",
    "Bar",
    "Panel",
    "Row",
    "draw",
    "page_style",
    "save_page",
]

_COLOURS = 96  # of a PNG
_ROW = 0.235  # inches
INK, FAINT, PAPER, RULE = "#1c2733", "#7a8794", "#fcfbf9", "#e4e0da"


@dataclass(frozen=True, slots=True)
class Row:
    """A contender, the same in all panels."""

    title: str
    colour: str
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """The figures of one contender in one panel."""

    value: float
    worse: float | None = None  # where the line ends
    remark: str = ""  # behind the figures


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    subtitle: str
    bars: Mapping[str, Bar | str]  # by row; a string says why there is none
    show: Callable[[float], str]  # how its figures are written
    columns: tuple[str, str, str]  # above the figures: of `value`, of `worse`, of `remark`


def draw(
    path: Path,
    *,
    title: str,
    subtitle: str,
    rows: Mapping[str, Row],
    panels: Sequence[Panel],
    footnote: str,
    across: int = 2,
) -> list[Path]:
    """Draw the page, and return what was written: `path` with the suffixes .svg and .png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(page_style()):
        down = math.ceil(len(panels) / across)
        row_height = _ROW
        height = down * (len(rows) * row_height + 0.98) + 1.5
        figure, axes = plt.subplots(
            down, across, figsize=(7.8 * across, height), squeeze=False, facecolor=PAPER
        )
        figure.subplots_adjust(
            left=0.135,
            right=0.83,
            top=1 - 1.86 / height,
            bottom=0.62 / height,
            wspace=1.31,
            hspace=0.98 / (len(rows) * row_height),
        )
        figure.text(0.02, 1 - 0.42 / height, title, fontsize=19, fontweight="bold", va="center")
        figure.text(0.02, 1 - 0.80 / height, subtitle, fontsize=10, color=FAINT, va="center")
        figure.text(0.02, 0.22 / height, footnote, fontsize=8, color=FAINT, va="center")
        for index in range(down * across):
            ax = axes[index // across][index % across]
            if index < len(panels):
                _panel(ax, panels[index], rows)
            else:
                ax.set_axis_off()
        written = save_page(figure, path, dpi=100)
        plt.close(figure)
    return written


def save_page(figure: Any, path: Path, *, dpi: int) -> list[Path]:
    """Write the page as SVG and as PNG, the PNG in few colours: it has no more, and is a quarter as
    large.
    """
    from PIL import Image

    written = [path.with_suffix(".svg"), path.with_suffix(".png")]
    path.parent.mkdir(parents=True, exist_ok=True)
    for target in written:
        figure.savefig(target, dpi=dpi, facecolor=PAPER)
    with Image.open(written[1]) as picture:
        few = picture.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(written[1], optimize=True)
    return written


def page_style() -> Any:
    """The letters of all pages."""
    return {
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "svg.fonttype": "none",
        "text.color": INK,
    }


def _panel(ax: Any, panel: Panel, rows: Mapping[str, Row]) -> None:
    bars = [bar for bar in panel.bars.values() if isinstance(bar, Bar)]
    # What is lost in the noise, as the memory of a few idle actors in a short run, may come out as
    # nothing: it has no place on a scale of powers.
    lowest = 10 ** math.floor(
        math.log10(min((bar.value for bar in bars if bar.value > 0), default=1.0)) - 0.15
    )
    highest = max(10 * lowest, *(bar.worse or bar.value for bar in bars)) * 1.25
    ax.set_xscale("log")
    ax.set_xlim(lowest, highest)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_facecolor(PAPER)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["left"].set_color(FAINT)
    decades = [
        10.0**power
        for power in range(round(math.log10(lowest)), math.floor(math.log10(highest)) + 1)
    ]
    step = math.ceil(len(decades) / 6)
    ax.set_xticks(
        decades[::step],
        [panel.show(tick).replace(".00", "").replace(".0", "") for tick in decades[::step]],
    )
    ax.minorticks_off()
    ax.tick_params(axis="x", length=0, labelsize=7.5, labelcolor=FAINT)
    ax.tick_params(axis="y", length=0, pad=6)
    ax.grid(axis="x", color=RULE, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_yticks(range(len(rows)), [row.title for row in rows.values()])
    for label, row in zip(ax.get_yticklabels(), rows.values(), strict=True):
        label.set_fontweight("bold" if row.bold else "normal")
    inch = 1 / (len(rows) * _ROW)  # in heights of the panel
    ax.text(
        0,
        1 + 0.423 * inch,
        panel.title,
        transform=ax.transAxes,
        fontsize=12,
        fontweight="bold",
        va="bottom",
    )
    ax.text(
        0,
        1 + 0.345 * inch,
        panel.subtitle,
        transform=ax.transAxes,
        fontsize=8.5,
        color=FAINT,
        va="top",
    )
    where = ax.get_yaxis_transform()  # x in fractions of the panel, y in rows
    for x, column in zip((1.19, 1.40, 1.65), panel.columns, strict=True):
        ax.text(x, -0.95, column, transform=where, fontsize=8, color=FAINT, ha="right", va="center")
    for y, (key, row) in enumerate(rows.items()):
        _bar(
            ax,
            panel.bars.get(key, "not measured"),
            row,
            y=y,
            lowest=lowest,
            show=panel.show,
            where=where,
        )


def _bar(
    ax: Any,
    bar: Bar | str,
    row: Row,
    *,
    y: int,
    lowest: float,
    show: Callable[[float], str],
    where: Any,
) -> None:
    if isinstance(bar, str):
        ax.text(
            0.012, y, bar, transform=where, fontsize=8, color=FAINT, style="italic", va="center"
        )
        return
    weight = "bold" if row.bold else "normal"
    ax.barh(
        y, max(0.0, bar.value - lowest), left=lowest, height=0.64, color=row.colour, linewidth=0
    )
    ax.text(1.19, y, show(bar.value), transform=where, fontweight=weight, ha="right", va="center")
    ax.text(1.65, y, bar.remark, transform=where, ha="right", va="center", color=INK)
    if bar.worse is not None:
        ax.plot(
            [bar.value, bar.worse],
            [y, y],
            color=row.colour,
            linewidth=2.2,
            solid_capstyle="butt",
            alpha=0.55,
        )
        ax.plot([bar.worse], [y], marker="|", markersize=8, markeredgewidth=2.2, color=row.colour)
        ax.text(1.40, y, show(bar.worse), transform=where, color=FAINT, ha="right", va="center")
