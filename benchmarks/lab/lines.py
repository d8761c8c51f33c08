"""A page of line charts: each panel has lines over a size, points for what was measured, and a word
on what they say. It must never know of agents or actors.

The page is written as SVG and as PNG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.lab.plot import FAINT, INK, PAPER, RULE, page_style, save_page

__all__ = ["Chart", "Line", "draw_lines"]


@dataclass(frozen=True, slots=True)
class Line:
    """Points, by size. A line without a mark is one that was computed: a fit, an asymptote."""

    title: str
    points: Sequence[tuple[float, float]]
    colour: str
    measured: bool = True
    low_high: Sequence[tuple[float, float]] = ()  # the spread of each point


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    subtitle: str
    lines: Sequence[Line]
    across: str  # what the sizes are
    show: Callable[[float], str]  # how its figures are written
    upright: tuple[float, str] | None = None  # a size that stands out, and its name
    binary: bool = False  # whether its figures are bytes, whose grid is of powers of two


def draw_lines(
    path: Path,
    *,
    title: str,
    subtitle: str,
    charts: Sequence[Chart],
    footnote: str,
    columns: int = 2,
) -> list[Path]:
    """Draw the page, and return what was written: `path` with the suffixes .svg and .png."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with mpl.rc_context(page_style()):
        down = math.ceil(len(charts) / columns)
        height = down * 3.7 + 1.6
        figure, axes = plt.subplots(
            down, columns, figsize=(6.6 * columns, height), squeeze=False, facecolor=PAPER
        )
        figure.subplots_adjust(
            left=0.075,
            right=0.965,
            top=1 - 1.75 / height,
            bottom=0.95 / height,
            wspace=0.28,
            hspace=0.72,
        )
        figure.text(0.02, 1 - 0.42 / height, title, fontsize=19, fontweight="bold", va="center")
        figure.text(0.02, 1 - 0.80 / height, subtitle, fontsize=10, color=FAINT, va="center")
        figure.text(0.02, 0.22 / height, footnote, fontsize=8, color=FAINT, va="center")
        for index in range(down * columns):
            ax = axes[index // columns][index % columns]
            if index < len(charts):
                _chart(ax, charts[index])
            else:
                ax.set_axis_off()
        written = save_page(figure, path, dpi=110)
        plt.close(figure)
    return written


def _chart(ax: Any, chart: Chart) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    ax.set_facecolor(PAPER)
    ax.set_xscale("log")
    ax.set_yscale("log")
    sizes = sorted({x for line in chart.lines for x, _ in line.points})
    figures = [y for line in chart.lines for _, y in line.points] + [
        y for line in chart.lines for pair in line.low_high for y in pair
    ]
    lowest, highest = min(figures), max(figures)  # above zero: the axis is logarithmic
    middle, span = (
        math.sqrt(lowest * highest),
        max(highest / lowest, 20.0),
    )  # what is flat must look flat: at least a good decade is shown
    ax.set_ylim(middle / math.sqrt(span) / 1.5, middle * math.sqrt(span) * 1.5)
    ax.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
    for line in chart.lines:
        xs, ys = [x for x, _ in line.points], [y for _, y in line.points]
        if line.measured:
            ax.plot(
                xs,
                ys,
                color=line.colour,
                marker="o",
                markersize=4.5,
                linewidth=1.8,
                label=line.title,
            )
            for x, (low, high) in zip(xs, line.low_high, strict=False):
                ax.plot([x, x], [low, high], color=line.colour, linewidth=1.2, alpha=0.6)
        else:
            ax.plot(
                xs, ys, color=line.colour, linestyle=(0, (4, 3)), linewidth=1.2, label=line.title
            )
    if chart.upright is not None:
        where, name = chart.upright
        ax.axvline(where, color=INK, linewidth=1.0, linestyle=":")
        ax.text(
            where,
            ax.get_ylim()[1],
            f" {name}",
            fontsize=8.5,
            va="top",
            ha="left" if where < math.sqrt(sizes[0] * sizes[-1]) else "right",
        )
    ax.xaxis.set_major_locator(FixedLocator(_apart(sizes)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda y, _: chart.show(y).replace(".00", "").replace(".0", ""))
    )
    decades = math.log10(ax.get_ylim()[1] / ax.get_ylim()[0])
    ax.yaxis.set_major_locator(
        LogLocator(base=2.0, numticks=7)
        if chart.binary
        else LogLocator(subs=(1, 2, 5) if decades < 2.2 else (1,), numticks=12)
    )
    ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(axis="y", color=RULE, linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(length=0, pad=5)
    ax.set_xlabel(chart.across, color=FAINT)
    ax.set_title(
        chart.title,
        fontsize=12,
        fontweight="bold",
        loc="left",
        pad=12 + 12 * len(chart.subtitle.splitlines()),
    )
    ax.text(
        0, 1.045, chart.subtitle, transform=ax.transAxes, fontsize=8.8, color=FAINT, va="bottom"
    )
    if len(chart.lines) > 1:
        ax.legend(fontsize=8.5, loc="best", facecolor=PAPER, edgecolor="none", framealpha=0.85)


def _apart(sizes: Sequence[float]) -> list[float]:
    """Those sizes whose names do not run into each other."""
    shown = [sizes[0]]
    for size in sizes[1:]:
        if size >= shown[-1] * 1.8:
            shown.append(size)
    return shown
