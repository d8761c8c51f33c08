"""The timeline of a run: which agents ran when, calls, waits, and losses.

A timeline is built from a running or ended run, from events, or from a store. It also shows the
time lost between a crash and a recovery. It changes no run, and claims none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import time
from typing import Protocol, runtime_checkable

from ..agent.tree import Definition, Node, build_tree
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from ..run.kept.kept_life import KeptEvent, KeptLife, KeptMark
from ..run.run import Run, seen_of
from ..system.loop_bridge import LoopBridge, refuse_on_a_loop
from ..system.system import ActorSystem
from .timeline_axis import duration_text
from .timeline_html import html_of
from .timeline_reading import Cast, bands_of, cast_of, rows_of
from .timeline_svg import svg_of
from .timeline_text import BAND_NAMES, text_of
from .timeline_values import PartKind, TimelineBand, TimelineRow, overlap

__all__ = ["LooksAtRuns", "Timeline", "timeline", "timeline_of"]


@runtime_checkable
class LooksAtRuns(Protocol):
    """The parts of a Runner that a timeline needs."""

    agent: Definition

    async def timeline(self, run_id: str) -> Timeline: ...
    def choose_system(self) -> ActorSystem: ...


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline of a run. A Jupyter notebook shows it directly."""

    run_id: str
    agent: str
    status: str | None
    """None if only events were passed."""
    start: float
    end: float
    rows: tuple[TimelineRow, ...]
    bands: tuple[TimelineBand, ...] = ()
    """The times when the whole run stood still, in order."""

    def active(self, start: float, end: float) -> float:
        """Return the seconds of a span in which the run did not stand still."""
        return max(0.0, end - start - overlap(start, end, self.bands))

    def at_work(self, start: float, end: float) -> list[tuple[float, float]]:
        """Return the span without the times in which the run stood still."""
        found: list[tuple[float, float]] = []
        for band in (band for band in self.bands if band.end > start and band.start < end):
            if band.start > start:
                found.append((start, band.start))
            start = max(start, band.end)
        return [*found, (start, end)] if end > start or not found else found

    def seconds(self, kind: PartKind) -> float:
        """Return the total time of models (`"model"`) or tools (`"tool"`).

        Concurrent calls count separately.
        """
        return sum(
            self.active(part.start, part.end)
            for row in self.rows
            for span in row.spans
            for part in span.parts
            if part.kind == kind
        )

    def title(self) -> str:
        """Return the run's identity in one line."""
        return (
            " ".join(
                part
                for part in (
                    self.agent,
                    f"run {self.run_id}" if self.run_id else "",
                    self.status or "",
                )
                if part
            )
            or "a run"
        )

    def summary(self) -> list[str]:
        """Return the key facts: the total time, and the time of each kind of work."""
        found = [duration_text(self.end - self.start)]
        found += [
            f"{name} {duration_text(seconds)}"
            for name, kind in (("models", "model"), ("tools", "tool"))
            if (seconds := self.seconds(kind))  # type: ignore[arg-type]
        ]
        for kind, name in BAND_NAMES.items():
            times = [band.end - band.start for band in self.bands if band.kind == kind]
            if times:
                found.append(f"{name} {duration_text(sum(times))}")
        return found

    def text(self, width: int = 80, *, ascii: bool = False) -> str:  # noqa: A002 -- the contract's name
        """Return text lines, for a terminal of that width; with `ascii`, in ASCII only."""
        return text_of(self, width, ascii=ascii)

    def svg(self) -> str:
        """Return an SVG drawing."""
        return svg_of(self)

    def html(self) -> str:
        """Return a self-contained HTML page."""
        return html_of(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()


def timeline(
    of: Run | RunResult | Iterable[AgentEvent | RunResult] | str,
    *,
    runner: LooksAtRuns | None = None,
) -> Timeline:
    """Build the timeline of a run, a result, the results of its parts, its events, or a stored run.

        print(timeline(run))
        Path("run.html").write_text(timeline(await run).html())
        print(timeline("order-7", runner=runner))     # or: await runner.timeline("order-7")

    The parts of a run are passed as `[first, resumed]`. A running run is shown up to now. A store
    has the most information: also the work of other processes, the waits, and the time lost when a
    process ended. For a result without its run, `runner` tells which agents run concurrently.
    """
    cast = None if runner is None else cast_of(build_tree(runner.agent))
    if isinstance(of, str):
        return _from_store(of, runner)
    if isinstance(of, Run):
        record, tree = seen_of(of)
        events = record.events if record.result is None else record.result.events
        return _of_events(events, record.started, of.status.value, cast_of(tree))
    if isinstance(of, RunResult):
        return _of_results([of], cast)
    if not isinstance(of, Iterable):
        msg = (
            "timeline: the argument must be a run, a result, events, or a run's id with "
            f"runner=, got {of!r:.80}."
        )
        raise UsageError(msg)
    given = tuple(of)
    results = [one for one in given if isinstance(one, RunResult)]
    events = tuple(one for one in given if isinstance(one, AgentEvent))
    if len(results) not in (0, len(given)) or len(events) + len(results) < len(given):
        msg = (
            "timeline([...]) must get the results of one run or its events. Pass `[first, "
            "resumed]`, or `result.events`."
        )
        raise UsageError(msg)
    return _of_results(results, cast) if results else _of_events(events, 0.0, None, cast)


def timeline_of(life: KeptLife, tree: Node | None = None) -> Timeline:
    """Build the timeline of a stored run. `tree` is that of its agents, if they are known."""
    info = life.info
    cast = None if tree is None or (info is not None and info.agent != tree.name) else cast_of(tree)
    started = None if info is None else info.started.timestamp()
    status = life.result.status.value if life.result is not None else None
    agent = "" if info is None else info.agent
    now = time() if info is not None and info.status is RunStatus.INTERRUPTED else None
    return _drawn(
        life, agent, started, info.status.value if info is not None else status, cast, now
    )


def _from_store(run_id: str, runner: LooksAtRuns | None) -> Timeline:
    instead = f"await runner.timeline({run_id!r})"
    if runner is None:
        msg = (
            f"timeline({run_id!r}): the id of a run needs the Runner whose store has it. Write "
            f"timeline({run_id!r}, runner=runner)."
        )
        raise UsageError(msg)
    call = f"timeline({run_id!r}, runner=...)"
    refuse_on_a_loop(call, instead)
    found = LoopBridge(runner.choose_system(), "timeline()").block(
        partial(runner.timeline, run_id), call, instead
    )
    assert found is not None
    return found


def _of_events(
    events: tuple[AgentEvent, ...], started: float, status: str | None, cast: Cast | None
) -> Timeline:
    run_id = events[0].run_id if events else ""
    life = KeptLife(
        run_id, tuple(KeptEvent(event, None) for event in events if event.delta is None)
    )
    agent = next((event.run_path[0] for event in events if event.run_path), "")
    return _drawn(life, agent, started or None, status, cast)


def _of_results(results: list[RunResult], cast: Cast | None) -> Timeline:
    """Build the timeline of a run that paused between these results."""
    events: list[KeptEvent] = []
    marks: list[KeptMark] = []
    for number, result in enumerate(results):
        if number and events:
            before = results[number - 1]
            marks += (
                KeptMark(before.status.value, events[-1].event.timestamp, len(events)),
                KeptMark("resumed", result.started or None, len(events)),
            )
        events += (KeptEvent(event, None) for event in result.events)
    run_id = events[0].event.run_id if events else ""
    agent = next((kept.event.run_path[0] for kept in events if kept.event.run_path), "")
    life = KeptLife(run_id, tuple(events), tuple(marks))
    return _drawn(life, agent, results[0].started or None, results[-1].status.value, cast)


def _drawn(
    life: KeptLife,
    agent: str,
    started: float | None,
    status: str | None,
    cast: Cast | None,
    now: float | None = None,
) -> Timeline:
    first = life.events[0].event.timestamp if life.events else started or 0.0
    if started is None or started > first:  # a test's clock, or one that was set back
        started = first
    last = max((kept.event.timestamp for kept in life.events), default=started)
    rows = rows_of(life.events, started, dict(life.parents), cast)
    bands = bands_of(life, now)
    agent = agent or (rows[0].name if rows else "")
    return Timeline(
        life.id,
        agent,
        status,
        started,
        max(last, started, *(band.end for band in bands)),
        rows,
        bands,
    )
