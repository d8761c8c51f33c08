"""Who works on what, where several processes share a store: leases that expire if nobody prolongs them.

Owns: an actor per system that prolongs the leases of its runs, and what says of a lease that nobody will ever give it back: its process is gone, or it
was of this process, and its actor is. A lease that was lost, or may be by now, is told to the run, which must not go on. It must never hold a lease for a
run that has ended, nor let what one store does cost anybody a lease in another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from weakref import WeakValueDictionary

from ..actor.actor import Actor
from ..actor.direct import stop_actor
from ..clock import Timer
from ..data.chat import new_id
from ..errors import ActorDeadError, SystemDraining
from ..log import logger

if TYPE_CHECKING:
    from ..actor.host import Host
    from .store_access import StoreAccess

__all__ = ["LEASE_SECONDS", "Busy", "Lease", "LeaseKeeper", "is_gone", "keeper_of"]

LEASE_SECONDS: Final = 30.0
"""How long a lease is good for. It is prolonged three times as often."""

PREEMPT_SECONDS: Final = 1.0
"""How often whoever has a turn of a session looks whether somebody in another process wants it at once."""

# Seconds after which it is tried again to prolong, if that has failed; and for so long before its end a lease counts as lost.
_AGAIN: Final = 1.0
# Seconds after which somebody who waits for another process looks again: twice as long each time.
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
# Who may wait for one turn in one system: more is somebody who sends without end.
_MOST_WAITING: Final = 1_000
_LEFT: Final = "the system was left while somebody in it waited for a lease, or for the turn of a session."

Busy: TypeAlias = Literal["queue", "reject", "preempt"]


class Lease:
    """What one run has, or waits for: a lease."""

    __slots__ = ("desk", "granted", "key", "leaves", "lost", "preempted", "preempts", "until")

    def __init__(self, lost: Callable[[], object], preempted: Callable[[], object] | None = None, *, preempts: bool = False) -> None:
        self.lost = lost  # called if somebody else gets it all the same
        self.preempted = preempted  # called if somebody wants it at once; None if nobody can, or it was called
        self.preempts = preempts  # whether it wants it at once
        self.until: float | None = None  # by the system's clock, when it may expire; None if it is not there yet, or not any more
        self.leaves = False  # whether it is being given back
        self.desk: StoreLeases  # whose it is, and under which key
        self.key: str
        self.granted: asyncio.Future[bool]  # set when it is its turn, if it has to wait

    def is_in_place(self) -> bool:
        return self.desk.holds.get(self.key) is self

    def preempt(self) -> None:
        """Somebody wants it at once. That is said once: the second time would cut short what is done to end in order."""
        preempted, self.preempted = self.preempted, None
        if preempted is not None:
            preempted()

    def lose(self) -> None:
        """Somebody else may have it by now."""
        self.until = None
        self.lost()


class StoreLeases:
    """The leases of one system in one store. Two stores may be one database: so each desk has a name of its own there."""

    __slots__ = ("__weakref__", "holds", "late", "looking", "owner", "renewing", "store_access", "waiting")

    def __init__(self, store_access: StoreAccess) -> None:
        self.store_access = store_access
        self.owner = f"{_process(os.getpid())}/{new_id()}"
        self.holds: dict[str, Lease] = {}
        self.waiting: dict[str, deque[Lease]] = {}  # who wants one of those next
        self.renewing = False  # whether the store is being asked to prolong them
        self.late = False  # whether it did not do so the last time
        self.looking = False  # whether it is being asked who wants one at once
        _store_leases[self.owner] = self

    def grant_next(self, key: str) -> bool:
        """Let the next one have it that waits for it here. Returns False if nobody does."""
        waiting = self.waiting.get(key)
        if not waiting:
            return False
        lease = self.holds[key] = waiting.popleft()
        if not waiting:
            del self.waiting[key]
        if not lease.granted.done():
            lease.granted.set_result(True)
        return True

    def is_wanted(self, key: str) -> bool:
        """Whether somebody who waits for it here wants it at once."""
        return any(lease.preempts for lease in self.waiting.get(key, ()))

    def may_be_wanted(self) -> bool:
        return any(lease.preempted is not None for lease in self.holds.values())


# Those of this process, by their names; and the keepers, by the ids of their systems.
_store_leases: Final[WeakValueDictionary[str, StoreLeases]] = WeakValueDictionary()
_keepers: Final[WeakValueDictionary[int, LeaseKeeper]] = WeakValueDictionary()


class LeaseKeeper(Actor):
    """Prolongs the leases of one system's runs. It is there while there is one."""

    __slots__ = ("_looking", "_store_leases", "_timer")

    def __init__(self) -> None:
        super().__init__()
        self._store_leases: dict[StoreAccess, StoreLeases] = {}  # where there is a lease
        self._timer: Timer | None = None
        self._looking: Timer | None = None

    async def take(self, store_access: StoreAccess, key: str, lost: Callable[[], object]) -> bool:
        """Take a lease, and keep it. `lost` is called if somebody else gets it all the same. Returns False if somebody else has it."""
        return await self._take(store_access, key, Lease(lost), "", "reject")

    async def take_turn(self, store_access: StoreAccess, key: str, lease: Lease, mark: str, busy: Busy) -> bool:
        """Take a lease when it is one's turn. Returns False if somebody else has it, and one does not want to wait."""
        if not await self._take(store_access, key, lease, mark, busy):
            return False
        self._watch()
        if lease.desk.is_wanted(key):
            lease.preempt()
        return True

    async def still_has(self, store_access: StoreAccess, key: str, *, ask: bool = True) -> bool:
        """Whether a lease is still there. The store is asked; or only if that is not certain: this process may have slept."""
        lease = self._find(store_access, key)
        if lease is not None and lease.until is not None and not ask and self._cell.system.clock.monotonic() < lease.until:
            return True
        return lease is not None and bool(await store_access.renew([key], lease.desk.owner))

    async def give_back(self, store_access: StoreAccess, key: str) -> None:
        """Let go of a lease: to whoever waits for it here, or else to all. That of one who cannot reach the store expires by itself."""
        lease = self._find(store_access, key)
        if lease is not None and not lease.leaves:
            lease.leaves = True
            await self.on_receive(lease)

    def abandon(self, store_access: StoreAccess, key: str) -> None:
        """The same, of one that has ended otherwise than it should, and cannot wait."""
        lease = self._find(store_access, key)
        if lease is not None and not lease.leaves:
            lease.leaves = True
            with contextlib.suppress(ActorDeadError):
                self.actor_ref.tell(lease)

    async def on_receive(self, lease: Lease) -> None:
        """Somebody leaves his place."""
        lease.until = None
        if not lease.is_in_place() or lease.desk.grant_next(lease.key):
            return
        try:
            await lease.desk.store_access.release(lease.key, lease.desk.owner)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, its lease expires
            logger.warning("The lease %r could not be given back, and expires in %g s: %s", lease.key, LEASE_SECONDS, error)
        finally:
            self._pass_on(lease)

    def _pass_on(self, lease: Lease) -> None:
        desk = lease.desk
        if not lease.is_in_place() or desk.grant_next(lease.key):
            return
        del desk.holds[lease.key]
        if not desk.holds:
            del self._store_leases[desk.store_access]
        if not self._store_leases:
            stop_actor(self._cell)

    def _find(self, store_access: StoreAccess, key: str) -> Lease | None:
        return self._store_leases[store_access].holds.get(key) if store_access in self._store_leases else None

    async def _take(self, store_access: StoreAccess, key: str, lease: Lease, mark: str, busy: Busy) -> bool:
        desk = lease.desk = self._store_leases.get(store_access) or self._store_leases.setdefault(store_access, StoreLeases(store_access))
        lease.key = key
        if key not in desk.holds:
            desk.holds[key] = lease  # before it is taken, so that it never seems to be nobody's
        elif not await self._queue(lease, busy):
            return False
        try:
            taken = await self._acquire(lease) or (busy != "reject" and await self._compete(lease, mark, busy))
        except BaseException:
            self.abandon(store_access, key)  # the store may have it all the same
            raise
        if not taken:
            self._pass_on(lease)
        return taken

    async def _queue(self, lease: Lease, busy: Busy) -> bool:
        """Wait until those in front have had their turns. Who does not want to wait does so only for one that is leaving."""
        desk, key = lease.desk, lease.key
        waiting, at_work = desk.waiting.get(key, ()), desk.holds[key]
        if len(waiting) >= _MOST_WAITING or (busy == "reject" and (waiting or not at_work.leaves)):
            return False
        lease.granted = self._cell.system.loop.create_future()
        desk.waiting.setdefault(key, deque()).append(lease)
        if lease.preempts:
            at_work.preempt()
        try:
            if not await lease.granted:
                raise SystemDraining(_LEFT)
        except asyncio.CancelledError:
            line = desk.waiting.get(key, deque())
            if lease.is_in_place():
                self.abandon(desk.store_access, key)  # it was granted in this very moment
            elif lease in line:
                line.remove(lease)
            if not line:
                desk.waiting.pop(key, None)
            raise
        return True

    async def _acquire(self, lease: Lease) -> bool:
        desk, started = lease.desk, self._cell.system.clock.monotonic()
        taken = await desk.store_access.acquire(lease.key, desk.owner)
        if not lease.is_in_place():
            if taken:
                await desk.store_access.release(lease.key, desk.owner)
            raise SystemDraining(_LEFT)
        if taken:
            lease.until = started + LEASE_SECONDS
            self._wait()
        return taken

    async def _compete(self, lease: Lease, mark: str, busy: Busy) -> bool:
        """Wait until another process gives it back."""
        store_access, key = lease.desk.store_access, lease.key
        asked: str | None = None  # who was asked to end at once
        delay = _FIRST_LOOK
        try:
            while True:
                if busy == "preempt" or lease.desk.is_wanted(key):
                    holder = await store_access.holder(key)
                    if holder is not None and (holder != asked or await store_access.get(mark) is None):
                        asked = holder  # before it is written: it is taken back in any case
                        await store_access.set(mark, holder.encode())
                waited = asyncio.Event()
                timer = self._cell.system.clock.call_later(delay, waited.set)
                try:
                    await waited.wait()
                finally:
                    timer.cancel()
                delay = min(2 * delay, _LAST_LOOK)
                if await self._acquire(lease):
                    return True
        finally:
            if asked is not None:
                try:
                    await store_access.delete(mark)
                except Exception as error:  # noqa: BLE001 -- it costs nobody the turn
                    logger.warning("That somebody wants the lease %r could not be taken back: %s", key, error)

    # --- keeping ---

    def _wait(self) -> None:
        if self._timer is None and self._store_leases:
            late = any(desk.late for desk in self._store_leases.values())
            self._timer = self._cell.system.clock.call_later(_AGAIN if late else LEASE_SECONDS / 3, self._prolong)

    def _prolong(self) -> None:
        """Have each store prolong its leases; by themselves, because one that does not answer must cost nobody those in the others."""
        self._timer = None
        now = self._cell.system.clock.monotonic()
        for desk in self._store_leases.values():
            desk.late = desk.late or desk.renewing
            if desk.late:
                for lease in desk.holds.values():
                    if lease.until is not None and lease.until - now <= _AGAIN:
                        lease.lose()
            holds = [lease for lease in desk.holds.values() if lease.until is not None]
            if holds and not desk.renewing:
                desk.renewing = True
                self._begin(self._renew(desk, holds))
        self._wait()

    async def _renew(self, desk: StoreLeases, holds: list[Lease]) -> None:
        started = self._cell.system.clock.monotonic()
        try:
            still = set(await desk.store_access.renew([lease.key for lease in holds], desk.owner))
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, nobody else must suffer from it
            logger.warning("%d leases could not be prolonged, and expire if that lasts: %s", len(holds), error)
            desk.late = True
        else:
            desk.late = False
            for lease in holds:
                if lease.until is None or not lease.is_in_place():
                    continue  # it was given back meanwhile, and may have been taken anew
                if lease.key in still:
                    lease.until = started + LEASE_SECONDS
                else:
                    lease.lose()
        finally:
            desk.renewing = False

    def _watch(self) -> None:
        if self._looking is None and any(desk.may_be_wanted() for desk in self._store_leases.values()):
            self._looking = self._cell.system.clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        for desk in self._store_leases.values():
            if desk.may_be_wanted() and not desk.looking:
                desk.looking = True
                self._begin(self._look_for_others(desk))
        self._watch()

    async def _look_for_others(self, desk: StoreLeases) -> None:
        try:
            for key, mark in await desk.store_access.wanted_sessions():
                lease = desk.holds.get(key)
                if lease is not None and await desk.store_access.get(mark) == desk.owner.encode():
                    await desk.store_access.delete(mark)  # who still waits says so again; one who was lost ends no other turn
                    lease.preempt()
        except Exception as error:  # noqa: BLE001 -- as above
            logger.warning("Whether a turn is wanted by another process could not be found out: %s", error)
        finally:
            desk.looking = False

    def _begin(self, work: Any) -> None:
        self._cell.system.run_task(work, f"{self._cell.path} waits for a store", self._cell.task_context)

    def on_stop(self) -> None:
        for timer in filter(None, (self._timer, self._looking)):
            timer.cancel()
        for desk in self._store_leases.values():
            for lease in (lease for waiting in desk.waiting.values() for lease in waiting):
                if not lease.granted.done():
                    lease.granted.set_result(False)
            desk.holds.clear()
            desk.waiting.clear()
        self._store_leases.clear()


