"""One lease: the right of one run, or of one turn of a session, to write.

A `Lease` is taken once, and lost or returned once. All writes of its run go through it, so nothing
is written under a lost lease: the store checks the lease at each write. `leases.py` decides who
gets it next.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Generator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from ..errors import RunLost, StoreError, WriteRefused
from ..stores.writes import Claim, Ending, Write

if TYPE_CHECKING:
    from ..agent.run_messages import CancelRun
    from .store_owner import StoreOwner

__all__ = ["FRESH_SECONDS", "Lease", "LeaseState"]

_TRIES: Final = 3
"""How often a lease is confirmed again, if each confirmation arrives too late to be fresh."""


FRESH_SECONDS: Final = 0.1
"""Seconds for which the store's answer is recent enough to start a tool.

The reply that requests the tool was written just before, so this rarely costs another request.
"""


class LeaseState(Enum):
    """The state of a lease. It only moves forward."""

    NONE = "none"
    """It was not taken yet."""
    HELD = "held"
    """The run writes through it."""
    LOST = "lost"
    """Another process may hold it by now."""
    RETURNED = "returned"
    """It was returned."""


class _Wait:
    """A coroutine that waits for the store and can be stopped, without one task per write."""

    __slots__ = ("_coroutine", "_future", "is_stopped")

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine
        self._future: asyncio.Future[Any] | None = None  # the future that it waits for
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        if self._future is not None:
            self._future.cancel()

    def __await__(self) -> Generator[Any, Any, None]:
        step: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        while True:
            try:
                self._future = step(given)
            except StopIteration:
                return
            try:
                given = yield self._future
                step = self._coroutine.send
            except BaseException as error:  # noqa: BLE001 -- every error belongs to the coroutine
                step, given = self._coroutine.throw, error


class Lease:
    """One lease that a run holds or waits for."""

    __slots__ = (
        "_waits",
        "asked",
        "asking",
        "at_leave",
        "claim",
        "granted",
        "is_asked",
        "is_returning",
        "is_unfinished",
        "key",
        "life",
        "on_lost",
        "on_queued",
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
        preempts: bool = False,
        on_stop: Callable[[CancelRun], object] | None = None,
    ) -> None:
        self.key = key
        self.subject = subject  # the run or turn, for errors
        self.on_lost = on_lost  # called if another process may hold it by now
        # Called once, if another run wants it at once; None if none can, or after that call.
        self.on_wanted = on_wanted
        self.on_stop = on_stop  # called if another process wants the run to end; None if none can
        self.preempts = preempts  # whether this waiter wants it at once
        self.state = LeaseState.NONE
        self.claim: Claim | None = None  # as it was last taken
        self.asked = -math.inf  # time of the last request that the store confirmed
        self.life = 0  # the life of its owner in which the store last confirmed it
        self.is_unfinished = False  # whether other owners must continue the run or turn
        self.is_asked = False  # whether the store was asked for it, and so may have granted it
        self.is_returning = False  # whether it is being returned
        # Returns the writes of the step that returns the lease.
        self.at_leave: Callable[[], Sequence[Write]] | None = None
        # Called once, when it is not free and is waited for.
        self.on_queued: Callable[[], Coroutine[object, None, None]] | None = None
        # Returns the writes that undo the claim, if the run never received it.
        self.undo: Callable[[], Sequence[Write]] | None = None
        # The store's answer, if the run no longer waits for it.
        self.asking: asyncio.Task[Claim | None] | None = None
        self._waits: list[_Wait] = []  # writes that the store has not answered yet
        self.owner: StoreOwner  # set when it is first requested
        # While it waits: whether its turn has come; False if the system exited.
        self.granted: asyncio.Future[bool]

    @property
    def fence(self) -> int:
        """The fencing token: larger than those of all earlier claims."""
        return 0 if self.claim is None else self.claim.epoch

    @property
    def is_held(self) -> bool:
        return self.state is LeaseState.HELD

    def is_sure(self) -> bool:
        """Return whether enough time is left to start something.

        The clock includes the time for which this machine was suspended.
        """
        owner = self.owner
        return (
            self.state is LeaseState.HELD
            and self.life == owner.life
            and owner.is_sure()
            and self.claim is not None
            and self.claim.owner == owner.name
        )

    def is_fresh(self) -> bool:
        """Return whether the lease is sure, and the store has confirmed it a moment ago.

        No clock shows that a lease was revoked in the meantime.
        """
        return self.is_sure() and self.owner.now() - self.asked <= FRESH_SECONDS

    async def make_sure(self) -> None:
        """Return when enough time is left and the store has confirmed the lease a moment ago.

        Raises `RunLost` if another process may hold it.

        An owner that had expired and was revived may have lost this lease in between: only the
        store knows.
        """
        for _ in range(_TRIES):
            if self.is_fresh():
                return
            if self.state is not LeaseState.HELD:
                break
            try:
                await self.owner.enter()
                life = self.owner.life
                await self.commit(())
            except StoreError as error:
                # This is not a failure of the agent, which would be recorded as the result of the
                # run. The run is returned, for any process that reaches the store.
                self.on_lost()
                msg = f"the store did not confirm it ({error})"
                raise self.lost_error(msg) from error
            self.life = life
        if not self.is_sure():
            self.lose()
            raise self.lost_error()

    def hold(self, claim: Claim, life: int, asked: float) -> None:
        """Record that the lease was granted, in that life of its owner, at that time."""
        self.claim, self.life, self.asked = claim, life, asked
        self.state = LeaseState.HELD

    async def leave(self) -> None:
        """Return it to the store."""
        await self.commit(self.last_writes(), then="release" if self.is_unfinished else "forget")

    def last_writes(self) -> Sequence[Write]:
        """Return the writes of the step that returns the lease."""
        return () if self.at_leave is None else self.at_leave()

    async def queued(self) -> None:
        """Report, once, that it is not free and is waited for."""
        on_queued, self.on_queued = self.on_queued, None
        if on_queued is not None:
            await on_queued()

    async def commit(self, writes: Sequence[Write], *, then: Ending = "keep") -> None:
        """Write in one step, if the lease is still held.

        If it is not, raises `RunLost` and writes nothing.
        """
        if self.state is not LeaseState.HELD:
            raise self.lost_error()
        assert self.claim is not None
        asked = self.owner.now()
        wait = _Wait(self.owner.commit(self.claim, writes, then))
        self._waits.append(wait)
        try:
            try:
                await wait
            except WriteRefused as refused:
                # An owner that was stalled past its expiry is revived, if it was not revoked: it
                # keeps the leases that no other owner took.
                if refused.reason != "owner" or not await self.owner.revive(self.claim.owner):
                    raise
                await self.owner.commit(self.claim, writes, then)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not wait.is_stopped or (task is not None and task.cancelling()):
                raise
            # Whether or not the write succeeds, another process may hold the run.
            raise self.lost_error(
                "the store has not answered for as long as its lease lasts"
            ) from None
        except WriteRefused as refused:
            if refused.reason == "value":
                raise
            error = self.lost_error(str(refused))
            if refused.reason == "owner":
                self.owner.end(self.claim.owner)
            self.lose()
            # The store has lost records: another process continues from the remaining ones.
            if refused.reason == "position":
                self.owner.owe(self.key, self.claim)
            raise error from refused
        finally:
            self._waits.remove(wait)
        self.asked = asked
        if then != "keep":
            self.state = LeaseState.RETURNED
            self.at_leave = None

    def lost_error(self, why: str = "") -> RunLost:
        said = why or (
            "its lease expired before it was renewed, or was revoked, and another process may "
            "continue it"
        )
        return RunLost(f"this process no longer owns {self.subject}: {said}")

    def preempt(self) -> None:
        """Report that it is wanted at once.

        Only the first report counts: a second one would cut short the orderly end of the run.
        """
        on_wanted, self.on_wanted = self.on_wanted, None
        if on_wanted is not None:
            on_wanted()

    def lose(self) -> None:
        """Record that another process may hold it by now."""
        if self.state is LeaseState.HELD:
            self.state = LeaseState.LOST
            for wait in self._waits:
                wait.stop()
            self.on_lost()
