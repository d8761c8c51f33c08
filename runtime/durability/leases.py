"""Which process works on which run or session: leases that expire unless they are prolonged.

Owns: the leases of one system, the queue of those in it that wait for a lease, and the timers that prolong leases and look for other processes that want one.
A lease that is lost, or may have expired, is reported at once, and its run must stop. It must never keep a lease for a run that has ended, and trouble in one
store must never cost a lease in another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from ..actor.actor import Actor
from ..actor.direct import stop_actor
from ..clock import Timer
from ..errors import ActorDeadError, SystemDraining
from ..log import logger
from .lease_owner import LEASE_SECONDS, LeaseOwner
from .store_access import StoreAccess

if TYPE_CHECKING:
    from ..actor.host import Host

__all__ = ["Busy", "Lease", "LeaseKeeper", "SystemLeases", "leases_of"]

PREEMPT_SECONDS: Final = 1.0
"""How often the holder of a session's turn looks in the store whether another process wants it at once."""

# Seconds until a renewal that has failed is tried again. A lease that cannot be prolonged counts as lost so long before it expires.
_RETRY_SECONDS: Final = 1.0
# Seconds until a lease that another process has is tried again: twice as long each time.
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
# How many may wait for one turn in one system. If there are more, a caller sends without end.
_MOST_WAITING: Final = 1_000
_LEFT: Final = "the system was left before the lease, or the turn of a session, that something in it waited for was free."

Busy: TypeAlias = Literal["queue", "reject", "preempt"]


class Lease:
    """One lease that a run has, or waits for."""

    __slots__ = ("expires", "granted", "group", "is_returning", "key", "on_lost", "on_wanted", "preempts")

    def __init__(self, on_lost: Callable[[], object], on_wanted: Callable[[], object] | None = None, *, preempts: bool = False) -> None:
        self.on_lost = on_lost  # called if another process may have it by now
        self.on_wanted = on_wanted  # called once, if another run wants it at once; None if none can, or it was called
        self.preempts = preempts  # whether it is wanted at once here
        self.expires: float | None = None  # by the system's clock; None before it is acquired, and after it was lost or given back
        self.is_returning = False  # whether it is being given back
        self.group: StoreLeases
        self.key: str
        self.granted: asyncio.Future[bool]  # for one that waits: whether its turn has come; False if the system was left

    def is_current(self) -> bool:
        return self.group.by_key.get(self.key) is self

    def preempt(self) -> None:
        """Report that it is wanted at once. Only the first time: a second one would cut short the orderly end of the run."""
        on_wanted, self.on_wanted = self.on_wanted, None
        if on_wanted is not None:
            on_wanted()

    def lose(self) -> None:
        """Another process may have it by now."""
        self.expires = None
        self.on_lost()


class StoreLeases(LeaseOwner):
    """The leases of one system in one store."""

    __slots__ = ("by_key", "is_late", "is_looking", "is_renewing", "store_access", "tasks", "waiting")

    def __init__(self, store_access: StoreAccess) -> None:
        super().__init__()
        self.store_access = store_access
        self.by_key: dict[str, Lease] = {}  # that the system has, takes, or gives back
        self.waiting: dict[str, deque[Lease]] = {}  # for one of those, the next one first
        self.is_renewing = False  # whether the store is being asked to prolong them
        self.is_late = False  # whether the last renewal has failed, or is still under way
        self.is_looking = False  # whether the store is being asked which of them another process wants at once
        self.tasks: set[asyncio.Task[None]] = set()  # of both

    def has(self, key: str) -> bool:
        return key in self.by_key

    def grant_next(self, key: str) -> bool:
        """Pass a lease on to the next one that waits for it here. Returns False if none does."""
        waiting = self.waiting.get(key)
        if not waiting:
            return False
        lease = self.by_key[key] = waiting.popleft()
        if not waiting:
            del self.waiting[key]
        if not lease.granted.done():
            lease.granted.set_result(True)
        return True

    def is_wanted(self, key: str) -> bool:
        """Whether one that waits here for that lease wants it at once."""
        return any(lease.preempts for lease in self.waiting.get(key, ()))

    def may_be_wanted(self) -> bool:
        return any(lease.on_wanted is not None for lease in self.by_key.values())


