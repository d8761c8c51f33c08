"""The leases of one system in all of its stores.

This module manages the queue within the system for each lease, and the timers that renew the
system's owners and that check for other processes that want a turn. A lost lease is reported at
once, and its run must stop. No lease outlives its run, and trouble in one store never costs a lease
in another.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Coroutine, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import ref

from ..actor.actor import Actor
from ..actor.direct import stop_actor
from ..clock import Timer
from ..errors import ActorDeadError, SystemDraining, WriteRefused
from ..log import loggers
from ..stores.writes import Claim, Write
from .lease import Lease, LeaseState
from .store_access import StoreAccess
from .store_owner import PendingRelease, StoreOwner
from .wanted import look_for_others

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_messages import CancelRun

__all__ = ["Busy", "LeaseKeeper", "SystemLeases", "leases_of"]

PREEMPT_SECONDS: Final = 1.0
"""Seconds between checks of whether another process wants a session's turn at once."""

# Shares of an owner's time to live: when it is renewed, and when a failed renewal is retried.
_RENEW_SHARE: Final = 1 / 3
_RETRY_SHARE: Final = 1 / 30
# Seconds until a lease that another process holds is tried again; the delay doubles each time.
_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
# How many may wait for one turn in one system. More indicate a caller that sends without end.
_MOST_WAITING: Final = 1_000
_IDLE_SECONDS: Final = 5.0
"""Seconds for which an idle owner stays in its store, at most doubled.

So not every run needs a new one.
"""
_LEFT: Final = (
    "the actor system was left while something in it waited for a lease, or for its turn in a "
    "session. Start it again in another system."
)

Busy: TypeAlias = Literal["queue", "reject", "preempt"]


