"""One system as an owner in one store: alive while it renews itself, and gone with everything it
holds when it does not.

The owner's name is unique across all processes. This module tracks until when the owner is
certainly alive, its leases, and the runs that wait for them. An owner that may still be running
never counts as gone: only an owner of this very process, whose system no longer exists, is known to
be gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from logging import DEBUG, WARNING
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from ..data.chat import new_id
from ..errors import StoreError, WriteRefused
from ..log import loggers
from ..stores.writes import Expect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from ..actor.host import Host
    from ..stores.writes import Claim, Ending, Write
    from .lease import Lease
    from .store_access import StoreAccess

__all__ = ["PendingRelease", "StoreOwner", "is_gone"]

T = TypeVar("T")

_MARGIN: Final = 6
"""Divisor for the safety margin: the part of its time to live that an owner leaves unused.

It must have stopped before others may start.
"""


_NAMES: Final = 3
"""How many names a system tries, in turn, if the store refuses a claim of an unknown owner."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingRelease:
    """A claim that is still to be returned."""

    claim: Claim | None
    """None: it is unknown whether there is one."""
    undo: Sequence[Write] = ()
    """Writes made with the claim that must be undone."""
    writes: Sequence[Write] = ()
    """Writes of the step that returns it."""
    paying: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the claim is being returned.

    Of two concurrent attempts, the second would claim what the first one has claimed.
    """


class StoreOwner:
    """One system in one store."""

    __slots__ = (
        "__weakref__",
        "_entering",
        "_failures",
        "_has_entered",
        "_loop",
        "_problem",
        "_quiet",
        "_until",
        "_writes",
        "access",
        "by_key",
        "is_idle",
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
        """The clock by which it judges whether it is alive, including suspended time of this
        machine.
        """
        self._loop = system.loop
        self._entering = asyncio.Lock()
        self._failures = 0  # failed attempts to renew itself in the store
        self._problem = ""  # the reason of the last failure
        self._writes = 0  # writes in progress
        # Set when no write is in progress; the exit of the system waits for it.
        self._quiet: asyncio.Event | None = None
        # Incremented each time that the owner may have expired before the store heard from it
        # again: others may have taken something in the meantime.
        self.life = 0
        self.by_key: dict[str, Lease] = {}  # leases that the system has, takes, or returns
        self.waiting: dict[str, deque[Lease]] = {}  # waiting for one of those, the next one first
        self.owed: dict[str, PendingRelease] = {}  # claims that could not be returned yet
        self.tasks: set[asyncio.Task[None]] = set()  # tasks that wait for the store
        # Whether nothing was taken since the last idle check.
        self.is_idle = False
        # Whether the store is being asked which leases another process wants at once.
        self.is_looking = False
        self._rename()

    def _rename(self) -> None:
        self.name = f"{_process(os.getpid())}/{new_id()}"
        self._has_entered = False
        self._until = -math.inf
        _owners[self.name] = self

    # --- liveness ---

    def is_sure(self) -> bool:
        """Return whether no other process can have taken anything from it, now or soon."""
        return self.now() < self._until - self.seconds / _MARGIN

    async def _attempt(self, tell: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Send the store something, one caller at a time.

        Callers that wait while an attempt fails share its error, instead of waiting for an attempt
        of their own.
        """
        failures = self._failures
        async with self._entering:
            if self._failures != failures:
                raise StoreError(self._problem)
            try:
                return await tell()
            except Exception as error:
                self._failures, self._problem = self._failures + 1, str(error)
                raise

    async def enter(self) -> None:
        """Make sure that the owner is alive.

        If the store no longer knows this owner, everything it had is lost, and it continues under
        another name.
        """
        if not self.is_sure():
            await self._attempt(self._enter)

    async def _enter(self) -> None:
        if self.is_sure():
            return
        await self._prolong_own()
        while not self._has_entered:
            started, name = self.now(), self.name
            await self.access.keep_alive(name, self.seconds, first=True)
            if name == self.name:
                self._has_entered, self._until = True, started + self.seconds

    async def ask(
        self, subject: str, claim: Callable[[str], Awaitable[Claim | None]]
    ) -> tuple[Claim | None, int, float]:
        """Ask the store for a claim.

        Returns its answer, and the life of this owner and the time of the request.

        If the store does not know this owner, it asks again under another name.
        """
        for _ in range(_NAMES):
            if not self.is_sure():
                await self.enter()
            name, life, asked = self.name, self.life, self.now()
            try:
                return await claim(name), life, asked
            except WriteRefused as refused:
                if refused.reason != "owner":
                    raise
                # It was revoked, or stalled past its expiry, at this very moment
                self.end(name)
        msg = (
            f"{subject} was not claimed: the store has lost {_NAMES} owners in a row right "
            "after it registered them. Check whether something revokes them or empties the store."
        )
        raise StoreError(msg)

    async def revive(self, name: str) -> bool:
        """Revive the owner of that name after it expired.

        Returns False if it was revoked, or has another name by now.
        """

        async def prolong() -> bool:
            return name == self.name and await self._prolong(name)

        return await self._attempt(prolong)

    async def _prolong_own(self) -> None:
        """Renew the owner. If the store no longer knows it, everything it had is lost."""
        name = self.name
        if self._has_entered and not await self._prolong(name):
            self.end(name)

    async def _prolong(self, name: str) -> bool:
        started = self.now()
        alive = await self.access.keep_alive(name, self.seconds)
        if alive and name == self.name:
            if self.now() >= self._until:
                self.life += 1
            self._until = max(self._until, started + self.seconds)
        return alive

    async def renew(self) -> bool:
        """Renew the owner, and return the claims that are still owed.

        If the renewal was too late, everything it has is lost. Returns whether it succeeded.
        """
        try:
            await self._attempt(self._prolong_own)
            await self.pay_all(but_those_under_way=True)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, its leases expire
            if self.by_key:
                left = self._until - self.now()
                loggers.durability.warning(
                    "%d leases could not be renewed, and expire in %.1f s unless that succeeds: %s",
                    len(self.by_key),
                    max(0.0, left),
                    error,
                )
            else:
                loggers.durability.warning(
                    "%d leases could not be released yet: %s", len(self.owed), error
                )
            self.end_if_late()
            return False
        return True

    def end_if_late(self) -> None:
        """Lose all leases if less than the safety margin of its time is left.

        Other processes may take them when the time is over.
        """
        if self._has_entered and not self.is_sure():
            self.end(self.name)

    def end(self, name: str) -> None:
        """Give up everything that the owner of that name has, because it may have expired.

        Does nothing if it has another name by now.

        Several calls are refused at once when an owner is revoked: only the first of them may
        rename it, or the others would end the new owner.
        """
        if name != self.name:
            return
        _owners.pop(name, None)
        self._rename()
        self.owed.clear()
        for lease in list(self.by_key.values()):
            lease.lose()

    async def give_back(self, lease: Lease) -> None:
        """Return a lease to the store. If that fails now, it is owed."""
        try:
            await lease.leave()
        except Exception as error:  # noqa: BLE001 -- it is returned later, or the owner expires
            if lease.is_held:
                loggers.durability.warning(
                    "The lease of %s could not be released yet: %s", lease.subject, error
                )
                self.owe(lease.key, lease.claim, lease.last_writes())

    def owe(self, key: str, claim: Claim | None, writes: Sequence[Write] = ()) -> None:
        """Schedule the return of a claim, with its writes."""
        self.owed[key] = PendingRelease(claim, writes=writes)

    async def pay_all(self, *, but_those_under_way: bool = False) -> None:
        for key, debt in list(self.owed.items()):
            if not (but_those_under_way and debt.paying.locked()):
                await self.pay(key)

    async def pay(self, key: str) -> None:
        """Return a claim whose return failed earlier, unless it was taken again."""
        debt = self.owed.get(key)
        if debt is not None:
            async with debt.paying:
                await self._pay(key, debt)

    async def _pay(self, key: str, debt: PendingRelease) -> None:
        if debt.claim is None and self._is_due(key, debt):
            # The owner may have a new name that the store does not know yet, and that cannot claim
            # anything.
            await self.enter()
        if self._is_due(key, debt):
            name = self.name if debt.claim is None else debt.claim.owner
            try:
                claim = debt.claim or await self.access.claim(key, name)
                if claim is not None and not (debt.undo and await self._undo(claim, debt.undo)):
                    # It was returned, and only the answer was lost
                    with contextlib.suppress(WriteRefused):
                        await self.access.commit(claim, debt.writes, then="release")
            except WriteRefused as refused:
                if refused.reason != "owner":
                    raise
                # It was revoked, or stalled past its expiry: everything it had is free
                self.end(name)
        if self.owed.get(key) is debt:
            self.owed.pop(key, None)

    def _is_due(self, key: str, debt: PendingRelease) -> bool:
        return self.owed.get(key) is debt and key not in self.by_key

    async def _undo(self, claim: Claim, undo: Sequence[Write]) -> bool:
        """Undo the writes that were made with the claim.

        Returns False if there is other data by now, which belongs to another process.
        """
        # Otherwise it was never written, and there is no reason to leave a claim.
        for writes in (
            undo,
            (Expect(claim.key),),
        ):
            try:
                await self.access.commit(claim, writes, then="forget")
            except WriteRefused as refused:
                if refused.reason == "epoch":
                    return True  # a run of this system has taken it again in the meantime
                if refused.reason != "value":
                    raise
            else:
                return True
        return False

    def is_closed(self) -> bool:
        """Return whether its system can no longer do anything."""
        return self._loop.is_closed()

    def is_resting(self) -> bool:
        """Return whether nothing remains to be written in its name."""
        return not (
            self.by_key
            or self.owed
            or self.waiting
            or self.tasks
            or self._writes
            or self._entering.locked()
        )

    # --- its claims ---

    async def commit(self, claim: Claim, writes: Sequence[Write], then: Ending) -> None:
        """Write under one of its claims."""
        self._writes += 1
        try:
            await self.access.commit(claim, writes, then=then)
        finally:
            self._writes -= 1
            if self._quiet is not None and not self._writes:
                self._quiet.set()

    def grant_next(self, key: str) -> bool:
        """Pass a lease on to the next one that waits for it here, which claims it again.

        Returns False if none does.
        """
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
        """Return whether a run that waits here for that lease wants it at once."""
        return any(lease.preempts for lease in self.waiting.get(key, ()))

    def may_be_wanted(self) -> bool:
        return any(
            lease.on_wanted is not None or lease.on_stop is not None
            for lease in self.by_key.values()
        )

    async def leave(self) -> None:
        """Leave the store, because the system exits or no longer needs it.

        Writes in progress finish first; then the owner is removed from the store, and everything it
        still has is free.
        """
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
        if entered:
            has_leases = bool(held or self.owed)
            try:
                if self.tasks:
                    await asyncio.wait(self.tasks)
                # Undo the start record of a run that was cancelled in the meantime: no other
                # process may continue it.
                for problem in await asyncio.gather(
                    self.pay_all(), *map(self._release, held), return_exceptions=True
                ):
                    if problem is not None:
                        raise problem  # noqa: TRY301 -- reported below as the owner's error
                await self.access.revoke(name)
            except Exception as error:  # noqa: BLE001 -- whatever a store raises, the owner expires
                said = (
                    "The leases of %s could not be given back, and expire in %g s: %s"
                    if has_leases
                    else "Owner %s, which has no lease, stays for %g s: %s"
                )
                loggers.durability.log(
                    WARNING if has_leases else DEBUG, said, name, self.seconds, error
                )
        _owners.pop(name, None)

    def give_up(self) -> None:
        """Have the store revoke the owner without waiting, because the system's exit is cut
        short.
        """
        if self._has_entered:
            self.access.revoke_soon(self.name)
        _owners.pop(self.name, None)

    async def _release(self, lease: Lease) -> None:
        """Release an unfinished run for others, without counting an attempt against it."""
        writes = lease.last_writes()
        if lease.is_held and lease.claim is not None and (lease.is_unfinished or writes):
            with contextlib.suppress(WriteRefused):  # another owner has it by now
                await self.access.commit(
                    lease.claim, writes, then="release" if lease.is_unfinished else "forget"
                )


# The owners of this process that may still be active, by their names.
_owners: Final[WeakValueDictionary[str, StoreOwner]] = WeakValueDictionary()


def is_gone(name: str) -> bool:
    """Return whether this owner certainly does nothing any more.

    That is known of owners of this process whose system no longer exists.
    """
    process, _, _ = name.rpartition("/")
    if process != _process(os.getpid()):
        return False
    owner = _owners.get(name)
    return owner is None or owner.is_closed()


@lru_cache(maxsize=1)  # by the process id, because a forked process inherits this cache
def _process(pid: int) -> str:
    """Return a name that no other process ever has.

    The process id is only for human readers.
    """
    return f"{pid}-{new_id()}"