class LeaseKeeper(Actor):
    """Ties `SystemLeases` to the life of its system, and nothing else: an actor that is there while there are leases.

    Its mailbox takes the leases whose holders cannot wait until they are given back; its stop is how the others hear that the system is left.
    """

    __slots__ = ("_leases",)

    def __init__(self, leases: SystemLeases) -> None:
        super().__init__()
        self._leases: SystemLeases | None = leases
        leases.keeper = self

    def leases_in(self, system: Host) -> SystemLeases | None:
        """What it keeps; None if that is of another system, or about to end."""
        return self._leases if self._cell.system is system and not self._cell.closing else None

    def run_task(self, group: StoreLeases, work: Coroutine[Any, Any, None]) -> None:
        """Have a store do something, in a task of the system."""
        group.tasks.add(task := self._cell.system.run_task(work, f"{self._cell.path} waits for a store", self._cell.task_context))
        task.add_done_callback(group.tasks.discard)

    def leave(self) -> None:
        """There is no lease any more."""
        stop_actor(self._cell)

    async def on_receive(self, lease: Lease) -> None:
        if self._leases is not None:
            await self._leases.release(lease)

    def on_stop(self) -> None:
        leases, self._leases = self._leases, None  # so that the two do not keep each other
        if leases is not None:
            leases.close()


# By the ids of their systems. One that has ended may be here until it is collected, or under the id of a new system.
_keepers: Final[WeakValueDictionary[int, LeaseKeeper]] = WeakValueDictionary()


