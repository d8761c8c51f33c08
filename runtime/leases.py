"""Who works on what, where several processes share a store: leases that expire if nobody prolongs them.

Owns: an actor per system that prolongs all leases of its runs together, and what says of a lease that nobody will ever give it back: its process is
gone, or it was of this process, and its actor is. A lease that was lost is told to the run, which must not go on. It must never hold a lease for a
run that has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections import Counter, deque
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from .actor import Actor
from .chat import new_id
from .clock import Timer
from .delivery import finish
from .errors import ActorDeadError, StoreError, SystemDraining
from .monitor import logger

if TYPE_CHECKING:
    from .system import ActorSystem
    from .vault import Vault

__all__ = ["LEASE_SECONDS", "Busy", "Hold", "LeaseKeeper", "is_gone", "keeper_of"]

LEASE_SECONDS: Final = 30.0
"""How long a lease is good for. It is prolonged three times as often."""

PREEMPT_SECONDS: Final = 1.0
"""How often whoever has a turn of a session looks whether somebody in another process wants it at once."""

_FIRST_LOOK: Final = 0.01
_LAST_LOOK: Final = 0.5
"""Seconds after which somebody who waits for another process looks again: twice as long each time."""

_MOST_WAITING: Final = 1_000
"""Who may wait for one turn in one system: more is somebody who sends without end."""

# The keepers of this process, by their owner names.
_keepers: Final[WeakValueDictionary[str, LeaseKeeper]] = WeakValueDictionary()

Busy: TypeAlias = Literal["queue", "reject", "preempt"]


class _Prolong:
    """To the keeper: it is time to prolong."""

    __slots__ = ()


class _LookForOthers:
    """To the keeper: it is time to see whether somebody wants what it holds."""

    __slots__ = ()


class _Abandoned:
    """To the keeper: this lease is nobody's any more, and was not given back."""

    __slots__ = ("key", "vault")

    def __init__(self, vault: Vault, key: str) -> None:
        self.vault = vault
        self.key = key


class Hold:
    """What one run has, or waits for: a lease."""

    __slots__ = ("granted", "lost", "preempted", "preempts", "taken")

    def __init__(self, lost: Callable[[], object], preempted: Callable[[], object] | None = None, *, preempts: bool = False) -> None:
        self.lost = lost  # called if somebody else gets it all the same
        self.preempted = preempted  # called if somebody wants it at once; None if nobody can, or it was called
        self.preempts = preempts  # whether it wants it at once
        self.granted: asyncio.Future[None] | None = None  # set when it is its turn, if it has to wait
        self.taken = False  # whether the store says so: not while another process has it

    def preempt(self) -> None:
        """Somebody wants it at once. That is said once: the second time would cut short what is done to end in order."""
        preempted, self.preempted = self.preempted, None
        if preempted is not None:
            preempted()


