"""Which system works on which run or session: the leases of one system, in all of its stores.

Owns: which leases the system has, the queue of those in it that wait for one, and the timers that say to the stores that it is alive and that look for other
processes that want a turn. A lease that is lost is reported at once, and its run must stop. It must never keep a lease for a run that has ended, and trouble in
one store must never cost a lease in another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..actor.actor import Actor
from ..actor.direct import stop_actor
from ..clock import Timer
from ..errors import ActorDeadError, SystemDraining, WriteRefused
from ..log import loggers
from ..stores.writes import Claim, Write
from .lease import Lease, LeaseState
from .store_access import StoreAccess
from .store_owner import Debt, StoreOwner
from .wanted import look_for_others

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_messages import CancelRun

__all__ = ["Busy", "LeaseKeeper", "SystemLeases", "leases_of"]

PREEMPT_SECONDS: Final = 1.0
"""How often the holder of a session's turn looks in the store whether another process wants it at once."""

# Of the time for which an owner is alive: after how much of it that is said again, and after how much if it could not be said.
_RENEW_SHARE: Final = 1 / 3
_RETRY_SHARE: Final = 1 / 30
# Seconds until a lease that another process has is tried again: twice as long each time.
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
# How many may wait for one turn in one system. If there are more, a caller sends without end.
_MOST_WAITING: Final = 1_000
_LEFT: Final = "the system was left before the lease, or the turn of a session, that something in it waited for was free."

Busy: TypeAlias = Literal["queue", "reject", "preempt"]


class LeaseKeeper(Actor):
    """Ties `SystemLeases` to the life of its system, and nothing else: an actor that is there while there are leases.

    Its mailbox takes the leases whose holders cannot wait until they are given back; its stop is how the stores hear that the system is left.
    """

    __slots__ = ("_is_needed", "_leases")

    def __init__(self, leases: SystemLeases) -> None:
        super().__init__()
        self._leases = leases
        self._is_needed = True
        leases.keeper = self

    @property
    def is_there(self) -> bool:
        return self._is_needed and not self._cell.closing

    def run_task(self, owner: StoreOwner, work: Coroutine[Any, None, None]) -> None:
        """Have a store do something, in a task of the system."""
        owner.tasks.add(task := self._cell.system.run_task(work, f"{self._cell.path} waits for a store", self._cell.task_context))
        task.add_done_callback(owner.tasks.discard)

    def leave(self) -> None:
        """There is no lease any more."""
        self._is_needed = False
        stop_actor(self._cell, hook=False)

    async def on_receive(self, lease: Lease) -> None:
        await self._leases.release(lease)

    async def on_stop(self) -> None:  # type: ignore[override]  # a hook may be a coroutine
        if self._is_needed:
            self._is_needed = False
            await self._leases.close()


