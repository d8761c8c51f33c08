"""One system as an owner in one store: alive there as long as it says so, and gone with all that it has when it does not.

Owns: the owner's name, which no other owner of any process ever has; until when it is certainly alive; the leases that it has, and the runs of its system that
wait for one of them. It must never call an owner gone that may still be at work: only one of this very process, whose system is no more, is known to be.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from ..data.chat import new_id
from ..errors import WriteRefused
from ..log import loggers
from ..stores.writes import Expect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..actor.host import Host
    from ..stores.writes import Claim, Ending, Write
    from .lease import Lease
    from .store_access import StoreAccess

__all__ = ["Debt", "StoreOwner", "is_gone"]

_MARGIN: Final = 6
"""The part of its time, as a divisor, that an owner leaves unused: it must have stopped before others may begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Debt:
    """A claim that is to be given back."""

    claim: Claim | None
    """None: it is not known whether there is one."""
    undo: Sequence[Write] = ()
    """What was written when it was taken, and is to be taken back."""
    paying: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while that is done. The second of two that do it at once would claim what the first one has claimed."""


class StoreOwner:
    """One system in one store."""

    __slots__ = (
        "__weakref__",
        "_entering",
        "_has_entered",
        "_loop",
        "_quiet",
        "_until",
        "_writes",
        "access",
        "by_key",
        "is_looking",
        "life",
        "name",
        "now",
        "owed",
        "seconds",
        "tasks",
        "waiting",
    )

    def __init__(self, access: StoreAccess, system: Host) -> None:
        self.access = access
        self.seconds = system.lease_seconds
        self.now: Callable[[], float] = getattr(system.clock, "boottime", system.clock.monotonic)
        """The time by which it judges whether it is alive: one that counts the time for which this machine was suspended."""
        self._loop = system.loop
        self._entering = asyncio.Lock()
        self._writes = 0  # that are under way
        self._quiet: asyncio.Event | None = None  # what is waited for when the system is left: that there are none
        self.life = 0  # one more each time that its time may have been over before the store heard of it again: others may have taken something meanwhile
        self.by_key: dict[str, Lease] = {}  # that the system has, takes, or gives back
        self.waiting: dict[str, deque[Lease]] = {}  # for one of those, the next one first
        self.owed: dict[str, Debt] = {}  # claims that could not be given back yet
        self.tasks: set[asyncio.Task[None]] = set()  # that wait for the store
        self.is_looking = False  # whether the store is being asked which leases another process wants at once
        self._rename()

    def _rename(self) -> None:
        self.name = f"{_process(os.getpid())}/{new_id()}"
        self._has_entered = False
        self._until = -math.inf
        _owners[self.name] = self

    # --- being alive ---

    def is_sure(self) -> bool:
        """Whether no other process can have taken anything from it yet, nor will for a while."""
        return self.now() < self._until - self.seconds / _MARGIN

    async def enter(self) -> None:
        """Be certainly alive. What it had is lost if the store knows it no more: it goes on under another name."""
        if self.is_sure():
            return
        async with self._entering:
            if self.is_sure():
                return
            if self._has_entered and not await self._prolong():
                self.end()
            if not self._has_entered:
                started = self.now()
                await self.access.keep_alive(self.name, self.seconds, first=True)
                self._has_entered = True
                self._until = started + self.seconds

    async def revive(self, name: str) -> bool:
        """Be alive again under that name, after its time was over. Returns False if it was revoked, or has another name by now."""
        async with self._entering:
            return name == self.name and await self._prolong()

    async def _prolong(self) -> bool:
        started, name = self.now(), self.name
        alive = await self.access.keep_alive(name, self.seconds)
        if alive and name == self.name:
            if self.now() >= self._until:
                self.life += 1
            self._until = max(self._until, started + self.seconds)
        return alive

    async def renew(self) -> bool:
        """Say that it is alive. If it was not heard in time, all that it has is lost. Returns whether it was heard."""
        try:
            async with self._entering:
                if self._has_entered and not await self._prolong():
                    self.end()
            await self.pay_all(but_those_under_way=True)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, its leases expire
            if self.by_key:
                left = self._until - self.now()
                loggers.durability.warning("%d leases could not be prolonged, and expire in %.1f s if that lasts: %s", len(self.by_key), max(0.0, left), error)
            else:
                loggers.durability.warning("%d leases could not be given back yet: %s", len(self.owed), error)
            self.end_if_late()
            return False
        return True

    def end_if_late(self) -> None:
        """If its time is over but for the margin: stop before others begin."""
        if self._has_entered and not self.is_sure():
            self.end()

    def end(self) -> None:
        """It is not alive any more, or may not be: all that it has is lost."""
        _owners.pop(self.name, None)
        self._rename()
        self.owed.clear()
        for lease in list(self.by_key.values()):
            lease.lose()

    async def give_back(self, lease: Lease) -> None:
        """Give a lease back to the store. If that cannot be done now, it is owed."""
        try:
            await lease.leave()
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, it is given back later, or the owner's time ends
            if lease.is_held:
                loggers.durability.warning("The lease of %s could not be given back yet: %s", lease.subject, error)
                self.owed[lease.key] = Debt(lease.claim)

    async def pay_all(self, *, but_those_under_way: bool = False) -> None:
        for key, debt in list(self.owed.items()):
            if not (but_those_under_way and debt.paying.locked()):
                await self.pay(key)

    async def pay(self, key: str) -> None:
        """Give back what could not be given back when it was due, unless it was taken anew."""
        debt = self.owed.get(key)
        if debt is not None:
            async with debt.paying:
                try:
                    await self._pay(key, debt)
                except WriteRefused as refused:
                    if refused.reason != "owner":
                        raise
                    self.end()  # it was revoked, or stopped for longer than it is alive: what it had is free, and it goes on under another name

    async def _pay(self, key: str, debt: Debt) -> None:
        if debt.claim is None and self._is_due(key, debt):
            await self.enter()  # it may have another name by now, of which the store has not heard: that is given nothing
        if self._is_due(key, debt):
            claim = debt.claim or await self.access.claim(key, self.name)
            if claim is not None and not (debt.undo and await self._undo(claim, debt.undo)):
                with contextlib.suppress(WriteRefused):  # it was given back, and only the answer was lost
                    await self.access.commit(claim, (), then="release")
        if self.owed.get(key) is debt:
            self.owed.pop(key, None)

    def _is_due(self, key: str, debt: Debt) -> bool:
        return self.owed.get(key) is debt and key not in self.by_key

    async def _undo(self, claim: Claim, undo: Sequence[Write]) -> bool:
        """Take back what was written when it was taken. Returns False if there is something else by now, which is another's."""
        for writes in (undo, (Expect(claim.key),)):  # or else it never was written, and there is nothing to leave a claim for
            try:
                await self.access.commit(claim, writes, then="forget")
            except WriteRefused as refused:
                if refused.reason == "epoch":
                    return True  # a run of this system has taken it anew meanwhile
                if refused.reason != "value":
                    raise
            else:
                return True
        return False

    def is_closed(self) -> bool:
        """Whether its system cannot do anything any more."""
        return self._loop.is_closed()

    # --- what it has ---

    async def commit(self, claim: Claim, writes: Sequence[Write], then: Ending) -> None:
        """Write by one of its claims."""
        self._writes += 1
        try:
            await self.access.commit(claim, writes, then=then)
        finally:
            self._writes -= 1
            if self._quiet is not None and not self._writes:
                self._quiet.set()

    def grant_next(self, key: str) -> bool:
        """Pass a lease on to the next one that waits for it here, which takes it anew. Returns False if none does."""
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
        return any(lease.on_wanted is not None or lease.on_stop is not None for lease in self.by_key.values())

    async def leave(self) -> None:
        """The system is left. What is being written is written; then all that it still has is free for other processes, at once."""
        held, name, entered = list(self.by_key.values()), self.name, self._has_entered
        for waiting in self.waiting.values():
            for lease in waiting:
                if not lease.granted.done():
                    lease.granted.set_result(False)
        self.by_key.clear()
        self.waiting.clear()
        while self._writes:
            self._quiet = self._quiet or asyncio.Event()
            self._quiet.clear()
            await self._quiet.wait()
        if entered and (held or self.owed):
            try:
                if self.tasks:
                    await asyncio.wait(self.tasks)
                # What a run had begun with that was cancelled meanwhile is taken back: no other process is to continue that.
                for problem in await asyncio.gather(self.pay_all(), *map(self._release, held), return_exceptions=True):
                    if problem is not None:
                        raise problem  # noqa: TRY301 -- it is said below as one of the owner
                await self.access.revoke(name)
            except Exception as error:  # noqa: BLE001 -- whatever a store raises, the owner's time comes to its end
                loggers.durability.warning("The leases of %s could not be given back, and expire in %g s: %s", name, self.seconds, error)
        _owners.pop(name, None)

    async def _release(self, lease: Lease) -> None:
        """Leave for others what is unfinished, and has not ended this process."""
        if lease.is_held and lease.is_unfinished and lease.claim is not None:
            with contextlib.suppress(WriteRefused):  # it is another's by now
                await self.access.commit(lease.claim, (), then="release")


# The owners of this process by their names: those that may be at work.
_owners: Final[WeakValueDictionary[str, StoreOwner]] = WeakValueDictionary()


def is_gone(name: str) -> bool:
    """Whether it is certain that this owner does nothing any more: it is of this process, and its system is gone."""
    process, _, _ = name.rpartition("/")
    if process != _process(os.getpid()):
        return False
    owner = _owners.get(name)
    return owner is None or owner.is_closed()


@lru_cache(maxsize=1)  # by the process id, because a forked process inherits this cache
def _process(pid: int) -> str:
    """A name that no other process ever has. The process id is there to be read, and proves nothing."""
    return f"{pid}-{new_id()}"
