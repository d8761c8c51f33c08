"""Where sessions lie on very many hosts, on paper: balance, movement, what a loss costs each
survivor, the store's load, and two clients that disagree.

    python -m benchmarks shard_map                       1,000 hosts and 100,000 sessions: some
    minutes
    python -m benchmarks shard_map --quick               50 hosts and 5,000 sessions: whether it
    works

No Ray: the placement that clusters use, beside those that were rejected. README.md beside it says
what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import datetime as dt
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any, Final

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe
    from benchmarks.lab.report import duration, write_json
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

from offbook.runtime import MemoryStore
from offbook.runtime.cluster.limits import Limits
from offbook.runtime.cluster.placement import Placement

_POINTS: Final = 100
_RENEWALS: Final = 3
"""How often an owner says in the time of its lease that it is alive."""


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument(
        "--quick", action="store_true", help="50 hosts and 5,000 sessions: a smoke test"
    )
    parser.add_argument("--output", type=Path, help="the JSON file (results/shard_map.json)")
    options = parser.parse_args(given)
    if options.quick:
        options.hosts, options.sessions = 50, 5_000
    options.output = options.output or RESULTS / (
        "shard_map-quick.json" if options.quick else "shard_map.json"
    )
    return options


def names_of(count: int) -> list[str]:
    return [f"shop/{number}" for number in range(count)]


def hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


@cache
def placed(hosts: tuple[str, ...], keys: tuple[str, ...]) -> dict[str, str]:
    """Where each session lies: looking at all of them takes a minute."""
    return dict(zip(keys, map(rendezvous(hosts), keys), strict=True))


# --- the ways to place


def rendezvous(hosts: Sequence[str]) -> Callable[[str], str]:
    placement = Placement(hosts)

    def first(key: str) -> str:
        found = placement.first(key)
        assert found is not None
        return found

    return first


def ring(hosts: Sequence[str]) -> Callable[[str], str]:
    points = sorted((hashed(f"{host}#{point}"), host) for host in hosts for point in range(_POINTS))
    at = [point for point, _ in points]
    return lambda key: points[bisect.bisect(at, hashed(key)) % len(points)][1]


def shards(count: int) -> Callable[[Sequence[str]], Callable[[str], str]]:
    def place(hosts: Sequence[str]) -> Callable[[str], str]:
        placement = Placement(hosts)
        table = [placement.first(f"shard {number}") or "" for number in range(count)]
        return lambda key: table[hashed(key) % count]

    return place


WAYS: Final[dict[str, Callable[[Sequence[str]], Callable[[str], str]]]] = {
    "rendezvous (used)": rendezvous,
    f"ring of {_POINTS} points": ring,
    "4,096 shards": shards(4_096),
    "16,384 shards": shards(16_384),
}


def balance(way: str, hosts: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
    """How evenly the sessions lie, and what it takes to find one."""
    began = perf_counter()
    place = WAYS[way](hosts)
    made = perf_counter() - began
    began = perf_counter()
    counts = Counter(dict.fromkeys(hosts, 0))
    counts.update(map(place, keys))
    took = perf_counter() - began
    mean = len(keys) / len(hosts)
    least, most = min(counts.values()), max(counts.values())
    return {
        "way": way,
        "least": least,
        "most": most,
        "mean": mean,
        "ratio": most / mean,
        "table_seconds": made,
        "look_up_seconds": took / len(keys),
    }


def movement(hosts: Sequence[str], keys: Sequence[str]) -> list[dict[str, Any]]:
    """How many sessions move when hosts come and go, and to how many others."""
    before = placed(tuple(hosts), tuple(keys))
    tenth = max(1, len(hosts) // 10)
    cases = {
        "one comes": [*hosts, f"shop/{len(hosts)}"],
        "one goes": [*hosts[:7], *hosts[8:]],
        f"{tenth} go at once": list(hosts[tenth:]),
    }
    found = []
    for what, others in cases.items():
        after = placed(tuple(others), tuple(keys))
        moved = [key for key in keys if before[key] != after[key]]
        there = set(others)
        needless = sum(before[key] in there and after[key] in set(hosts) for key in moved)
        share = Counter(after[key] for key in moved)
        ideal = len(keys) * abs(len(others) - len(hosts)) / max(len(others), len(hosts))
        found.append(
            {
                "what": what,
                "moved": len(moved),
                "ideal": ideal,
                "to": len(share),
                "most_for_one": max(share.values(), default=0),
                "needless": needless,
            }
        )
    return found


async def disagreement(hosts: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
    """One client knows a list, another one the next.

    Each session that they place differently is claimed for both hosts at once, in a real store.
    """
    newer = (*hosts, f"shop/{len(hosts)}")
    old, new = placed(tuple(hosts), tuple(keys)), placed(newer, tuple(keys))
    apart = [key for key in keys if old[key] != new[key]]
    both, none = 0, 0
    async with MemoryStore() as store:
        for host in newer:
            await store.keep_alive(host, Limits().lease_seconds, first=True)
        for key in apart:
            granted = await asyncio.gather(*(store.claim(key, place[key]) for place in (old, new)))
            both += all(one is not None for one in granted)
            none += all(one is None for one in granted)
    return {
        "agree": len(keys) - len(apart),
        "moved_or_wait": len(apart),
        "two_writers": both,
        "no_writer": none,
    }


def store_load(hosts: int, sessions: int) -> dict[str, float]:
    """Rows that are prolonged, each second: of owners, and what it would be with a lease for each
    run. Connections, too.
    """
    seconds = Limits().lease_seconds
    sweeps = hosts / Limits().sweep_seconds
    return {
        "owners": _RENEWALS * hosts / seconds,
        "leases": _RENEWALS * sessions / seconds,
        "looks": sweeps,
        "connections": float(hosts),
    }


def show(console: Console, found: dict[str, Any]) -> None:
    table = Table(title="Balance", box=box.SIMPLE, title_justify="left")
    for column in ("way", "least", "most", "most/mean", "a look-up", "its table"):
        table.add_column(column)
    for one in found["balance"]:
        row = (
            str(one["least"]),
            str(one["most"]),
            f"{one['ratio']:.2f}",
            duration(one["look_up_seconds"]),
            duration(one["table_seconds"]),
        )
        table.add_row(one["way"], *row)
    console.print(table)
    table = Table(title="Movement, with rendezvous hashing", box=box.SIMPLE, title_justify="left")
    for column in (
        "what",
        "sessions move",
        "ideal",
        "to hosts",
        "most for one",
        "moved without need",
    ):
        table.add_column(column)
    for one in found["movement"]:
        table.add_row(
            one["what"],
            str(one["moved"]),
            f"{one['ideal']:.0f}",
            str(one["to"]),
            str(one["most_for_one"]),
            str(one["needless"]),
        )
    console.print(table)
    load, two = found["store"], found["disagreement"]
    rows = (
        f"{load['owners']:,.0f} rows a second are prolonged (a lease for each run: "
        f"{load['leases']:,.0f})"
    )
    console.print(
        f"The store: {rows}, {load['looks']:,.0f} looks a second, {load['connections']:,.0f} "
        "connections.",
        soft_wrap=True,
    )
    apart = f"{two['moved_or_wait']:,} are answered 'moved', or wait for their turn in the store"
    console.print(
        f"Two clients, one of which does not know the newest host: {two['agree']:,} sessions "
        f"lie where both think, {apart}.",
        soft_wrap=True,
    )
    console.print(
        f"  Claimed for both hosts at once: granted to both {two['two_writers']}, to none "
        f"{two['no_writer']}."
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    hosts, keys = names_of(options.hosts), [f"user-{number}" for number in range(options.sessions)]
    return {
        "balance": [balance(way, hosts, keys) for way in WAYS],
        "movement": movement(hosts, keys),
        "disagreement": asyncio.run(disagreement(hosts, keys)),
        "store": store_load(options.hosts, options.sessions),
    }


def main() -> None:
    options, console = arguments(), Console()
    began = dt.datetime.now(dt.UTC)
    found = run(options)
    show(console, found)
    described = {
        "benchmark": "shard_map",
        "began": began.isoformat(timespec="seconds"),
        "hosts": options.hosts,
        "sessions": options.sessions,
    }
    write_json(options.output, {**described, "machine": describe(), **found})
    console.print(f"[dim]{options.output}")


if __name__ == "__main__":
    main()
