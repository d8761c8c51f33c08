"""The command: `python -m offbook.runtime.cluster start|status|scale|drain|roll|stop|follow`.

It offers the operations of `Cluster`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import OffbookError
from .client.cluster import Cluster
from .client.stats import ClusterStats

__all__ = ["main"]

_COLUMNS = (
    "name",
    "state",
    "version",
    "node",
    "pid",
    "runs",
    "waiting",
    "actors",
    "queued",
    "recovered",
    "orphans",
    "resident",
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m offbook.runtime.cluster", description="A cluster of hosts on Ray."
    )
    words = parser.add_subparsers(dest="word", required=True)

    def word(name: str, about: str) -> argparse.ArgumentParser:
        one = words.add_parser(name, help=about, description=about)
        default = os.environ.get("OFFBOOK_CLUSTER")
        one.add_argument(
            "--name",
            default=default,
            required=default is None,
            help="of the cluster (OFFBOOK_CLUSTER)",
        )
        return one

    start = word("start", "Start a cluster, and leave it running.")
    start.add_argument(
        "factory", help="module:attribute of an async context manager that yields a Runner"
    )
    start.add_argument("--hosts", type=int, default=1)
    start.add_argument("--version")
    start.add_argument("--cpus", type=float, default=1.0, help="that Ray reserves for each host")
    start.add_argument(
        "--allow",
        action="append",
        help="a prefix of modules whose actors may be spawned; repeat it for several",
    )
    word("status", "What the hosts do.").add_argument("--json", action="store_true")
    word("scale", "Have so many hosts.").add_argument("hosts", type=int)
    drain = word("drain", "Have a host give up its work, and end.")
    which = drain.add_mutually_exclusive_group(required=True)
    which.add_argument("host", nargs="?", help="such as shop/3")
    which.add_argument(
        "--here", action="store_true", help="the hosts of this node (a preStop hook)"
    )
    which.add_argument("--node", help="the hosts of the node with this id, as status shows it")
    drain.add_argument(
        "--replace", action="store_true", help="start as many hosts elsewhere, when there is room"
    )
    drain.add_argument("--timeout", type=float, default=30.0)
    roll = word("roll", "Change to another version, host by host.")
    roll.add_argument("version")
    roll.add_argument("--factory")
    roll.add_argument("--max-surge", type=int, default=1)
    word("stop", "Drain all hosts, and end them.").add_argument(
        "--timeout", type=float, default=30.0
    )
    follow = word("follow", "Show the events of a run until it ends.")
    follow.add_argument("run_id")
    follow.add_argument("--after", type=int, default=0)
    return parser


async def _do(said: argparse.Namespace) -> int:
    if said.word == "start":
        cluster = Cluster.start(
            said.factory,
            name=said.name,
            hosts=said.hosts,
            version=said.version,
            resources={"num_cpus": said.cpus},
            allow=said.allow,
            detach=True,
        )
        await cluster.open()
        try:
            _show(await cluster.stats(), as_json=False)
        finally:
            await cluster.close()  # the hosts continue to run
        return 0
    async with Cluster.connect(said.name) as cluster:
        if said.word == "status":
            stats = await cluster.stats()
            _show(stats, as_json=said.json)
            return 0 if all(one.state == "up" for one in stats.hosts) else 1
        if said.word == "scale":
            await cluster.scale(said.hosts)
        elif said.word == "drain":
            node = cluster.node if said.here else said.node
            drained = cluster.drain(said.host, said.timeout, node=node, replace=said.replace)
            _say(await drained)
        elif said.word == "roll":
            await cluster.roll(said.version, said.factory, max_surge=said.max_surge)
        elif said.word == "stop":
            await cluster.stop(said.timeout)
            return 0
        else:
            return await _follow(cluster, said.run_id, said.after)
        _show(await cluster.stats(), as_json=False)
    return 0


async def _follow(cluster: Cluster, run_id: str, after: int) -> int:
    run = cluster.follow(run_id, after=after)
    try:
        async for event in run:
            _say(str(event))
    finally:
        result = await run
    _say(f"{run_id}: {result.status}")
    return 0 if result.error is None else 1


def _show(stats: ClusterStats, *, as_json: bool) -> None:
    if as_json:
        _say(stats.data())
        return
    rows = [
        _COLUMNS,
        *(tuple(_text(name, getattr(one, name)) for name in _COLUMNS) for one in stats.hosts),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in stats.hosts:
        if one.problem is not None:
            _say(f"{one.name}: {one.problem}")


def _text(name: str, value: Any) -> str:
    if name == "resident":
        return f"{value / 1e6:.0f} MB"
    return str(value)[:12] if name == "node" else "-" if value is None else str(value)


def _say(value: object) -> None:
    sys.stdout.write((value if isinstance(value, str) else json.dumps(value)) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Return the exit status."""
    said = _parser().parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))  # finds a factory in this folder, like `python -m`
    try:
        return asyncio.run(_do(said))
    except OffbookError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