class SystemLeases:
    """The leases of one system: takes, prolongs and gives them back. A plain object, to be called on the system's loop; `LeaseKeeper` is its actor."""

    __slots__ = ("_by_store", "_clock", "_look_timer", "_loop", "_renew_timer", "keeper")

    def __init__(self, system: Host) -> None:
        self._clock = system.clock
        self._loop = system.loop
        self._by_store: dict[StoreAccess, StoreLeases] = {}  # where there is a lease
        self._renew_timer: Timer | None = None
        self._look_timer: Timer | None = None
        self.keeper: LeaseKeeper
        system.spawn_own(LeaseKeeper, (self,), None, None)

    async def take(self, store_access: StoreAccess, key: str, on_lost: Callable[[], object]) -> bool:
        """Take a lease, and prolong it until it is given back. Returns False if another run or process has it. `on_lost` is called if it is lost later."""
        return await self._take(store_access, key, Lease(on_lost), "", "reject")

    async def take_turn(self, store_access: StoreAccess, key: str, lease: Lease, mark: str, busy: Busy) -> bool:
        """Take a lease when its turn has come. Returns False if there is one in front, and `busy` says not to wait."""
        if not await self._take(store_access, key, lease, mark, busy):
            return False
        self._set_look_timer()
        if lease.group.is_wanted(key):
            lease.preempt()
        return True

    async def still_has(self, store_access: StoreAccess, key: str, *, ask: bool = True) -> bool:
        """Whether a lease is still there. Without `ask`, the store is asked only if the lease may have expired: this process may have slept."""
        lease = self._find(store_access, key)
        if lease is not None and lease.expires is not None and not ask and self._clock.monotonic() < lease.expires:
            return True
        return lease is not None and bool(await store_access.renew([key], lease.group.owner_id))

    async def give_back(self, store_access: StoreAccess, key: str) -> None:
        """Give a lease to the next one that waits for it here, or else back to the store. If the store cannot be reached, it expires."""
        lease = self._find(store_access, key)
        if lease is not None and not lease.is_returning:
            lease.is_returning = True
            await self.release(lease)

    def abandon(self, store_access: StoreAccess, key: str) -> None:
        """Give a lease back without waiting for that."""
        lease = self._find(store_access, key)
        if lease is not None and not lease.is_returning:
            lease.is_returning = True
            with contextlib.suppress(ActorDeadError):
                self.keeper.actor_ref.tell(lease)

    async def release(self, lease: Lease) -> None:
        """Pass on a lease that is being given back."""
        lease.expires = None
        if not lease.is_current() or lease.group.grant_next(lease.key):
            return
        try:
            await lease.group.store_access.release(lease.key, lease.group.owner_id)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, its lease expires
            logger.warning("The lease %r could not be given back, and expires in %g s: %s", lease.key, LEASE_SECONDS, error)
        finally:
            self._remove(lease)

    def close(self) -> None:
        """The system is left, or there is no lease any more."""
        for timer in filter(None, (self._renew_timer, self._look_timer)):
            timer.cancel()
        for group in self._by_store.values():
            for lease in (lease for waiting in group.waiting.values() for lease in waiting):
                if not lease.granted.done():
                    lease.granted.set_result(False)
            group.by_key.clear()
            group.waiting.clear()
        self._by_store.clear()

    def _remove(self, lease: Lease) -> None:
        """Forget a lease, unless another one waits for it by now."""
        group = lease.group
        if not lease.is_current() or group.grant_next(lease.key):
            return
        del group.by_key[lease.key]
        if not group.by_key:
            for task in group.tasks:  # a store that does not answer must not keep a task of a run that has ended
                task.cancel()
            del self._by_store[group.store_access]
        if not self._by_store:
            self.keeper.leave()

    def _find(self, store_access: StoreAccess, key: str) -> Lease | None:
        return self._by_store[store_access].by_key.get(key) if store_access in self._by_store else None

    # --- taking ---

    async def _take(self, store_access: StoreAccess, key: str, lease: Lease, mark: str, busy: Busy) -> bool:
        group = lease.group = self._by_store.get(store_access) or self._by_store.setdefault(store_access, StoreLeases(store_access))
        lease.key = key
        if key not in group.by_key:
            group.by_key[key] = lease  # before it is acquired: from then on `is_gone` must not take its owner for gone
        elif not await self._queue(lease, busy):
            return False
        try:
            taken = await self._acquire(lease) or (busy != "reject" and await self._compete(lease, mark, busy))
        except BaseException:
            self.abandon(store_access, key)  # the store may have granted it all the same
            raise
        if not taken:
            self._remove(lease)
        return taken

    async def _queue(self, lease: Lease, busy: Busy) -> bool:
        """Wait until those in front have had their turns. With `busy="reject"`, wait only for a single one that is giving it back."""
        group, key = lease.group, lease.key
        waiting, current = group.waiting.get(key, ()), group.by_key[key]
        if len(waiting) >= _MOST_WAITING or (busy == "reject" and (waiting or not current.is_returning)):
            return False
        lease.granted = self._loop.create_future()
        group.waiting.setdefault(key, deque()).append(lease)
        if lease.preempts:
            current.preempt()
        try:
            if not await lease.granted:
                raise SystemDraining(_LEFT)
        except asyncio.CancelledError:
            line = group.waiting.get(key, deque())
            if lease.is_current():
                self.abandon(group.store_access, key)  # it was granted at this very moment
            elif lease in line:
                line.remove(lease)
            if not line:
                group.waiting.pop(key, None)
            raise
        return True

    async def _acquire(self, lease: Lease) -> bool:
        group, started = lease.group, self._clock.monotonic()
        taken = await group.store_access.acquire(lease.key, group.owner_id)
        if not lease.is_current():
            if taken:
                await group.store_access.release(lease.key, group.owner_id)
            raise SystemDraining(_LEFT)
        if taken:
            lease.expires = started + LEASE_SECONDS
            self._set_renew_timer()
        return taken

    async def _compete(self, lease: Lease, mark: str, busy: Busy) -> bool:
        """Wait until another process gives it back. `mark` is the key that asks its holder to do so at once."""
        store_access, key = lease.group.store_access, lease.key
        asked: str | None = None  # the holder that was asked
        delay = _FIRST_LOOK
        try:
            while True:
                if busy == "preempt" or lease.group.is_wanted(key):
                    holder = await store_access.holder(key)
                    if holder is not None and (holder != asked or await store_access.get(mark) is None):
                        asked = holder  # before the mark is written: it may be written even if that fails, and has to be deleted
                        await store_access.set(mark, holder.encode())
                waited = asyncio.Event()
                timer = self._clock.call_later(delay, waited.set)
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
                except Exception as error:  # noqa: BLE001 -- the turn is not lost because of that
                    logger.warning("The request for the lease %r could not be taken back: %s", key, error)

    # --- prolonging ---

    def _set_renew_timer(self) -> None:
        if self._renew_timer is None and self._by_store:
            is_late = any(group.is_late for group in self._by_store.values())
            self._renew_timer = self._clock.call_later(_RETRY_SECONDS if is_late else LEASE_SECONDS / 3, self._prolong)

    def _prolong(self) -> None:
        """Have each store prolong its leases, each in a task of its own: one that does not answer must not cost the leases in the others."""
        self._renew_timer = None
        now = self._clock.monotonic()
        for group in self._by_store.values():
            group.is_late = group.is_late or group.is_renewing
            if group.is_late:
                for lease in group.by_key.values():
                    if lease.expires is not None and lease.expires - now <= _RETRY_SECONDS:
                        lease.lose()
            leases = [lease for lease in group.by_key.values() if lease.expires is not None]
            if leases and not group.is_renewing:
                group.is_renewing = True
                self.keeper.run_task(group, self._renew(group, leases))
        self._set_renew_timer()

    async def _renew(self, group: StoreLeases, leases: list[Lease]) -> None:
        started = self._clock.monotonic()
        try:
            still = set(await group.store_access.renew([lease.key for lease in leases], group.owner_id))
        except Exception as error:  # noqa: BLE001 -- whatever one store raises, the others go on
            logger.warning("%d leases could not be prolonged, and expire if that lasts: %s", len(leases), error)
            group.is_late = True
        else:
            group.is_late = False
            for lease in leases:
                if lease.expires is None or not lease.is_current():
                    continue  # it was given back meanwhile, and may have been taken anew
                if lease.key in still:
                    lease.expires = started + LEASE_SECONDS
                else:
                    lease.lose()
        finally:
            group.is_renewing = False

    # --- being asked by another process ---

    def _set_look_timer(self) -> None:
        if self._look_timer is None and any(group.may_be_wanted() for group in self._by_store.values()):
            self._look_timer = self._clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._look_timer = None
        for group in self._by_store.values():
            if group.may_be_wanted() and not group.is_looking:
                group.is_looking = True
                self.keeper.run_task(group, self._look_for_others(group))
        self._set_look_timer()

    async def _look_for_others(self, group: StoreLeases) -> None:
        try:
            for key, mark in await group.store_access.wanted_sessions():
                lease = group.by_key.get(key)
                if lease is not None and await group.store_access.get(mark) == group.owner_id.encode():
                    await group.store_access.delete(mark)  # a process that still waits writes it again; the mark of a lost one must not end a later turn
                    lease.preempt()
        except Exception as error:  # noqa: BLE001 -- as above
            logger.warning("Whether a turn is wanted by another process could not be found out: %s", error)
        finally:
            group.is_looking = False


def leases_of(system: Host) -> SystemLeases:
    """The leases of that system. To be used at once: the object is replaced when there was no lease for a moment."""
    keeper = _keepers.get(id(system))
    leases = None if keeper is None else keeper.leases_in(system)
    if leases is None:
        leases = SystemLeases(system)
        _keepers[id(system)] = leases.keeper
    return leases