class LeaseKeeper(Actor):
    """The actor that ties `SystemLeases` to the life of its system; it exists while there are
    leases.

    Its mailbox takes leases whose holders cannot wait until they are returned. Its stop tells the
    stores that the system has exited.
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
        """Run a store operation in a task of the system."""
        owner.tasks.add(
            task := self._cell.system.run_task(
                work, f"{self._cell.path} waits for a store", self._cell.task_context
            )
        )
        task.add_done_callback(owner.tasks.discard)

    def leave(self) -> None:
        """Stop, because no lease is left."""
        self._is_needed = False
        stop_actor(self._cell, hook=False)

    async def on_receive(self, lease: Lease) -> None:
        await self._leases.release(lease)

    async def on_stop(self) -> None:  # type: ignore[override]  # a hook may be a coroutine
        if self._is_needed:
            self._is_needed = False
            await self._leases.close()


class SystemLeases:
    """The leases of one system: takes, renews and returns them.

    A plain object, for use on the system's event loop; `LeaseKeeper` is its actor.
    """

    __slots__ = (
        "__weakref__",
        "_by_store",
        "_clock",
        "_is_late",
        "_is_renewing",
        "_look_timer",
        "_loop",
        "_renew_timer",
        "_retire_timer",
        "_retiring",
        "_seconds",
        "_system",
        "keeper",
    )

    def __init__(self, system: Host) -> None:
        self._system = system
        self._clock = system.clock
        self._loop = system.loop
        self._seconds = system.lease_seconds
        self._by_store: dict[StoreAccess, StoreOwner] = {}
        self._renew_timer: Timer | None = None
        self._look_timer: Timer | None = None
        self._retire_timer: asyncio.TimerHandle | None = None
        # Owners that are being returned, until their stores have confirmed it.
        self._retiring: set[StoreOwner] = set()
        # Owners whose renewal is in progress.
        self._is_renewing: set[StoreOwner] = set()
        self._is_late: set[StoreOwner] = set()  # owners whose last renewal failed
        self.keeper: LeaseKeeper | None = None
        system.at_last(self.give_up)

    def take(
        self, access: StoreAccess, lease: Lease, writes: Sequence[Write] = ()
    ) -> Coroutine[Any, Any, bool]:
        """Take a lease, and write under it, in one step.

        It is renewed until it is returned. Returns False if another run or process has it.
        """
        return self._take(access, lease, "", "reject", writes)

    def stop_here(self, access: StoreAccess, key: str, request: CancelRun) -> bool:
        """End a run that this system has. Returns False if it has no run with that key."""
        owner = self._by_store.get(access)
        lease = None if owner is None else owner.by_key.get(key)
        if lease is None or lease.on_stop is None:
            return False
        lease.on_stop(request)
        return True

    async def take_turn(self, access: StoreAccess, lease: Lease, mark: str, busy: Busy) -> bool:
        """Take a lease when its turn has come.

        Returns False if another one is first and `busy` forbids waiting.
        """
        taken = await self._take(access, lease, mark, busy, ())
        if taken and lease.owner.is_wanted(lease.key):
            lease.preempt()
        return taken

    async def give_back(self, lease: Lease) -> None:
        """Pass a lease to the next one that waits for it here, or else return it to the store.

        If the store is unreachable, that is done later.
        """
        if not lease.is_returning:
            lease.is_returning = True
            try:
                await self.release(lease)
            except asyncio.CancelledError:  # those that wait must not wait forever
                lease.is_returning = False
                self.abandon(lease)
                raise

    def abandon(self, lease: Lease) -> None:
        """Return a lease without waiting for the store."""
        if not lease.is_returning and self.keeper is not None:
            lease.is_returning = True
            with contextlib.suppress(ActorDeadError):
                self.keeper.actor_ref.tell(lease)

    def is_at_work(self, access: StoreAccess, key: str) -> bool:
        """Return whether a run of this system has that lease, or is about to take it."""
        owner = self._by_store.get(access)
        return owner is not None and key in owner.by_key

    def is_wanted_here(self, lease: Lease) -> bool:
        """Return whether another run of this system waits for it."""
        return bool(lease.owner.waiting.get(lease.key))

    async def pay_debts(self, access: StoreAccess) -> None:
        """Return the leases whose return failed earlier."""
        owner = self._by_store.get(access)
        if owner is not None and owner.owed:
            await owner.pay_all()
            self._rest()

    async def release(self, lease: Lease) -> None:
        """Pass on a lease that is being returned."""
        owner, key = lease.owner, lease.key
        if owner.by_key.get(key) is not lease:
            return
        if lease.state is LeaseState.HELD and not self.is_wanted_here(lease):
            await owner.give_back(lease)
        if lease.state is LeaseState.HELD:
            lease.state = LeaseState.RETURNED
        self._remove(lease)

    async def close(self) -> None:
        """Return all leases, because the system exits."""
        self._end_timers()
        if self._retire_timer is not None:
            self._retire_timer.cancel()
            self._retire_timer = None
        # The task that retires an owner is cancelled with the system's other tasks, perhaps before
        # its store has been notified.
        self._retiring.update(self._by_store.values())
        self._by_store = {}
        await asyncio.gather(*map(self._leave, tuple(self._retiring)))

    def give_up(self) -> None:
        """Revoke the owners without waiting for their stores, because the exit was cut short."""
        owners = {*self._by_store.values(), *self._retiring}
        self._by_store = {}
        self._retiring.clear()
        for owner in owners:
            owner.give_up()

    def _end_timers(self) -> None:
        for timer in filter(None, (self._renew_timer, self._look_timer)):
            timer.cancel()
        self._renew_timer = self._look_timer = None

    # --- owners that are no longer needed ---

    def _set_retire_timer(self) -> None:
        """Set the timer on the event loop's own clock, with a weak reference.

        So an ended run does not keep its system alive.
        """
        if self._retire_timer is None:
            self._retire_timer = self._loop.call_later(_IDLE_SECONDS, _retire, ref(self))

    def retire(self) -> None:
        """Return the owners that have been idle since the last check."""
        self._retire_timer = None
        for access, owner in list(self._by_store.items()):
            if owner.is_resting() and owner.is_idle:
                del self._by_store[access]
                self._retiring.add(owner)
                self._system.run_task(
                    self._leave(owner), f"{owner.name} leaves its store", copy_context()
                )
            owner.is_idle = True
        if self._by_store:
            self._set_retire_timer()

    async def _leave(self, owner: StoreOwner) -> None:
        await owner.leave()
        self._retiring.discard(owner)

    def _remove(self, lease: Lease) -> None:
        """Forget a lease, unless another run waits for it."""
        owner, key = lease.owner, lease.key
        if owner.by_key.get(key) is not lease or (key in owner.waiting and owner.grant_next(key)):
            return
        del owner.by_key[key]
        if not owner.by_key:
            self._rest()

    def _rest(self) -> None:
        """If nothing is left to do, stop the actor and all timers except the retire timer."""
        resting = [
            owner for owner in self._by_store.values() if not owner.by_key and not owner.owed
        ]
        for owner in resting:
            # A store that does not answer must not keep a task of an ended run alive.
            for task in owner.tasks:
                if task is not asyncio.current_task():
                    task.cancel()
        if resting:
            self._set_retire_timer()
        if self.keeper is not None and len(resting) == len(self._by_store):
            keeper, self.keeper = self.keeper, None
            self._end_timers()
            keeper.leave()

    # --- claiming ---

    async def _take(
        self, access: StoreAccess, lease: Lease, mark: str, busy: Busy, writes: Sequence[Write]
    ) -> bool:
        owner = self._by_store.get(access)
        if owner is None:
            if not self._by_store:
                self._system.before_end(self.close)
            owner = self._by_store[access] = StoreOwner(access, self._system)
        owner.is_idle = False
        lease.owner = owner
        if self.keeper is None or not self.keeper.is_there:
            self._system.spawn_own(LeaseKeeper, (self,), None, None)
        if lease.key not in owner.by_key:
            owner.by_key[lease.key] = lease
        elif not await self._queue(lease, busy):
            return False
        try:
            taken = await self._claim(lease, writes) or (
                busy != "reject" and await self._compete(lease, mark, busy)
            )
        except BaseException as problem:
            owes = (
                lease.is_asked
                and not isinstance(problem, WriteRefused)
                and lease.state is LeaseState.NONE
                and self._owe(lease)
            )
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
        """Wait for the leases ahead in the queue.

        With `busy="reject"`, wait only for a single one that is being returned.
        """
        owner, key = lease.owner, lease.key
        waiting, current = owner.waiting.get(key, ()), owner.by_key[key]
        if len(waiting) >= _MOST_WAITING or (
            busy == "reject" and (waiting or not current.is_returning)
        ):
            return False
        lease.granted = self._loop.create_future()
        owner.waiting.setdefault(key, deque()).append(lease)
        if lease.preempts:
            current.preempt()
        try:
            if busy != "reject":
                await lease.queued()
            if not await lease.granted:
                raise SystemDraining(_LEFT)  # noqa: TRY301 -- leaves the queue, as a cancelled caller does
        except BaseException:
            line = owner.waiting.get(key, deque())
            if lease in line:
                line.remove(lease)
            if not line:
                owner.waiting.pop(key, None)
            self._remove(lease)  # in case it was granted at this very moment
            raise
        return True

    async def _claim(self, lease: Lease, writes: Sequence[Write] = ()) -> bool:
        owner = lease.owner
        claim, life, asked = await owner.ask(
            lease.subject, lambda name: self._ask(lease, name, writes)
        )
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

    def _ask(
        self, lease: Lease, name: str, writes: Sequence[Write]
    ) -> Coroutine[Any, Any, Claim | None]:
        """Ask the store to grant it.

        If the caller stops waiting, the answer is still received, unless the store answers in order
        anyway.
        """
        access = lease.owner.access
        lease.is_asked = True
        granting = access.claim(lease.key, name, writes)
        return granting if access.answers_in_order else self._heard(lease, granting)

    async def _heard(
        self, lease: Lease, granting: Coroutine[Any, Any, Claim | None]
    ) -> Claim | None:
        lease.asking = self._loop.create_task(granting)
        claim = await asyncio.shield(lease.asking)
        lease.asking = None
        return claim

    def _owe(self, lease: Lease) -> bool:
        """Schedule the return of a lease that the store may have granted to a run that no longer
        waits.

        Returns False if the system has exited.
        """
        is_left = self.keeper is None or not self.keeper.is_there
        if is_left and lease.asking is not None:
            lease.asking.cancel()
        # Otherwise everything it had in the store is free by now.
        if not is_left or self._by_store.get(lease.owner.access) is lease.owner:
            lease.owner.owed[lease.key] = PendingRelease(
                None, () if lease.undo is None else lease.undo()
            )
            self._set_renew_timer()
        return not is_left  # otherwise its owner returns it on exit

    async def _settle_now(self, lease: Lease, *, may_wait: bool) -> None:
        """Return it; if there is no time to wait for that, without waiting."""
        is_settled = False
        try:
            if may_wait:
                await self._settle(lease)
                is_settled = True
        finally:
            if not is_settled and self.keeper is not None:
                self.keeper.run_task(lease.owner, self._settle(lease))

    async def _settle(self, lease: Lease) -> None:
        """Once the store has answered, return the lease. If that fails, it is done later."""
        if lease.asking is not None:
            await asyncio.gather(lease.asking, return_exceptions=True)
        try:
            await lease.owner.pay(lease.key)
        except Exception as error:  # noqa: BLE001 -- a store may raise anything
            loggers.durability.warning(
                "The lease of %s, which no run needs any longer, could not be released yet: %s",
                lease.subject,
                error,
            )
        self._rest()

    async def _compete(self, lease: Lease, mark: str, busy: Busy) -> bool:
        """Wait until another process returns it.

        `mark` is the key that asks its holder to do so at once.
        """
        access, key = lease.owner.access, lease.key
        asked: str | None = None  # the holder that was last asked
        delay = _FIRST_LOOK
        try:
            await lease.queued()
            while True:
                if busy == "preempt" or lease.owner.is_wanted(key):
                    holder = await access.holder(key)
                    if holder is not None and (holder != asked or await access.get(mark) is None):
                        # Set before the mark is written: a failed write may still have stored it,
                        # and it must be deleted.
                        asked = holder
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
                    loggers.durability.warning(
                        "The request for the lease %r could not be withdrawn: %s", key, error
                    )

    # --- renewal ---

    def _set_renew_timer(self) -> None:
        if self._renew_timer is None and self.keeper is not None:
            share = _RETRY_SHARE if self._is_late else _RENEW_SHARE
            self._renew_timer = self._clock.call_later(share * self._seconds, self._prolong)

    def _prolong(self) -> None:
        """Renew the owner in each store, each in its own task.

        So one store that does not answer does not cost the leases in the others.
        """
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

    # --- requests of other processes ---

    def _set_look_timer(self) -> None:
        if self._look_timer is None and any(
            owner.may_be_wanted() for owner in self._by_store.values()
        ):
            self._look_timer = self._clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._look_timer = None
        if self.keeper is None:
            return
        for owner in self._by_store.values():
            if owner.may_be_wanted() and not owner.is_looking:
                self.keeper.run_task(owner, look_for_others(owner))
        self._set_look_timer()


def _retire(leases: ref[SystemLeases]) -> None:
    if (found := leases()) is not None:
        found.retire()


def leases_of(system: Host) -> SystemLeases:
    """Return the leases of that system."""
    leases = system.belongings.get(SystemLeases)
    if leases is None:
        leases = system.belongings[SystemLeases] = SystemLeases(system)
    assert isinstance(leases, SystemLeases)
    return leases
