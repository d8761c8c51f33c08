"""Change a cluster: start hosts, drain hosts, roll to another version.

New hosts are up before old ones leave. A host is ended only after it was asked to drain, unless it
cannot be asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack, unpack
from ...errors import UsageError
from ...log import loggers
from ..control import read_control
from ..errors import ClusterError, VersionMismatch
from ..spec import ClusterSpec
from ..transport import HostGone

if TYPE_CHECKING:
    from ..transport import Transport
    from .routes import Routes

__all__ = ["Changes", "check_count"]

_START_SECONDS: Final = 120.0
"""Seconds that a host may take until it is up or reports a problem."""


def check_count(hosts: object, what: str) -> int:
    if not isinstance(hosts, int) or isinstance(hosts, bool) or hosts < 1:
        msg = f"{what} must be a number of hosts, 1 or more, got {hosts!r}."
        raise UsageError(msg)
    return hosts


def _number(name: str) -> int:
    return int(name.rpartition("/")[2])


class Changes:
    """The changes of one cluster by one client."""

    def __init__(self, transport: Transport, cluster: str) -> None:
        self._transport = transport
        self._cluster = cluster

    async def names(self) -> list[str]:
        """Return the names of the hosts, ordered by number."""
        return sorted(await self._transport.names(self._cluster), key=_number)

    async def start(self, spec: ClusterSpec, names: Sequence[str]) -> None:
        """Start hosts, and wait until all are up. If one fails, end all of them."""
        await asyncio.gather(*(self._transport.start(name, spec.pack()) for name in names))
        results = await asyncio.gather(*map(self._started, names), return_exceptions=True)
        problems = [one for one in results if isinstance(one, BaseException)]
        if problems:
            await asyncio.gather(*(self._end(name) for name in names))
            raise problems[0]

    async def _started(self, name: str) -> None:
        try:
            async with asyncio.timeout(_START_SECONDS):
                problem = unpack(await self._transport.endpoint(name).call("started", b""))
        except TimeoutError:
            msg = (
                f"host {name} did not start within {_START_SECONDS:g} s. If the nodes have "
                "no room for it, pass fewer hosts or smaller resources."
            )
            raise ClusterError(msg) from None
        except HostGone as gone:
            msg = (
                f"host {name!r} ended before it was ready: {gone} Its log on that node shows the "
                "reason."
            )
            raise ClusterError(msg) from gone
        if problem is not None:
            raise problem

    async def spec(self, names: Sequence[str]) -> ClusterSpec:
        """Return the spec that the newest responsive host was started with."""
        for name in sorted(names, key=_number, reverse=True):
            with contextlib.suppress(HostGone, TimeoutError):
                async with asyncio.timeout(5):
                    return ClusterSpec.read(
                        read_control(await self._transport.endpoint(name).control()).spec
                    )
        msg = (
            f"cluster {self._cluster!r} has {len(names)} hosts, and none answers. Check the "
            "nodes with `ray status`, or start the cluster again."
        )
        raise ClusterError(msg)

    async def starter(self, name: str) -> str:
        """Return the id of the program that has started that host."""
        return (await self.spec([name])).starter

    def check_same(self, known: ClusterSpec, wanted: ClusterSpec) -> None:
        """Raise if the running cluster has another factory or version."""
        if known.factory != wanted.factory:
            msg = (
                f"the cluster {wanted.cluster!r} already exists and runs "
                f"{known.factory!r}, not {wanted.factory!r}. Two programs must not share a "
                "name: pass another name, or stop that cluster."
            )
            raise VersionMismatch(msg)
        if known.version != wanted.version:
            msg = (
                f"cluster {wanted.cluster!r} runs version {known.version!r}, not "
                f"{wanted.version!r}. Call roll({wanted.version!r}) to change it."
            )
            raise VersionMismatch(msg)

    async def scale(self, routes: Routes, hosts: int, timeout: float) -> None:
        """Change the number of hosts."""
        names = await self.names()
        spec = await self.spec(names)
        if hosts > len(names):
            await self.start(spec, self._free_names(names, hosts - len(names)))
        elif hosts < len(names):
            await self.drain(routes, names[hosts:], timeout)

    async def drain(
        self, routes: Routes, names: Sequence[str], timeout: float
    ) -> dict[str, dict[str, Any]]:
        """Drain these hosts, and end them. The other hosts are notified to recover their runs."""
        reports = dict(
            zip(
                names,
                await asyncio.gather(*(self._drain(name, timeout) for name in names)),
                strict=True,
            )
        )
        others = [name for name in routes.hosts.names() if name not in reports]
        for name in others:
            routes.link(name).post("recover", {}, pack(None))
        return reports

    async def replace(self, names: Sequence[str], node: str) -> None:
        """Start as many hosts elsewhere. They start as soon as there is room for them."""
        if not names:
            return
        known = await self.names()
        spec = await self.spec(known)
        free = self._free_names(known, len(names))
        start = self._transport.start
        await asyncio.gather(*(start(name, spec.pack(), avoid=node) for name in free))

    def _free_names(self, known: Sequence[str], count: int) -> list[str]:
        """Return the names of new hosts: the lowest free numbers."""
        taken = set(map(_number, known))
        free = (number for number in range(count + len(known)) if number not in taken)
        return [f"{self._cluster}/{next(free)}" for _ in range(count)]

    async def _drain(self, name: str, timeout: float) -> dict[str, Any]:
        report: dict[str, Any] = {"drained": False}
        try:
            async with asyncio.timeout(timeout + 5):
                report = unpack(await self._transport.endpoint(name).call("drain", pack(timeout)))
        except (HostGone, TimeoutError) as error:
            loggers.cluster.warning(
                "Host %s could not be drained (%s). It is ended, and other hosts take over its "
                "runs.",
                name,
                error or "no answer in time",
            )
        await self._end(name)
        return report

    async def _end(self, name: str) -> None:
        """End the process of a host, in good order if possible."""
        with contextlib.suppress(HostGone, TimeoutError):
            async with asyncio.timeout(15):
                await self._transport.endpoint(name).call("end", b"")
        await self._transport.end(name, again=False)

    async def roll(self, routes: Routes, spec: ClusterSpec, max_surge: int, timeout: float) -> None:
        """Start hosts of another version first, then drain the old ones, a few at a time."""
        old = await self.names()
        number = max(map(_number, old), default=-1) + 1
        while old:
            leaving, old = old[:max_surge], old[max_surge:]
            coming = [f"{self._cluster}/{number + index}" for index in range(len(leaving))]
            number += len(leaving)
            await self.start(spec, coming)
            await self.drain(routes, leaving, timeout)
