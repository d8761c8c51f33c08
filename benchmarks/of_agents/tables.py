"""The tables of `agents.py` beside the rounds: workflows that wait for their models, and
measurements in processes of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from benchmarks.contenders.agents_base import REFERENCE
from benchmarks.lab.measure import Series
from benchmarks.lab.report import Measure, amount, duration
from benchmarks.of_agents.budgets import Figures

__all__ = ["process_tables", "waits_table"]


def waits_table(
    title: str,
    measures: Sequence[Measure],
    series: Iterable[Series],
    titles: Mapping[str, str],
    differs: Mapping[tuple[str, str], str],
) -> Table:
    """Workflows: the time beyond that of their models."""
    table = _table(title, ("measure", "contender", "beyond: median", "slowest", "CPU"), left=2)
    found = {(one.measure, one.contender): one for one in series}
    notes: dict[str, int] = {}
    for measure in measures:
        for contender, name in titles.items():
            one = found.get((measure.key, contender))
            if one is not None:
                note = differs.get((measure.key, contender))
                mark = f" [{notes.setdefault(note, len(notes) + 1)}]" if note else ""
                table.add_row(
                    measure.title,
                    _name(contender, name + mark),
                    duration(one.p50),
                    duration(one.p99),
                    duration(one.cpu_per_operation),
                )
        table.add_section()
    if notes:
        table.caption, table.caption_justify = (
            Text("\n".join(f"[{number}] {note}" for note, number in notes.items())),
            "left",
        )
    return table


def process_tables(figures: Figures, titles: Mapping[str, str]) -> list[Table]:
    """The tables that have rows."""
    tables = []
    if figures.definitions:
        table = _table(
            "W1 Definitions, each row in a process of its own",
            ("definitions", "contender", "tool", "each"),
            left=3,
        )
        for defined in figures.definitions:
            tool = "of its own" if defined.own_tool else "shared"
            table.add_row(
                f"{defined.count:,}",
                _name(defined.contender, titles[defined.contender]),
                tool,
                f"{defined.bytes_each:,.0f} B",
            )
        tables.append(table)
    if figures.sessions:
        columns = ("sessions", "contender", "wall", "of it the model's", "CPU", "each", "threads")
        table = _table(
            "W6 Sessions that wait for their model at once, each row in a process of its own",
            columns,
            left=2,
        )
        for one in figures.sessions:
            times = (
                duration(one.wall_seconds),
                duration(one.model_seconds),
                duration(one.cpu_seconds),
            )
            table.add_row(
                f"{one.count:,}",
                _name(one.contender, titles[one.contender]),
                *times,
                amount(one.bytes_each),
                str(one.threads),
            )
        tables.append(table)
    for counted in figures.objects:
        table = _table(
            f"W6 Objects that the garbage collector looks at: {counted.what}, of {counted.count:,}",
            ("type", "each"),
            left=1,
        )
        for kind, number in counted.by_type.items():
            table.add_row(kind, f"{number:g}")
        table.add_section()
        table.add_row("all", f"{counted.tracked:g}")
        tables.append(table)
    if figures.imports:
        table = _table(
            "W8 Imports, each in a fresh interpreter",
            ("module", "median", "slowest", "CPU", "brings"),
            left=1,
        )
        for imported in figures.imports:
            times = (
                duration(imported.seconds),
                duration(imported.slowest),
                duration(imported.cpu_seconds),
            )
            table.add_row(
                _name(imported.contender, imported.module),
                *times,
                ", ".join(imported.brings) or "-",
            )
        tables.append(table)
    return tables


def _table(title: str, columns: Sequence[str], *, left: int) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=box.SIMPLE_HEAD,
    )
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < left else "right", no_wrap=True)
    return table


def _name(contender: str, text: str) -> Text:
    return Text(text, style="green" if contender == REFERENCE else "")
