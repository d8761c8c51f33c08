"""What is left of hosts that are lost, and of whatever process was lost: who looks for it, when, and who takes it.

A host that is reported lost is asked for itself. If it does not answer, or another life of it does, its owner is revoked in the store: from then on nothing
that the old life still sends is written, so that it does not matter whether it was really dead. Then its runs are taken over.

Owns: that, and the share of what is left that is this host's. It must never take over without having revoked, nor revoke a life that answers.
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
    from ...durability.open_mark import UnfinishedRun
    from ...run.run import Run
    from ...runner import Runner
    from ...stores import JournalStore
    from ..host_list import ListKeeper
    from ..spec import ClusterSpec
    from ..transport import Transport

__all__ = ["Takeover"]

_KNOWN: Final = 1_000
"""Lost lives of hosts that are remembered, so that each is looked at once."""

_BROKEN_SECONDS: Final = 0.5
"""For how long a host may take to answer, the way to which has broken for a client."""


class Takeover:
    """Of one incarnation of a host."""

    def __init__(self, spec: ClusterSpec, name: str, runner: Runner, store: JournalStore, hosts: ListKeeper, transport: Transport) -> None:
        self._spec = spec
        self._name = name
        self._runner = runner
        self._store = store
        self._hosts = hosts
        self._transport = transport
        self._lost: dict[str, asyncio.Task[None]] = {}  # by their incarnations, the last ones
        self._away: set[str] = set()  # hosts of the list that did not answer when they were looked at last
        self._seen: dict[str, int] = {}  # runs that belong to others, and were still without a process at each of the last looks
        self._at_work: dict[str, Run] = {}  # that were taken over
        self.recovered = 0
        self.orphans = 0

    def __len__(self) -> int:
        return len(self._at_work)

    async def look_for(self, lost: list[Any], run_id: str) -> None:
        """A client says that a host is lost: its name, its incarnation, and whether it is just silent. Returns when what it had can be taken, and has been."""
        host, incarnation, silent = lost
        looking = self._lost.get(incarnation)
        if looking is None:
            while len(self._lost) >= _KNOWN:
                del self._lost[next(iter(self._lost))]
            looking = self._lost[incarnation] = asyncio.ensure_future(self._take_over(host, incarnation, run_id, silent=silent))
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
        """Whether that life of the host is over, as far as can be found out; one that hangs is ended."""
        limits = self._spec.limits
        try:
            async with asyncio.timeout(limits.suspect_seconds if silent else min(_BROKEN_SECONDS, limits.suspect_seconds)):
                said = read_control(await self._transport.door(host).control())
        except HostGone:
            self._away.add(host)
            return True
        except TimeoutError:
            self._away.add(host)
            if not silent:
                return True  # the way to it broke for a client, too: Ray is starting it again, most probably
            await self._end_hung(host, incarnation, f"it has not answered for {limits.suspect_seconds:g} s")
            return True
        if said.incarnation == incarnation and said.idle < limits.hang_seconds:
            return False
        if said.incarnation == incarnation:
            await self._end_hung(host, incarnation, f"its loop has stood still for {said.idle:.0f} s")
        return True

    async def _end_hung(self, host: str, incarnation: str, why: str) -> None:
        loggers.cluster.error("Host %s hangs: %s. It is ended, and started again.", host, why)
        await self._revoke(host, incarnation)
        await self._transport.end(host, again=True)

    async def _revoke(self, host: str, incarnation: str) -> None:
        """End the owner under which that life of the host writes, unless another life has taken its place by now."""
        key = cluster_host_key(self._spec.cluster, host)
        owner = await self._store.holder(key)
        if owner is not None and await self._store.get(key) == incarnation.encode():
            loggers.cluster.warning("Host %s is lost: its owner %s is revoked.", host, owner)
            await self._store.revoke(owner)

    async def recover(self, also: str = "") -> None:
        """Go on with the unfinished runs that no host works on, as far as they are this host's share."""
        seen: dict[str, int] = {}
        runs = await self._runner.recover(where=lambda run: self._is_mine(run, also, seen))
        self._seen = seen
        self.orphans = len(seen)
        for run in runs:
            self.recovered += 1
            self._at_work[run.id] = run
            run.when_finished(partial(self._at_work.pop, run.id, None))
        if runs:
            loggers.cluster.info("%d runs are continued on host %s.", len(runs), self._name)

    def _is_mine(self, run: UnfinishedRun, also: str, seen: dict[str, int]) -> bool:
        """Whether this host is to go on with it: the first one for its key; the second one, if the first has not at the last look; and so on."""
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
        """One of the looks that a host takes from time to time: at its neighbour, at the list, and at what is left."""
        hosts = await self._hosts.read()
        others = [name for name in hosts.names() if name != self._name]
        self._away.intersection_update(others)
        neighbour = next((name for name in sorted(others) if name > self._name), min(others, default=None))
        for host in {*self._away, *([neighbour] if neighbour is not None else [])}:
            await self._look_at(host)
        await self.recover()

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
        """Look no more."""
        looking = [task for task in self._lost.values() if not task.done()]
        for task in looking:
            task.cancel()
        for problem in await asyncio.gather(*looking, return_exceptions=True):
            if isinstance(problem, StoreError):
                loggers.cluster.warning("What a lost host has left could not be looked for: %s", problem)

    def state(self) -> dict[str, Any]:
        return {"recovered": self.recovered, "orphans": self.orphans, "taken": len(self._at_work)}
