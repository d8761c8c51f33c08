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
from ..actor.direct import finish
from ..clock import Timer
from ..data.chat import new_id
from ..errors import ActorDeadError, SystemDraining
from ..log import logger

if TYPE_CHECKING:
    from ..actor.host import Host
    from .store_access import Vault

__all__ = ["LEASE_SECONDS", "Busy", "Hold", "LeaseKeeper", "is_gone", "keeper_of"]

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


class Hold:
    """What one run has, or waits for: a lease."""

    __slots__ = ("desk", "granted", "key", "leaves", "lost", "preempted", "preempts", "until")

    def __init__(self, lost: Callable[[], object], preempted: Callable[[], object] | None = None, *, preempts: bool = False) -> None:
        self.lost = lost  # called if somebody else gets it all the same
        self.preempted = preempted  # called if somebody wants it at once; None if nobody can, or it was called
        self.preempts = preempts  # whether it wants it at once
        self.until: float | None = None  # by the system's clock, when it may expire; None if it is not there yet, or not any more
        self.leaves = False  # whether it is being given back
        self.desk: _Desk  # whose it is, and under which key
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


class _Desk:
    """The leases of one system in one store. Two stores may be one database: so each desk has a name of its own there."""

    __slots__ = ("__weakref__", "holds", "late", "looking", "owner", "renewing", "vault", "waiting")

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.owner = f"{_process(os.getpid())}/{new_id()}"
        self.holds: dict[str, Hold] = {}
        self.waiting: dict[str, deque[Hold]] = {}  # who wants one of those next
        self.renewing = False  # whether the store is being asked to prolong them
        self.late = False  # whether it did not do so the last time
        self.looking = False  # whether it is being asked who wants one at once
        _desks[self.owner] = self

    def grant_next(self, key: str) -> bool:
        """Let the next one have it that waits for it here. Returns False if nobody does."""
        waiting = self.waiting.get(key)
        if not waiting:
            return False
        hold = self.holds[key] = waiting.popleft()
        if not waiting:
            del self.waiting[key]
        if not hold.granted.done():
            hold.granted.set_result(True)
        return True

    def is_wanted(self, key: str) -> bool:
        """Whether somebody who waits for it here wants it at once."""
        return any(hold.preempts for hold in self.waiting.get(key, ()))

    def may_be_wanted(self) -> bool:
        return any(hold.preempted is not None for hold in self.holds.values())


# Those of this process, by their names; and the keepers, by the ids of their systems.
_desks: Final[WeakValueDictionary[str, _Desk]] = WeakValueDictionary()
_keepers: Final[WeakValueDictionary[int, LeaseKeeper]] = WeakValueDictionary()


