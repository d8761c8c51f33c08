"""The cost of a cluster on Ray, compared with bare calls of a Ray actor.

A run by the link, an ask of a remote actor, the events of a run, the CPU time of driver and host,
and how soon runs continue when a host is killed.

    python -m benchmarks cluster                         some minutes
    python -m benchmarks cluster --quick                 a minute: a smoke test, without a meaning

All of it runs on this machine, with SQLite; rounds of bare Ray and of the cluster take turns.
README.md beside it says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import signal
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Final

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    import psutil
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from benchmarks.lab.catalogue import RESULTS, ROOT
    from benchmarks.lab.machine import busy_note, describe, machine_line
    from benchmarks.lab.measure import percentile
    from benchmarks.lab.report import Budget, budget_table, duration, rate, write_json
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

from offbook.runtime.cluster import Cluster

_PROGRAM: Final = "benchmarks.of_cluster.program"


@dataclass(slots=True)
class Figures:
    """Of one measure: the time of each call; of each round, calls a second and CPU of a call."""

    what: str
    who: str
    latencies: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    driver_cpu: list[float] = field(default_factory=list)
    host_cpu: list[float] = field(default_factory=list)

    @property
    def p50(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p99(self) -> float:
        return percentile(self.latencies, 99)

    @property
    def a_second(self) -> float:
        return statistics.median(self.rates) if self.rates else 0.0

    def data(self) -> dict[str, Any]:
        """Without each single call."""
        shown = {name: value for name, value in asdict(self).items() if name != "latencies"}
        return {**shown, "calls": len(self.latencies), "p50": self.p50, "p99": self.p99}

    @property
    def cpu(self) -> float:
        """Of a call, in the driver and in the host."""
        return statistics.median(map(sum, zip(self.driver_cpu, self.host_cpu, strict=True)))


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=300, help="one after the other, each round")
    parser.add_argument("--at-once", type=int, default=1_000)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help="one small round: a smoke test")
    parser.add_argument("--output", type=Path, help="the JSON file (results/cluster.json)")
    options = parser.parse_args(given)
    if options.quick:
        options.rounds, options.calls, options.at_once, options.events = 1, 30, 100, 2_000
    options.output = options.output or RESULTS / (
        "cluster-quick.json" if options.quick else "cluster.json"
    )
    return options


async def one_round(
    figures: Figures,
    call: Callable[[], Awaitable[object]],
    options: argparse.Namespace,
    host: psutil.Process,
) -> None:
    for _ in range(options.calls):
        began = perf_counter()
        await call()
        figures.latencies.append(perf_counter() - began)
    before = process_time(), _cpu(host)
    began = perf_counter()
    await asyncio.gather(*(_awaited(call) for _ in range(options.at_once)))
    figures.rates.append(options.at_once / (perf_counter() - began))
    figures.driver_cpu.append((process_time() - before[0]) / options.at_once)
    figures.host_cpu.append((_cpu(host) - before[1]) / options.at_once)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def _awaited(call: Callable[[], Awaitable[object]]) -> object:
    return await call()


async def events_round(figures: Figures, cluster: Cluster, count: int) -> None:
    began, seen = perf_counter(), 0
    async for _event in cluster.runner.query(f"events {count}", streaming=True):
        seen += 1
        if seen == 1:
            figures.latencies.append(perf_counter() - began)
    figures.rates.append(seen / (perf_counter() - began))


async def killed_round(figures: Figures, cluster: Cluster, number: int) -> None:
    """Kill one host of two under twenty runs: how long each of its runs stood still."""
    runs = [
        cluster.runner.query("steps 40", run_id=f"killed-{number}-{index}") for index in range(20)
    ]
    killed = asyncio.Event()
    reading = [asyncio.ensure_future(_gap(run, killed)) for run in runs]
    await asyncio.sleep(1)
    victim = runs[0].host
    pid = next(one.pid for one in (await cluster.stats()).hosts if one.name == victim)
    theirs = [index for index, run in enumerate(runs) if run.host == victim]
    killed.set()
    os.kill(pid, signal.SIGKILL)
    gaps = await asyncio.gather(*reading)
    figures.latencies += [gaps[index] for index in theirs]
    while {one.state for one in (await cluster.stats()).hosts} != {"up"}:
        await asyncio.sleep(0.2)


async def _gap(run: Any, killed: asyncio.Event) -> float:
    """The longest time between two events after the kill."""
    last, longest = perf_counter(), 0.0
    async for _event in run:
        now = perf_counter()
        if killed.is_set():
            longest = max(longest, now - last)
        last = now
    return longest


async def measure(options: argparse.Namespace, console: Console) -> list[Figures]:
    import ray

    @ray.remote(num_cpus=0, max_concurrency=2_000)
    class Bare:
        async def echo(self, data: bytes) -> bytes:
            return data

        async def pid(self) -> int:
            return os.getpid()

    bare = Figures("a call", "bare Ray")
    linked, asked = (
        Figures("a trivial run, not kept", "cluster"),
        Figures("an ask of an actor", "cluster"),
    )
    events, killed = (
        Figures("events of one run (latency: the first)", "cluster"),
        Figures("host killed: a run stands still", "cluster"),
    )
    limits: dict[str, Any] = {"resources": {"num_cpus": 0}, "allow": ("benchmarks.",)}
    async with Cluster.start(f"{_PROGRAM}:unkept", name="bench", hosts=1, **limits) as cluster:
        actor = Bare.remote()
        ref = await cluster.spawn(f"{_PROGRAM}:Echo")
        await asyncio.gather(actor.echo.remote(b"x"), _awaited(lambda: cluster.runner.query("hi")))
        bare_host = psutil.Process(await actor.pid.remote())
        host = psutil.Process((await cluster.stats()).hosts[0].pid)
        for number in range(options.rounds):
            console.print(f"[dim]round {number + 1} of {options.rounds}")
            await one_round(bare, lambda: actor.echo.remote(b"x"), options, bare_host)
            await one_round(linked, lambda: cluster.runner.query("hi"), options, host)
            await one_round(asked, lambda: ref.request(b"x"), options, host)
            await events_round(events, cluster, options.events)
    async with Cluster.start(
        f"{_PROGRAM}:kept", name="kept", hosts=2, sweep_seconds=1.0, **limits
    ) as cluster:
        for number in range(options.rounds):
            await killed_round(killed, cluster, number)
    return [bare, linked, asked, events, killed]


def budgets(found: list[Figures]) -> list[Budget]:
    bare, linked, asked, events, killed = found
    worst = max(killed.latencies, default=0.0)
    run, ask = linked.p50 / bare.p50, asked.p50 / bare.p50
    calls, cpu = linked.a_second / bare.a_second, linked.cpu / bare.cpu
    first = events.p50
    return [
        Budget("a run by the link, p50", "at most 1.5 times bare", f"{run:.2f}", run <= 1.5),
        Budget("runs a second, at once", "at least 2 times bare", f"{calls:.2f}", calls >= 2),
        Budget("an ask of a remote actor, p50", "at most 1.3 times bare", f"{ask:.2f}", ask <= 1.3),
        Budget("CPU of a run, at once", "at most that of a bare call", f"{cpu:.2f}", cpu <= 1),
        Budget(
            "events a second of one run",
            "at least 25,000",
            rate(events.a_second),
            events.a_second >= 25_000,
        ),
        Budget("the first event", "at most 10 ms", duration(first), first <= 0.01),
        Budget("host killed: a run continues", "within 3 s", duration(worst), worst <= 3),
    ]


_COLUMNS: Final = ("what", "by", "p50", "p99", "a second", "CPU of driver", "of host")


def rows(found: list[Figures]) -> list[tuple[str, ...]]:
    shown = []
    for one in found:
        speed = rate(one.a_second) if one.rates else ""
        cpus = (one.driver_cpu, one.host_cpu)
        cpu = [duration(statistics.median(each)) if each else "" for each in cpus]
        shown.append((one.what, one.who, duration(one.p50), duration(one.p99), speed, *cpu))
    return shown


def show(console: Console, found: list[Figures]) -> None:
    table = Table(title="A cluster compared with bare Ray", box=box.SIMPLE, title_justify="left")
    for column in _COLUMNS:
        table.add_column(column)
    for row in rows(found):
        table.add_row(*row)
    console.print(table)
    console.print(budget_table(budgets(found)))


def markdown(found: list[Figures], machine: dict[str, Any], options: argparse.Namespace) -> str:
    """The tables for people who read the results."""
    lines = ["# A cluster compared with bare Ray", "", f"{machine_line(machine)}; "]
    lines[-1] += f"{options.rounds} rounds, interleaved; {options.at_once:,} calls at once."
    if note := busy_note(machine):
        lines += ["", note]
    lines += ["", *_table(_COLUMNS, rows(found)), ""]
    verdict = {True: "reached", False: "**not reached**", None: "not measured"}
    budget_rows = [(b.what, b.target, b.figure, verdict[b.reached]) for b in budgets(found)]
    return "\n".join([*lines, *_table(("budget", "to be", "is", ""), budget_rows), ""])


def _table(columns: Sequence[str], its_rows: Sequence[Sequence[str]]) -> list[str]:
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*head, *("| " + " | ".join(row) + " |" for row in its_rows)]


def main() -> None:
    options, console, machine = arguments(), Console(), describe()
    began = dt.datetime.now(dt.UTC)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    )  # for the hosts
    with TemporaryDirectory() as folder:
        os.environ["BENCH_STORE"] = str(Path(folder) / "runs.db")
        os.environ.pop("RAY_ADDRESS", None)
        import ray

        ray.init(
            address="local",
            include_dashboard=False,
            log_to_driver=False,
            num_cpus=4,
            object_store_memory=100 * 2**20,
        )
        try:
            found = asyncio.run(measure(options, console))
        finally:
            ray.shutdown()
    show(console, found)
    machine["load_after"] = describe()["load"]
    if note := busy_note(machine):
        console.print(f"[yellow]{note}")
    options.output.with_suffix(".md").write_text(markdown(found, machine, options))
    described = {
        "benchmark": "cluster",
        "began": began.isoformat(timespec="seconds"),
        "machine": machine,
    }
    write_json(
        options.output,
        {
            **described,
            "figures": [one.data() for one in found],
            "budgets": [asdict(one) for one in budgets(found)],
        },
    )
    console.print(f"[dim]{options.output}")


if __name__ == "__main__":
    main()