def keeper_of(system: Host) -> LeaseKeeper:
    """The one of that system. To be used at once: it ends when it holds nothing."""
    keeper = _keepers.get(id(system))
    if keeper is None or keeper._cell.system is not system or keeper._cell.closing:
        keeper = _keepers[id(system)] = cast("LeaseKeeper", system.spawn_own(LeaseKeeper, (), None, None)._cell.actor)
    return keeper


def is_gone(owner: str, key: str) -> bool:
    """Whether it is certain that this owner does not work on that any more."""
    process, _, _ = owner.rpartition("/")
    this = _process(os.getpid())
    if process == this:  # of one that it was forked from it has keepers, too, which know nothing any more
        desk = _store_leases.get(owner)
        return desk is None or key not in desk.holds
    host, _, rest = process.partition("/")
    here, _, _ = this.partition("/")
    if host != here:
        return False  # of another machine nothing is certain
    pid, _, started = rest.partition("/")
    return not pid.isdigit() or _started(int(pid)) != started


@lru_cache(maxsize=1)  # of this process: one that was forked has another number
def _process(pid: int) -> str:
    """A name that no other process ever has: what machine or container it is in, its number there, and when it began."""
    return f"{_machine()}/{pid}/{_started(pid)}"


def _machine() -> str:
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(str(Path(path).readlink()) if path.endswith("pid") else Path(path).read_text(encoding="ascii").strip())
        except OSError:
            parts.append("")
    return "|".join(parts).replace("/", "_")


def _started(pid: int) -> str:
    """When a process began, in ticks since the machine did; nothing if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