class LeaseKeeper(Actor):
    """Prolongs the leases of one system's runs. It is there while there is one."""

    __slots__ = ("_desks", "_looking", "_timer")

    def __init__(self) -> None:
        super().__init__()
        self._desks: dict[Vault, _Desk] = {}  # where there is a lease
        self._timer: Timer | None = None
        self._looking: Timer | None = None

    async def take(self, vault: Vault, key: str, lost: Callable[[], object]) -> bool:
        """Take a lease, and keep it. `lost` is called if somebody else gets it all the same. Returns False if somebody else has it."""
        return await self._take(vault, key, Hold(lost), "", "reject")

    async def take_turn(self, vault: Vault, key: str, hold: Hold, mark: str, busy: Busy) -> bool:
        """Take a lease when it is one's turn. Returns False if somebody else has it, and one does not want to wait."""
        if not await self._take(vault, key, hold, mark, busy):
            return False
        self._watch()
        if hold.desk.is_wanted(key):
            hold.preempt()
        return True

    async def still_has(self, vault: Vault, key: str, *, ask: bool = True) -> bool:
        """Whether a lease is still there. The store is asked; or only if that is not certain: this process may have slept."""
        hold = self._find(vault, key)
        if hold is not None and hold.until is not None and not ask and self._cell.system.clock.monotonic() < hold.until:
            return True
        return hold is not None and bool(await vault.renew([key], hold.desk.owner))

    async def give_back(self, vault: Vault, key: str) -> None:
        """Let go of a lease: to whoever waits for it here, or else to all. That of one who cannot reach the store expires by itself."""
        hold = self._find(vault, key)
        if hold is not None and not hold.leaves:
            hold.leaves = True
            await self.on_receive(hold)

    def abandon(self, vault: Vault, key: str) -> None:
        """The same, of one that has ended otherwise than it should, and cannot wait."""
        hold = self._find(vault, key)
        if hold is not None and not hold.leaves:
            hold.leaves = True
            with contextlib.suppress(ActorDeadError):
                self.actor_ref.tell(hold)

    async def on_receive(self, hold: Hold) -> None:
        """Somebody leaves his place."""
        hold.until = None
        if not hold.is_in_place() or hold.desk.grant_next(hold.key):
            return
        try:
            await hold.desk.vault.release(hold.key, hold.desk.owner)
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, its lease expires
            logger.warning("The lease %r could not be given back, and expires in %g s: %s", hold.key, LEASE_SECONDS, error)
        finally:
            self._pass_on(hold)

    def _pass_on(self, hold: Hold) -> None:
        desk = hold.desk
        if not hold.is_in_place() or desk.grant_next(hold.key):
            return
        del desk.holds[hold.key]
        if not desk.holds:
            del self._desks[desk.vault]
        if not self._desks:
            finish(self._cell)

    def _find(self, vault: Vault, key: str) -> Hold | None:
        return self._desks[vault].holds.get(key) if vault in self._desks else None

    async def _take(self, vault: Vault, key: str, hold: Hold, mark: str, busy: Busy) -> bool:
        desk = hold.desk = self._desks.get(vault) or self._desks.setdefault(vault, _Desk(vault))
        hold.key = key
        if key not in desk.holds:
            desk.holds[key] = hold  # before it is taken, so that it never seems to be nobody's
        elif not await self._queue(hold, busy):
            return False
        try:
            taken = await self._acquire(hold) or (busy != "reject" and await self._compete(hold, mark, busy))
        except BaseException:
            self.abandon(vault, key)  # the store may have it all the same
            raise
        if not taken:
            self._pass_on(hold)
        return taken

    async def _queue(self, hold: Hold, busy: Busy) -> bool:
        """Wait until those in front have had their turns. Who does not want to wait does so only for one that is leaving."""
        desk, key = hold.desk, hold.key
        waiting, at_work = desk.waiting.get(key, ()), desk.holds[key]
        if len(waiting) >= _MOST_WAITING or (busy == "reject" and (waiting or not at_work.leaves)):
            return False
        hold.granted = self._cell.system.loop.create_future()
        desk.waiting.setdefault(key, deque()).append(hold)
        if hold.preempts:
            at_work.preempt()
        try:
            if not await hold.granted:
                raise SystemDraining(_LEFT)
        except asyncio.CancelledError:
            line = desk.waiting.get(key, deque())
            if hold.is_in_place():
                self.abandon(desk.vault, key)  # it was granted in this very moment
            elif hold in line:
                line.remove(hold)
            if not line:
                desk.waiting.pop(key, None)
            raise
        return True

    async def _acquire(self, hold: Hold) -> bool:
        desk, started = hold.desk, self._cell.system.clock.monotonic()
        taken = await desk.vault.acquire(hold.key, desk.owner)
        if not hold.is_in_place():
            if taken:
                await desk.vault.release(hold.key, desk.owner)
            raise SystemDraining(_LEFT)
        if taken:
            hold.until = started + LEASE_SECONDS
            self._wait()
        return taken

    async def _compete(self, hold: Hold, mark: str, busy: Busy) -> bool:
        """Wait until another process gives it back."""
        vault, key = hold.desk.vault, hold.key
        asked: str | None = None  # who was asked to end at once
        delay = _FIRST_LOOK
        try:
            while True:
                if busy == "preempt" or hold.desk.is_wanted(key):
                    holder = await vault.holder(key)
                    if holder is not None and (holder != asked or await vault.get(mark) is None):
                        asked = holder  # before it is written: it is taken back in any case
                        await vault.set(mark, holder.encode())
                waited = asyncio.Event()
                timer = self._cell.system.clock.call_later(delay, waited.set)
                try:
                    await waited.wait()
                finally:
                    timer.cancel()
                delay = min(2 * delay, _LAST_LOOK)
                if await self._acquire(hold):
                    return True
        finally:
            if asked is not None:
                try:
                    await vault.delete(mark)
                except Exception as error:  # noqa: BLE001 -- it costs nobody the turn
                    logger.warning("That somebody wants the lease %r could not be taken back: %s", key, error)

    # --- keeping ---

    def _wait(self) -> None:
        if self._timer is None and self._desks:
            late = any(desk.late for desk in self._desks.values())
            self._timer = self._cell.system.clock.call_later(_AGAIN if late else LEASE_SECONDS / 3, self._prolong)

    def _prolong(self) -> None:
        """Have each store prolong its leases; by themselves, because one that does not answer must cost nobody those in the others."""
        self._timer = None
        now = self._cell.system.clock.monotonic()
        for desk in self._desks.values():
            desk.late = desk.late or desk.renewing
            if desk.late:
                for hold in desk.holds.values():
                    if hold.until is not None and hold.until - now <= _AGAIN:
                        hold.lose()
            holds = [hold for hold in desk.holds.values() if hold.until is not None]
            if holds and not desk.renewing:
                desk.renewing = True
                self._begin(self._renew(desk, holds))
        self._wait()

    async def _renew(self, desk: _Desk, holds: list[Hold]) -> None:
        started = self._cell.system.clock.monotonic()
        try:
            still = set(await desk.vault.renew([hold.key for hold in holds], desk.owner))
        except Exception as error:  # noqa: BLE001 -- whatever a store raises, nobody else must suffer from it
            logger.warning("%d leases could not be prolonged, and expire if that lasts: %s", len(holds), error)
            desk.late = True
        else:
            desk.late = False
            for hold in holds:
                if hold.until is None or not hold.is_in_place():
                    continue  # it was given back meanwhile, and may have been taken anew
                if hold.key in still:
                    hold.until = started + LEASE_SECONDS
                else:
                    hold.lose()
        finally:
            desk.renewing = False

    def _watch(self) -> None:
        if self._looking is None and any(desk.may_be_wanted() for desk in self._desks.values()):
            self._looking = self._cell.system.clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        for desk in self._desks.values():
            if desk.may_be_wanted() and not desk.looking:
                desk.looking = True
                self._begin(self._look_for_others(desk))
        self._watch()

    async def _look_for_others(self, desk: _Desk) -> None:
        try:
            for key, mark in await desk.vault.wanted_sessions():
                hold = desk.holds.get(key)
                if hold is not None and await desk.vault.get(mark) == desk.owner.encode():
                    await desk.vault.delete(mark)  # who still waits says so again; one who was lost ends no other turn
                    hold.preempt()
        except Exception as error:  # noqa: BLE001 -- as above
            logger.warning("Whether a turn is wanted by another process could not be found out: %s", error)
        finally:
            desk.looking = False

    def _begin(self, work: Any) -> None:
        self._cell.system.run_task(work, f"{self._cell.path} waits for a store", self._cell.task_context)

    def on_stop(self) -> None:
        for timer in filter(None, (self._timer, self._looking)):
            timer.cancel()
        for desk in self._desks.values():
            for hold in (hold for waiting in desk.waiting.values() for hold in waiting):
                if not hold.granted.done():
                    hold.granted.set_result(False)
            desk.holds.clear()
            desk.waiting.clear()
        self._desks.clear()


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
        desk = _desks.get(owner)
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
