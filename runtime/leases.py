"""Who works on what, where several processes share a store: leases that expire if nobody prolongs them.

Owns: an actor per system that prolongs all leases of its runs together, and what says of a lease that nobody will ever give it back: its process is
gone, or it was of this process, and its actor is. A lease that was lost is told to the run, which must not go on. It must never hold a lease for a
run that has ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from weakref import WeakValueDictionary

from .actor import Actor
from .delivery import finish
from .errors import ActorDeadError, StoreError
from .monitor import logger

if TYPE_CHECKING:
    from .system import ActorSystem
    from .vault import Vault

__all__ = ["LEASE_SECONDS", "LeaseKeeper", "is_gone", "keeper_of"]

LEASE_SECONDS: Final = 30.0
"""How long a lease is good for. It is prolonged three times as often."""

# The keepers of this process, by their owner names.
_keepers: Final[WeakValueDictionary[str, LeaseKeeper]] = WeakValueDictionary()


class _Tick:
    """To the keeper: it is time to prolong."""

    __slots__ = ()


class LeaseKeeper(Actor):
    """Prolongs the leases of one system's runs. It is there while there is one."""

    __slots__ = ("_held", "_timer", "owner")

    def __init__(self) -> None:
        super().__init__()
        self.owner = f"{_this_process()}/{uuid4().hex}"
        self._held: dict[tuple[Vault, str], Callable[[], object]] = {}
        self._timer: Any = None
        _keepers[self.owner] = self

    def holds(self, key: str) -> bool:
        return any(held == key for _, held in self._held)

    async def take(self, vault: Vault, key: str, lost: Callable[[], object]) -> bool:
        """Take a lease, and keep it. `lost` is called if somebody else gets it all the same."""
        if self.holds(key):
            return False  # the owner is the same for all runs of this system
        self._held[vault, key] = lost  # before it is taken, so that it never seems to be nobody's
        taken = False
        try:
            taken = await vault.acquire(key, self.owner)
        finally:
            if not taken:
                self._drop(vault, key)
        if taken and self._timer is None and self._held:
            self._wait()
        return taken

    async def give_back(self, vault: Vault, key: str) -> None:
        """Let go of a lease. That of one who cannot reach the store expires by itself."""
        if (vault, key) in self._held:
            self._drop(vault, key)
            try:
                await vault.release(key, self.owner)
            except StoreError as error:
                logger.warning("The lease %r could not be given back, and expires in %g s: %s", key, LEASE_SECONDS, error)

    def _drop(self, vault: Vault, key: str) -> None:
        self._held.pop((vault, key), None)
        if not self._held:
            finish(self._cell)

    def _wait(self) -> None:
        self._timer = self._cell.system.clock.call_later(LEASE_SECONDS / 3, self._tick)

    def _tick(self) -> None:
        self._timer = None
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(_Tick())

    async def on_receive(self, message: Any) -> None:
        """Prolong all leases."""
        del message
        by_vault: dict[Vault, list[str]] = {}
        for vault, key in self._held:
            by_vault.setdefault(vault, []).append(key)
        for vault, keys in by_vault.items():
            try:
                still = set(await vault.renew(keys, self.owner))
            except StoreError as error:
                logger.warning("%d leases could not be prolonged, and expire if that lasts: %s", len(keys), error)
                continue
            for key in keys:
                lost = self._held.get((vault, key))
                if key not in still and lost is not None:
                    self._held.pop((vault, key))
                    lost()
        if not self._held:
            finish(self._cell)
        elif self._timer is None:
            self._wait()

    def on_stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held.clear()


def keeper_of(system: ActorSystem) -> LeaseKeeper:
    """The one of that system. To be used at once: it ends when it holds nothing."""
    for keeper in _keepers.values():
        if keeper._cell.system is system and not keeper._cell.closing:
            return keeper
    made = system.spawn_own(LeaseKeeper, (), None, None)._cell.actor
    assert isinstance(made, LeaseKeeper)
    return made


def is_gone(owner: str, key: str) -> bool:
    """Whether it is certain that this owner does not work on that any more."""
    keeper = _keepers.get(owner)
    if keeper is not None:
        return not keeper.holds(key)
    process, _, _ = owner.rpartition("/")
    host, _, rest = process.partition("/")
    here, _, own = _this_process().partition("/")
    if host != here:
        return False  # of another machine nothing is certain
    if rest == own:
        return True  # of this process, and its keeper is no more
    pid, _, started = rest.partition("/")
    return not pid.isdigit() or _started(int(pid)) != started


def _this_process() -> str:
    """A name that no other process ever has: what machine or container it is in, its number there, and when it began."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}"


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
