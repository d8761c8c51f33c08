"""The recovery of work that lost hosts and processes left.

A host that is reported lost is queried. If it does not answer, or another incarnation of it does,
its owner is revoked in the store. From then on, no write of the old incarnation succeeds, so it
does not matter whether it was really dead. Then its runs are taken over.

Runs are taken over only after the revocation, and an incarnation that answers is never revoked.
Each host recovers its share of the runs.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...durability.store_keys import cluster_host_key
from ...errors import StoreError
from ...log import loggers
from ...tracing import span
from ..control import read_control
from ..transport import HostGone

if TYPE_CHECKING:
    from ...durability.unfinished_run import UnfinishedRun
    from ...run.run import Run
    from ...runner import Runner
    from ...stores import JournalStore
    from ..host_list import ListKeeper
    from ..spec import ClusterSpec
    from ..transport import Transport

__all__ = ["Takeover"]

_KNOWN: Final = 1_000
"""Lost incarnations that are remembered, so that each is handled once."""

_BROKEN_SECONDS: Final = 0.5
"""Seconds that a host may take to answer if its link to a client broke."""


class Takeover:
    """The takeovers by one incarnation of a host."""

    def __init__(
        self,
        spec: ClusterSpec,
        name: str,
        runner: Runner,
        store: JournalStore,
        hosts: ListKeeper,
        transport: Transport,
    ) -> None:
        self._spec = spec
        self._name = name
        self._runner = runner
        self._store = store
        self._hosts = hosts
        self._transport = transport
        self._lost: dict[str, asyncio.Task[None]] = {}  # by incarnation, the latest ones
        # The checks of other hosts that are in progress.
        self._looking: dict[str, asyncio.Task[None]] = {}
        # Hosts of the list that did not answer the last check.
        self._away: set[str] = set()
        # Runs that belong to other hosts, with the number of consecutive checks that found them
        # without a process.
        self._seen: dict[str, int] = {}
        self._at_work: dict[str, Run] = {}  # runs that were taken over
        self.recovered = 0
        self.orphans = 0

    def __len__(self) -> int:
        return len(self._at_work)

    async def look_for(self, lost: list[Any], run_id: str) -> None:
        """Take over from a host that a client reports as lost: name, incarnation, silent or not.

        Returns when all available runs have been taken.
        """
        host, incarnation, silent = lost
        looking = self._lost.get(incarnation)
        if looking is None:
            while len(self._lost) >= _KNOWN:
                del self._lost[next(iter(self._lost))]
            looking = self._lost[incarnation] = asyncio.ensure_future(
                self._take_over(host, incarnation, run_id, silent=silent)
            )
        elif looking.done() and looking.exception() is not None:
            del self._lost[incarnation]
            await self.look_for(lost, run_id)
            return
        await asyncio.shield(looking)

    async def _take_over(self, host: str, incarnation: str, run_id: str, *, silent: bool) -> None:
        with span("cluster.recover", host=host):
            if not await self._is_gone(host, incarnation, silent=silent):
                return
            await self._revoke(host, incarnation)
            await self.recover(also=run_id)

    async def _is_gone(self, host: str, incarnation: str, *, silent: bool) -> bool:
        """Return whether that incarnation of the host is over. One that hangs is ended."""
        limits = self._spec.limits
        try:
            # A silent host may use its processor without switching threads, so it has as much time
            # as one whose event loop is blocked.
            async with asyncio.timeout(
                limits.hang_seconds if silent else min(_BROKEN_SECONDS, limits.suspect_seconds)
            ):
                said = read_control(await self._transport.endpoint(host).control())
        except HostGone:
            self._away.add(host)
            return True
        except TimeoutError:
            self._away.add(host)
            if not silent:
                # The connection broke for a client, too: Ray is most probably restarting the host.
                return True
            await self._end_hung(
                host, incarnation, f"it has not answered for {limits.hang_seconds:g} s"
            )
            return True
        if said.incarnation == incarnation and said.idle < limits.hang_seconds:
            return False
        if said.incarnation == incarnation:
            await self._end_hung(
                host, incarnation, f"its loop has stood still for {said.idle:.0f} s"
            )
        return True

    async def _end_hung(self, host: str, incarnation: str, why: str) -> None:
        loggers.cluster.error("Host %s hangs: %s. It is ended, and started again.", host, why)
        # Its process may hold locks of the store that the revocation waits for. While Ray's head is
        # unavailable, it cannot be ended, but it can be revoked.
        ending = asyncio.ensure_future(self._transport.end(host, again=True))
        try:
            await self._revoke(host, incarnation)
        finally:
            (problem,) = await asyncio.gather(ending, return_exceptions=True)
            if isinstance(problem, Exception):
                loggers.cluster.warning("Host %s could not be ended: %s", host, problem)

    async def _revoke(self, host: str, incarnation: str) -> None:
        """Revoke the owner of that incarnation, unless another one has taken its place."""
        key = cluster_host_key(self._spec.cluster, host)
        owner = await self._store.holder(key)
        if owner is not None and await self._store.get(key) == incarnation.encode():
            loggers.cluster.warning("Host %s is lost: its owner %s is revoked.", host, owner)
            await self._store.revoke(owner)

    async def recover(self, also: str = "") -> None:
        """Continue the unfinished runs that no host runs and that are this host's share."""
        seen: dict[str, int] = {}
        runs = await self._runner.recover(
            max_attempts=self._spec.limits.max_attempts,
            where=lambda run: self._is_mine(run, also, seen),
        )
        self._seen = seen
        self.orphans = len(seen)
        for run in runs:
            self.recovered += 1
            self._work_on(run)
        if runs:
            loggers.cluster.info("%d runs are continued on host %s.", len(runs), self._name)

    async def retry(self, run_id: str) -> None:
        """Continue a run that is stuck."""
        self._work_on(await self._runner.retry(run_id))

    def _work_on(self, run: Run) -> None:
        self._at_work[run.id] = run
        run.when_finished(partial(self._at_work.pop, run.id, None))

    def _is_mine(self, run: UnfinishedRun, also: str, seen: dict[str, int]) -> bool:
        """Return whether this host continues the run.

        The first host for its key does. If it has not done so by the next check, the second host
        does, and so on.
        """
        if run.version != self._spec.version and self._spec.pin:
            return False
        if run.id == also:
            return True
        looks = self._seen.get(run.id, 0)
        place = self._hosts.current.placement.rank(run.session_id or run.id, self._name, self._away)
        if place is not None and place <= looks:
            return True
        seen[run.id] = looks + 1
        return False

    async def look(self) -> None:
        """Check the neighbour, the list, and unfinished runs; a host does so periodically."""
        hosts = await self._hosts.read()
        others = [name for name in hosts.names() if name != self._name]
        self._away.intersection_update(others)
        neighbour = next(
            (name for name in sorted(others) if name > self._name), min(others, default=None)
        )
        for host in {
            *self._away,
            *([neighbour] if neighbour is not None else []),
        } - self._looking.keys():
            looking = self._looking[host] = asyncio.ensure_future(self._look_at(host))
            looking.add_done_callback(partial(self._looked, host))
        if self._looking:
            await asyncio.wait(self._looking.values(), timeout=self._spec.limits.suspect_seconds)
        await self.recover()

    def _looked(self, host: str, looking: asyncio.Task[None]) -> None:
        self._looking.pop(host, None)
        if not looking.cancelled() and (problem := looking.exception()) is not None:
            loggers.cluster.warning(
                "Host %s could not inspect host %s, and tries again: %s", self._name, host, problem
            )

    async def _look_at(self, host: str) -> None:
        key = cluster_host_key(self._spec.cluster, host)
        incarnation = await self._store.get(key)
        if incarnation is None:
            return
        if await self._is_gone(host, incarnation.decode(), silent=True):
            await self._revoke(host, incarnation.decode())
        else:
            self._away.discard(host)

    async def close(self) -> None:
        """Stop the checks."""
        looking = [
            task for task in (*self._lost.values(), *self._looking.values()) if not task.done()
        ]
        for task in looking:
            task.cancel()
        for problem in await asyncio.gather(*looking, return_exceptions=True):
            if isinstance(problem, StoreError):
                loggers.cluster.warning("The runs of lost hosts could not be listed: %s", problem)

    def state(self) -> dict[str, Any]:
        return {"recovered": self.recovered, "orphans": self.orphans, "taken": len(self._at_work)}
