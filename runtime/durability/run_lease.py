"""The lease of one run: who works on it, and that what belongs to it is written by that right.

Owns: the taking of a run, and the way of its writes. It must never decide what is written.
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
from .open_mark import UnfinishedRun
from .store_access import StoreAccess
from .store_keys import former_lease_key, open_key

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
        self.held: Lease | None = None  # while this process works on the run
        self.clock: Clock | None = None  # of the system that has taken it
        self.watch: RunWatch | None = None  # what looks on at the run

    async def take(
        self, run: UnfinishedRun, system: Host, writes: Sequence[Write] = (), *, undo: Callable[[], Sequence[Write]] | None = None, key: str = ""
    ) -> bool:
        """Be the one who works on this run. Returns False if another run or process is. `undo` says what takes the writes back, if no answer is heard."""
        self._leases, self.clock = leases_of(system), system.clock
        lease = Lease(key or open_key(run.agent, run.id), f"run {run.id}", self._lose, former=former_lease_key(run.id), on_stop=self._asked)
        lease.is_unfinished, lease.undo = run.steps, undo
        if not await self._leases.take(self._access, lease, writes):
            return False
        self.held, lease.undo = lease, None
        return True

    async def take_if(self, run: UnfinishedRun, system: Host, expected: Sequence[Expect]) -> bool | None:
        """The same, if all of that is so: in one step, where the store looks and writes in one. Returns None, and has not taken it, if it is not so."""
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
        """Call that if another process wants the run to end, or may have it from now on; at once, if that is so."""
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
        """How often the run was taken since a process last left it in good order."""
        return 0 if self.held is None or self.held.claim is None else self.held.claim.attempts

    def leaves_unfinished(self, *, unfinished: bool) -> None:
        """Whether other processes are to continue the run when it is given back."""
        if self.held is not None:
            self.held.is_unfinished = unfinished

    def write(self, writes: Sequence[Write], then: Ending = "keep") -> Coroutine[Any, Any, None]:
        """In one step, and only if this process still has the run. One that no other process can have is written by no lease."""
        writing = self._access.commit(None, writes) if self.held is None else self.held.commit(writes, then=then)
        return writing if self.watch is None else _timed(self.watch, writing)

    async def give_back(self) -> None:
        """Work on it no more."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            await self._leases.give_back(lease)

    def abandon(self) -> None:
        """The same, of a run that has ended otherwise than it should: there is no time to wait."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            self._leases.abandon(lease)


async def _timed(watch: RunWatch, writing: Coroutine[Any, Any, None]) -> None:
    began = perf_counter()
    await writing
    watch.store_wrote(perf_counter() - began)