class LeaseKeeper(Actor):
    """Prolongs the leases of one system's runs. It is there while there is one."""

    __slots__ = ("_held", "_keys", "_looking", "_timer", "_waiting", "owner")

    def __init__(self) -> None:
        super().__init__()
        self.owner = f"{_this_process()}/{new_id()}"
        self._held: dict[tuple[Vault, str], Hold] = {}
        self._keys: Counter[str] = Counter()  # of those, in whatever store
        self._waiting: dict[tuple[Vault, str], deque[Hold]] = {}  # who wants one of those next
        self._timer: Timer | None = None
        self._looking: Timer | None = None
        _keepers[self.owner] = self

    def holds(self, key: str) -> bool:
        return key in self._keys

    # --- runs: whoever comes second is told so ---

    async def take(self, vault: Vault, key: str, lost: Callable[[], object]) -> bool:
        """Take a lease, and keep it. `lost` is called if somebody else gets it all the same."""
        if (vault, key) in self._held:
            return False  # the owner is the same for all runs of this system
        hold = Hold(lost)
        self._hold(vault, key, hold)  # before it is taken, so that it never seems to be nobody's
        try:
            hold.taken = await vault.acquire(key, self.owner)
        finally:
            if not hold.taken:
                self._drop(vault, key)
        if hold.taken:
            self._wait()
        return hold.taken

    async def give_back(self, vault: Vault, key: str) -> None:
        """Let go of a lease: to whoever waits for it here, or else to all. That of one who cannot reach the store expires by itself."""
        if (vault, key) not in self._held or self._grant_next(vault, key):
            return
        try:
            await self._release(vault, key)
        finally:
            if not self._grant_next(vault, key):
                self._drop(vault, key)

    def abandon(self, vault: Vault, key: str) -> None:
        """The same, of one that has ended otherwise than it should, and cannot wait."""
        if (vault, key) in self._held:
            with contextlib.suppress(ActorDeadError):
                self.actor_ref.tell(_Abandoned(vault, key))

    async def _release(self, vault: Vault, key: str) -> None:
        try:
            await vault.release(key, self.owner)
        except StoreError as error:
            logger.warning("The lease %r could not be given back, and expires in %g s: %s", key, LEASE_SECONDS, error)

    # --- turns: whoever comes second waits, if he likes ---

    async def take_turn(self, vault: Vault, key: str, hold: Hold, mark: str, busy: Busy) -> bool:
        """Take a lease when it is one's turn. Returns False if somebody else has it, and one does not want to wait."""
        place = (vault, key)
        if place in self._held:
            if busy == "reject" or not await self._queue(place, hold):
                return False
            try:
                # Whoever had it here may have lost it, or given it back in the same moment.
                if not await vault.renew([key], self.owner) and not await vault.acquire(key, self.owner):
                    await self._compete(vault, key, mark, busy)
            except BaseException:
                self.abandon(vault, key)
                raise
        else:
            self._hold(vault, key, hold)
            try:
                taken = await vault.acquire(key, self.owner) or (busy != "reject" and await self._compete(vault, key, mark, busy))
            except BaseException:
                self.abandon(vault, key)  # the store may have it all the same
                raise
            if not taken:
                if not self._grant_next(vault, key):
                    self._drop(vault, key)
                return False
        hold.taken = True
        self._wait()
        self._watch()
        if self._is_wanted(place):
            hold.preempt()
        return True

    def _is_wanted(self, place: tuple[Vault, str]) -> bool:
        """Whether somebody who waits for it here wants it at once."""
        return any(hold.preempts for hold in self._waiting.get(place, ()))

    async def _queue(self, place: tuple[Vault, str], hold: Hold) -> bool:
        """Wait until those in front have had their turns."""
        waiting = self._waiting.setdefault(place, deque())
        if len(waiting) >= _MOST_WAITING:
            return False
        hold.granted = self._cell.system.loop.create_future()
        waiting.append(hold)
        at_work = self._held[place]
        if hold.preempts:
            at_work.preempt()
        try:
            await hold.granted
            self._check(place)
        except asyncio.CancelledError:
            if self._held.get(place) is hold:
                self.abandon(*place)  # it was granted in this very moment
            elif hold in waiting:
                waiting.remove(hold)
                if not waiting and self._waiting.get(place) is waiting:
                    del self._waiting[place]
            raise
        return True

    def _grant_next(self, vault: Vault, key: str) -> bool:
        """Let the next one have it that waits for it here. Returns False if nobody does."""
        place = (vault, key)
        waiting = self._waiting.get(place)
        if not waiting:
            return False
        hold = self._held[place] = waiting.popleft()
        if not waiting:
            del self._waiting[place]
        assert hold.granted is not None
        if not hold.granted.done():
            hold.granted.set_result(None)
        return True

    async def _compete(self, vault: Vault, key: str, mark: str, busy: Busy) -> bool:
        """Wait until another process gives it back."""
        clock, loop = self._cell.system.clock, self._cell.system.loop
        asked: str | None = None  # who was asked to end at once
        delay = _FIRST_LOOK
        try:
            while True:
                if busy == "preempt" or self._is_wanted((vault, key)):
                    holder = await vault.holder(key)
                    if holder is not None and (holder != asked or await vault.get(mark) is None):
                        asked = holder  # before it is written: it is taken back in any case
                        await vault.set(mark, holder.encode())
                waited = loop.create_future()
                timer = clock.call_later(delay, _set_done, waited)
                try:
                    await waited
                finally:
                    timer.cancel()
                delay = min(2 * delay, _LAST_LOOK)
                self._check((vault, key))
                if await vault.acquire(key, self.owner):
                    return True
        finally:
            if asked is not None:
                try:
                    await vault.delete(mark)
                except Exception as error:  # noqa: BLE001 -- it costs nobody the turn
                    logger.warning("That somebody wants the lease %r could not be taken back: %s", key, error)

    def _check(self, place: tuple[Vault, str]) -> None:
        if place not in self._held:
            raise SystemDraining("the system was left while somebody in it waited for the turn of a session.")

    # --- keeping ---

    def _hold(self, vault: Vault, key: str, hold: Hold) -> None:
        self._held[vault, key] = hold
        self._keys[key] += 1

    def _drop(self, vault: Vault, key: str) -> None:
        if self._held.pop((vault, key), None) is not None:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]
        if not self._held:
            finish(self._cell)

    def _wait(self) -> None:
        if self._timer is None and self._held:
            self._timer = self._cell.system.clock.call_later(LEASE_SECONDS / 3, self._tick)

    def _tick(self) -> None:
        self._timer = None
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(_Prolong())

    def _watch(self) -> None:
        if self._looking is None and any(hold.preempted is not None for hold in self._held.values()):
            self._looking = self._cell.system.clock.call_later(PREEMPT_SECONDS, self._look)

    def _look(self) -> None:
        self._looking = None
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(_LookForOthers())

    async def on_receive(self, message: Any) -> None:
        if type(message) is _Abandoned:
            await self.give_back(message.vault, message.key)
        elif type(message) is _LookForOthers:
            await self._look_for_others()
        else:
            await self._prolong()

    async def _prolong(self) -> None:
        by_vault: dict[Vault, dict[str, Hold]] = {}
        for (vault, key), hold in self._held.items():
            if hold.taken:
                by_vault.setdefault(vault, {})[key] = hold
        for vault, holds in by_vault.items():
            try:
                still = set(await vault.renew(list(holds), self.owner))
            except Exception as error:  # noqa: BLE001 -- whatever a store raises, nobody else must suffer from it
                logger.warning("%d leases could not be prolonged, and expire if that lasts: %s", len(holds), error)
                continue
            for key, hold in holds.items():
                if key not in still and self._held.get((vault, key)) is hold:  # it may have been given back meanwhile, and taken anew
                    hold.lost()
        self._wait()

    async def _look_for_others(self) -> None:
        for vault in {vault for (vault, _), hold in self._held.items() if hold.preempted is not None}:
            try:
                marks = await vault.wanted_sessions()
                for key, mark in marks:
                    hold = self._held.get((vault, key))
                    if hold is not None and await vault.get(mark) == self.owner.encode():
                        await vault.delete(mark)  # who still waits says so again; one who was lost ends no other turn
                        hold.preempt()
            except Exception as error:  # noqa: BLE001 -- as above
                logger.warning("Whether a turn is wanted by another process could not be found out: %s", error)
        self._watch()

    def on_stop(self) -> None:
        for timer in (self._timer, self._looking):
            if timer is not None:
                timer.cancel()
        self._timer = self._looking = None
        _keepers.pop(self.owner, None)  # who keeps a run keeps its keeper, too
        waiting = [hold for line in self._waiting.values() for hold in line]
        self._held.clear()
        self._keys.clear()
        self._waiting.clear()
        for hold in waiting:
            if hold.granted is not None:
                _set_done(hold.granted)


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def keeper_of(system: ActorSystem) -> LeaseKeeper:
    """The one of that system. To be used at once: it ends when it holds nothing."""
    for ref in _keepers.valuerefs():  # a copy: systems in other threads make theirs meanwhile
        keeper = ref()
        if keeper is not None and keeper._cell.system is system and not keeper._cell.closing:
            return keeper
    made = system.spawn_own(LeaseKeeper, (), None, None)._cell.actor
    assert isinstance(made, LeaseKeeper)
    return made


def is_gone(owner: str, key: str) -> bool:
    """Whether it is certain that this owner does not work on that any more."""
    process, _, _ = owner.rpartition("/")
    this = _this_process()
    if process == this:  # of one that it was forked from it has keepers, too, which know nothing any more
        keeper = _keepers.get(owner)
        return keeper is None or not keeper.holds(key)
    host, _, rest = process.partition("/")
    here, _, _ = this.partition("/")
    if host != here:
        return False  # of another machine nothing is certain
    pid, _, started = rest.partition("/")
    return not pid.isdigit() or _started(int(pid)) != started


def _this_process() -> str:
    """A name that no other process ever has: what machine or container it is in, its number there, and when it began."""
    return _process(os.getpid())


@lru_cache(maxsize=1)  # of this process: one that was forked has another number
def _process(pid: int) -> str:
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
