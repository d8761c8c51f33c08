"""The lease of one run, through which all of its writes go.

This module takes and returns the lease. It does not decide what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..agent.run_messages import LOST
from ..errors import WriteRefused
from ..stores.writes import Ending, Expect, Write
from .lease import Lease
from .leases import SystemLeases, leases_of
from .store_access import StoreAccess
from .store_keys import open_key
from .unfinished_run import UnfinishedRun

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_messages import CancelRun
    from ..clock import Clock
    from ..telemetry.watch import RunWatch

__all__ = ["RunLease"]


class RunLease:
    """The lease of one run, before it is taken, while it is held, and after."""

    __slots__ = ("_access", "_leases", "_stop", "clock", "held", "watch")

    def __init__(self, access: StoreAccess) -> None:
        self._access = access
        self._leases: SystemLeases | None = None
        self._stop: Callable[[CancelRun], object] | None = None
        self.held: Lease | None = None  # while this process has the run
        self.clock: Clock | None = None  # the clock of the system that has taken it
        self.watch: RunWatch | None = None  # observes the run

    async def take(
        self,
        run: UnfinishedRun,
        system: Host,
        writes: Sequence[Write] = (),
        *,
        undo: Callable[[], Sequence[Write]] | None = None,
        key: str = "",
    ) -> bool:
        """Take the lease of this run.

        Returns False if another run or process has it. `undo` returns the writes that undo
        `writes`, if the store's answer is not received.
        """
        self._leases, self.clock = leases_of(system), system.clock
        lease = Lease(
            key or open_key(run.agent, run.id),
            f"run {run.id}",
            self._lose,
            on_stop=self._asked,
        )
        lease.is_unfinished, lease.undo = run.steps, undo
        if not await self._leases.take(self._access, lease, writes):
            return False
        self.held, lease.undo = lease, None
        return True

    async def take_if(
        self, run: UnfinishedRun, system: Host, expected: Sequence[Expect]
    ) -> bool | None:
        """Take the lease if all expectations hold, in one step if the store supports it.

        Returns None, without taking it, if one of them does not hold.
        """
        fenced = self._access.is_fenced
        try:
            if not await self.take(run, system, expected if fenced else ()):
                return False
        except WriteRefused as refused:
            if refused.reason != "value":
                raise
            return None
        for one in () if fenced else expected:
            if await self._access.get(one.key) != one.value:
                await self.give_back()
                return None
        return True

    def when_asked(self, stop: Callable[[CancelRun], object]) -> None:
        """Set the callback for when another process wants the run to end, or may hold it from now
        on.

        If the lease is already lost, the callback is called at once.
        """
        self._stop = stop
        if self.held is not None and not self.held.is_held:
            stop(LOST)

    def _asked(self, request: CancelRun) -> None:
        if self._stop is not None:
            self._stop(request)

    def _lose(self) -> None:
        self._asked(LOST)

    @property
    def attempts(self) -> int:
        """Return how often the run was taken since a process last released it in good order."""
        return 0 if self.held is None or self.held.claim is None else self.held.claim.attempts

    def leaves_unfinished(self, *, unfinished: bool) -> None:
        """Set whether other processes must continue the run when it is released."""
        if self.held is not None:
            self.held.is_unfinished = unfinished

    def at_leave(self, writes: Callable[[], Sequence[Write]]) -> None:
        """Set the writes of the step that releases the unfinished run, such as on system exit."""
        if self.held is not None:
            self.held.at_leave = writes

    def write(self, writes: Sequence[Write], then: Ending = "keep") -> Coroutine[Any, Any, None]:
        """Write in one step, and only if this process still has the run.

        A run that no other process can have is written without a lease.
        """
        writing = (
            self._access.commit(None, writes)
            if self.held is None
            else self.held.commit(writes, then=then)
        )
        return writing if self.watch is None else _timed(self.watch, writing)

    async def give_back(self) -> None:
        """Return the lease."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            await self._leases.give_back(lease)

    def abandon(self) -> None:
        """Return the lease of a run that ended unexpectedly, without waiting."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            self._leases.abandon(lease)


async def _timed(watch: RunWatch, writing: Coroutine[Any, Any, None]) -> None:
    began = perf_counter()
    await writing
    watch.store_wrote(perf_counter() - began)