class SystemLeases:
    """The leases of one system: takes, prolongs and gives them back. A plain object, to be called on the system's loop; `LeaseKeeper` is its actor."""

    __slots__ = ("_by_store", "_clock", "_is_late", "_is_renewing", "_look_timer", "_loop", "_renew_timer", "_seconds", "_system", "keeper")

    def __init__(self, system: Host) -> None:
        self._system = system
        self._clock = system.clock
        self._loop = system.loop
        self._seconds = system.lease_seconds
        self._by_store: dict[StoreAccess, StoreOwner] = {}
        self._renew_timer: Timer | None = None
        self._look_timer: Timer | None = None
        self._is_renewing: set[StoreOwner] = set()  # those whose stores are being told that they are alive
        self._is_late: set[StoreOwner] = set()  # those that could not say so the last time
        self.keeper: LeaseKeeper | None = None

    def take(self, access: StoreAccess, lease: Lease, writes: Sequence[Write] = ()) -> Coroutine[Any, Any, bool]:
        """Take a lease, and write by it, in one step. It is prolonged until it is given back. Returns False if another run or process has it."""
        return self._take(access, lease, "", "reject", writes)

    def stop_here(self, access: StoreAccess, key: str, request: CancelRun) -> bool:
        """End a run that this system has. Returns False if it has none of that key."""
        owner = self._by_store.get(access)
        lease = None if owner is None else owner.by_key.get(key)
        if lease is None or lease.on_stop is None:
            return False
        lease.on_stop(request)
        return True

    async def take_turn(self, access: StoreAccess, lease: Lease, mark: str, busy: Busy) -> bool:
        """Take a lease when its turn has come. Returns False if there is one in front, and `busy` says not to wait."""
        taken = await self._take(access, lease, mark, busy, ())
        if taken and lease.owner.is_wanted(lease.key):
            lease.preempt()
        return taken

    async def give_back(self, lease: Lease) -> None:
        """Give a lease to the next one that waits for it here, or else back to the store. If the store cannot be reached, that is done later."""
        if not lease.is_returning:
            lease.is_returning = True
            try:
                await self.release(lease)
            except asyncio.CancelledError:  # those who come next must not wait for ever
                lease.is_returning = False
                self.abandon(lease)
                raise

    def abandon(self, lease: Lease) -> None:
        """Give a lease back without waiting for that."""
        if not lease.is_returning and self.keeper is not None:
            lease.is_returning = True
            with contextlib.suppress(ActorDeadError):
                self.keeper.actor_ref.tell(lease)

    def is_at_work(self, access: StoreAccess, key: str) -> bool:
        """Whether a run of this system has that lease, or is about to take it."""
        owner = self._by_store.get(access)
        return owner is not None and key in owner.by_key

    def is_wanted_here(self, lease: Lease) -> bool:
        """Whether another run of this system waits for it."""
        return bool(lease.owner.waiting.get(lease.key))

    async def pay_debts(self, access: StoreAccess) -> None:
        """Give back now what could not be given back when it was due."""
        owner = self._by_store.get(access)
        if owner is not None and owner.owed:
            await owner.pay_all()
            self._rest()

    async def release(self, lease: Lease) -> None:
        """Pass on a lease that is being given back."""
        owner, key = lease.owner, lease.key
        if owner.by_key.get(key) is not lease:
            return
        if lease.state is LeaseState.HELD and not self.is_wanted_here(lease):
            await owner.give_back(lease)
        if lease.state is LeaseState.HELD:
            lease.state = LeaseState.RETURNED
        self._remove(lease)

    async def close(self) -> None:
        """The system is left."""
        self._end_timers()
        owners, self._by_store = list(self._by_store.values()), {}
        await asyncio.gather(*(owner.leave() for owner in owners))

    def _end_timers(self) -> None:
        for timer in filter(None, (self._renew_timer, self._look_timer)):
            timer.cancel()
        self._renew_timer = self._look_timer = None

    def _remove(self, lease: Lease) -> None:
        """Forget a lease, unless another one waits for it by now."""
        owner, key = lease.owner, lease.key
        if owner.by_key.get(key) is not lease or (key in owner.waiting and owner.grant_next(key)):
            return
        del owner.by_key[key]
        if not owner.by_key:
            self._rest()

    def _rest(self) -> None:
        """If there is nothing left to do, have no actor, and no timers."""
        resting = [owner for owner in self._by_store.values() if not owner.by_key and not owner.owed]
        for owner in resting:
            for task in owner.tasks:  # a store that does not answer must not keep a task of a run that has ended
                if task is not asyncio.current_task():
                    task.cancel()
        if self.keeper is not None and len(resting) == len(self._by_store):
            keeper, self.keeper = self.keeper, None
            self._end_timers()
            keeper.leave()

    # --- taking ---

    async def _take(self, access: StoreAccess, lease: Lease, mark: str, busy: Busy, writes: Sequence[Write]) -> bool:
        owner = self._by_store.get(access)
        if owner is None:
            owner = self._by_store[access] = StoreOwner(access, self._system)
        lease.owner = owner
        if self.keeper is None or not self.keeper.is_there:
            self._system.spawn_own(LeaseKeeper, (self,), None, None)
        if lease.key not in owner.by_key:
            owner.by_key[lease.key] = lease
        elif not await self._queue(lease, busy):
            return False
        try:
            taken = await self._claim(lease, writes) or (busy != "reject" and await self._compete(lease, mark, busy))
        except BaseException as problem:
            owes = not isinstance(problem, WriteRefused) and lease.state is LeaseState.NONE and self._owe(lease)
            self._remove(lease)
            if owes:
                await self._settle_now(lease, may_wait=isinstance(problem, Exception))
            raise
        if not taken:
            self._remove(lease)
        elif self._look_timer is None:
            self._set_look_timer()
        return taken

    async def _queue(self, lease: Lease, busy: Busy) -> bool:
        """Wait until those in front have had their turns. With `busy="reject"`, wait only for a single one that is giving it back."""
        owner, key = lease.owner, lease.key
        waiting, current = owner.waiting.get(key, ()), owner.by_key[key]
        if len(waiting) >= _MOST_WAITING or (busy == "reject" and (waiting or not current.is_returning)):
            return False
        lease.granted = self._loop.create_future()
        owner.waiting.setdefault(key, deque()).append(lease)
        if lease.preempts:
            current.preempt()
        try:
            if not await lease.granted:
                raise SystemDraining(_LEFT)
        except asyncio.CancelledError:
            line = owner.waiting.get(key, deque())
            if lease in line:
                line.remove(lease)
            if not line:
                owner.waiting.pop(key, None)
            self._remove(lease)  # it was granted at this very moment, if it is there
            raise
        return True

    async def _claim(self, lease: Lease, writes: Sequence[Write] = ()) -> bool:
        owner = lease.owner
        if not owner.is_sure():
            await owner.enter()
        life, asked = owner.life, owner.now()
        try:
            claim = await self._ask(lease, writes)
        except WriteRefused as refused:
            if refused.reason != "owner":
                raise
            owner.end()  # it was revoked, or stopped for longer than it is alive, at this very moment
            await owner.enter()
            life, asked = owner.life, owner.now()
            claim = await self._ask(lease, writes)
        if owner.by_key.get(lease.key) is not lease:
            if claim is not None:
                await owner.access.commit(claim, (), then="release")
            raise SystemDraining(_LEFT)
        if claim is not None:
            owner.owed.pop(lease.key, None)
            lease.hold(claim, life, asked)
            if self._renew_timer is None:
                self._set_renew_timer()
        return claim is not None

    def _ask(self, lease: Lease, writes: Sequence[Write]) -> Coroutine[Any, Any, Claim | None]:
        """Have the store grant it. If who waits for the answer gives up, it is still heard, unless whatever the store is asked next comes after it."""
        access = lease.owner.access
        granting = access.claim(lease.key, lease.owner.name, writes, lease.former)
        return granting if access.answers_in_order else self._heard(lease, granting)

    async def _heard(self, lease: Lease, granting: Coroutine[Any, Any, Claim | None]) -> Claim | None:
        lease.asking = self._loop.create_task(granting)
        claim = await asyncio.shield(lease.asking)
        lease.asking = None
        return claim

    def _owe(self, lease: Lease) -> bool:
        """The store may have granted what no run waits for any more: it is to be given back. Returns False if the system is left."""
        is_left = self.keeper is None or not self.keeper.is_there
        if is_left and lease.asking is not None:
            lease.asking.cancel()
        if not is_left or self._by_store.get(lease.owner.access) is lease.owner:  # or else all that it has in the store is free by now
            lease.owner.owed[lease.key] = Debt(None, () if lease.undo is None else lease.undo())
            self._set_renew_timer()
        return not is_left  # then its owner gives it back when it leaves

    async def _settle_now(self, lease: Lease, *, may_wait: bool) -> None:
        """Give it back; if there is no time to wait for that, without waiting."""
        is_settled = False
        try:
            if may_wait:
                await self._settle(lease)
                is_settled = True
        finally:
            if not is_settled and self.keeper is not None:
                self.keeper.run_task(lease.owner, self._settle(lease))

    async def _settle(self, lease: Lease) -> None:
        """When the store has answered: give that back. If that cannot be done, it is done later."""
        if lease.asking is not None:
            await asyncio.gather(lease.asking, return_exceptions=True)
        try:
            await lease.owner.pay(lease.key)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises
            loggers.durability.warning("The lease of %s, which no run waits for any more, could not be given back yet: %s", lease.subject, error)
        self._rest()

    async def _compete(self, lease: Lease, mark: str, busy: Busy) -> bool:
        """Wait until another process gives it back. `mark` is the key that asks its holder to do so at once."""
        access, key = lease.owner.access, lease.key
        asked: str | None = None  # the holder that was asked
        delay = _FIRST_LOOK
        try:
            while True:
                if busy == "preempt" or lease.owner.is_wanted(key):
                    holder = await access.holder(key)
                    if holder is not None and (holder != asked or await access.get(mark) is None):
                        asked = holder  # before the mark is written: it may be written even if that fails, and has to be deleted
                        await access.set(mark, holder.encode())
                waited = asyncio.Event()
                timer = self._clock.call_later(delay, waited.set)
                try:
                    await waited.wait()
                finally:
                    timer.cancel()
                delay = min(2 * delay, _LAST_LOOK)
                if await self._claim(lease):
                    return True
        finally:
            if asked is not None:
                try:
                    await access.delete(mark)
                except Exception as error:  # noqa: BLE001 -- the turn is not lost because of that
                    loggers.durability.warning("The request for the lease %r could not be taken back: %s", key, error)

    # --- prolonging ---

    def _set_renew_timer(self) -> None:
        if self._renew_timer is None and self.keeper is not None:
            share = _RETRY_SHARE if self._is_late else _RENEW_SHARE
            self._renew_timer = self._clock.call_later(share * self._seconds, self._prolong)

    def _prolong(self) -> None:
        """Have each store told that the system is alive, each in a task of its own: one that does not answer must not cost the leases in the others."""
        self._renew_timer = None
        if self.keeper is None:
            return
        for owner in self._by_store.values():
            if owner in self._is_renewing:
                self._is_late.add(owner)
            if owner in self._is_late:
                owner.end_if_late()
            if (owner.by_key or owner.owed) and owner not in self._is_renewing:
                self._is_renewing.add(owner)
                self.keeper.run_task(owner, self._renew(owner))
        self._set_renew_timer()

    async def _renew(self, owner: StoreOwner) -> None:
        try:
            if await owner.renew():
                self._is_late.discard(owner)
            else:
                self._is_late.add(owner)
        finally:
            self._is_renewing.discard(owner)
        self._rest()

    # --- being asked by another process ---

    def _set_look_timer(self) -> None:
        if self._look_timer is None and any(owner.may_be_wanted() for owner in self._by_store.values()):
            self._look_timer = self._clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._look_timer = None
        if self.keeper is None:
            return
        for owner in self._by_store.values():
            if owner.may_be_wanted() and not owner.is_looking:
                self.keeper.run_task(owner, look_for_others(owner))
        self._set_look_timer()


def leases_of(system: Host) -> SystemLeases:
    """The leases of that system."""
    leases = system.belongings.get(SystemLeases)
    if leases is None:
        leases = system.belongings[SystemLeases] = SystemLeases(system)
    assert isinstance(leases, SystemLeases)
    return leases
