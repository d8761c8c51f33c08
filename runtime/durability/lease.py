"""One lease: the right of one run, or of one turn of a session, to write what it stands for.

Owns: `Lease`, which is taken, lost or given back once, and through which everything goes that is written by that right: so nothing is written by a lease that
is not there any more. Whether it still is, the store decides at each write. It must never decide who gets it next: `leases.py` does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..errors import RunLost, WriteRefused
from ..stores.writes import Claim, Ending, Write

if TYPE_CHECKING:
    from ..agent.run_messages import CancelRun
    from .store_owner import StoreOwner

__all__ = ["FRESH_SECONDS", "Lease", "LeaseState"]

_TRIES: Final = 3
"""How often a process asks whether it has a lease still, that is held up each time for longer than the answer is good."""


FRESH_SECONDS: Final = 0.1
"""For how long an answer of the store is good enough to begin a tool by. The reply that wants the tool was written just before, so it seldom is asked again."""


class LeaseState(Enum):
    """Where a lease is in its life. It moves forward only."""

    NONE = "none"
    """It was not taken yet."""
    HELD = "held"
    """What it stands for is written through it."""
    LOST = "lost"
    """Another process may have it by now."""
    RETURNED = "returned"
    """It was given back."""


class Lease:
    """One lease that a run has, or waits for."""

    __slots__ = (
        "asked",
        "asking",
        "claim",
        "former",
        "granted",
        "is_returning",
        "is_unfinished",
        "key",
        "life",
        "on_lost",
        "on_stop",
        "on_wanted",
        "owner",
        "preempts",
        "state",
        "subject",
        "undo",
    )

    def __init__(
        self,
        key: str,
        subject: str,
        on_lost: Callable[[], object],
        on_wanted: Callable[[], object] | None = None,
        *,
        former: str | None = None,
        preempts: bool = False,
        on_stop: Callable[[CancelRun], object] | None = None,
    ) -> None:
        self.key = key
        self.subject = subject  # what it stands for, for errors
        self.former = former  # the key of the lease by which the version before this one held the same thing
        self.on_lost = on_lost  # called if another process may have it by now
        self.on_wanted = on_wanted  # called once, if another run wants it at once; None if none can, or it was called
        self.on_stop = on_stop  # called, if another process wants the run to end; None if none can
        self.preempts = preempts  # whether it is wanted at once here
        self.state = LeaseState.NONE
        self.claim: Claim | None = None  # as it was taken last
        self.asked = -math.inf  # when the store was asked last that has said that it is there
        self.life = 0  # the life of its owner in which the store has last said that it is there
        self.is_unfinished = False  # whether what it stands for is for other owners to continue
        self.is_returning = False  # whether it is being given back
        self.undo: Callable[[], Sequence[Write]] | None = None  # says what takes back that it was taken, if the run never heard of that
        self.asking: asyncio.Task[Claim | None] | None = None  # the store's answer, if the run waits for it no longer
        self.owner: StoreOwner  # set when it is first asked for
        self.granted: asyncio.Future[bool]  # for one that waits: whether its turn has come; False if the system was left

    @property
    def fence(self) -> int:
        """The epoch since which it is held: larger than that of all before it."""
        return 0 if self.claim is None else self.claim.epoch

    @property
    def is_held(self) -> bool:
        return self.state is LeaseState.HELD

    def is_sure(self) -> bool:
        """Whether there is time enough left to begin something, by a clock that counts the time for which this machine was suspended."""
        owner = self.owner
        return self.state is LeaseState.HELD and self.life == owner.life and owner.is_sure() and self.claim is not None and self.claim.owner == owner.name

    def is_fresh(self) -> bool:
        """Whether that is so, and the store has said so a moment ago: what was revoked meanwhile does not show on any clock."""
        return self.is_sure() and self.owner.now() - self.asked <= FRESH_SECONDS

    async def make_sure(self) -> None:
        """Return when there is time enough, and the store has said so a moment ago. Raises `RunLost` if another process may have it.

        An owner whose time was over, and which is alive again, may have lost this to another one meanwhile: only the store knows.
        """
        for _ in range(_TRIES):
            if self.is_fresh():
                return
            if self.state is not LeaseState.HELD:
                break
            await self.owner.enter()
            life = self.owner.life
            await self.commit(())
            self.life = life
        if not self.is_sure():
            self.lose()
            raise self.lost_error()

    def hold(self, claim: Claim, life: int, asked: float) -> None:
        """It was taken, in that life of its owner, by what the store was asked then."""
        self.claim, self.life, self.asked = claim, life, asked
        self.state = LeaseState.HELD

    async def leave(self) -> None:
        """Give it back to the store."""
        await self.commit((), then="release" if self.is_unfinished else "forget")

    async def commit(self, writes: Sequence[Write], *, then: Ending = "keep") -> None:
        """Write in one step, if it is still there. Raises `RunLost`, and has written nothing, if it is not."""
        if self.state is not LeaseState.HELD:
            raise self.lost_error()
        assert self.claim is not None
        asked = self.owner.now()
        try:
            try:
                await self.owner.commit(self.claim, writes, then)
            except WriteRefused as refused:
                # An owner that was held up for longer than its time is alive again, if it was not revoked: it has what no other one took.
                if refused.reason != "owner" or not await self.owner.revive(self.claim.owner):
                    raise
                await self.owner.commit(self.claim, writes, then)
        except WriteRefused as refused:
            if refused.reason == "value":
                raise
            error = self.lost_error(str(refused))
            if refused.reason == "owner" and self.claim.owner == self.owner.name:
                self.owner.end()
            self.lose()
            raise error from refused
        self.asked = asked
        if then != "keep":
            self.state = LeaseState.RETURNED

    def lost_error(self, why: str = "") -> RunLost:
        said = why or "its time was over before it could be prolonged, or it was revoked, and another process may continue it"
        return RunLost(f"{self.subject} is not this process's any more: {said}")

    def preempt(self) -> None:
        """Report that it is wanted at once. Only the first time: a second one would cut short the orderly end of the run."""
        on_wanted, self.on_wanted = self.on_wanted, None
        if on_wanted is not None:
            on_wanted()

    def lose(self) -> None:
        """Another process may have it by now."""
        if self.state is LeaseState.HELD:
            self.state = LeaseState.LOST
            self.on_lost()
