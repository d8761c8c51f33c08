"""The owners of leases: their names, and which of them are certainly gone.

Owns: how long a lease is good for, names that no other process and no other owner ever has, and the test for an owner that will never give a lease back. It
must never call an owner gone that may still be at work: of another machine nothing is certain.
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from functools import lru_cache
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from ..data.chat import new_id

__all__ = ["LEASE_SECONDS", "LeaseOwner", "is_gone"]

LEASE_SECONDS: Final = 30.0
"""How long a lease is good for. It is prolonged three times as often."""


class LeaseOwner(ABC):
    """What takes leases in one store. Each has a name of its own, because two stores may share a database."""

    __slots__ = ("__weakref__", "owner_id")

    def __init__(self) -> None:
        self.owner_id: Final = f"{_process(os.getpid())}/{new_id()}"
        _owners[self.owner_id] = self

    @abstractmethod
    def has(self, key: str) -> bool:
        """Whether it has that lease, or is about to take it."""


# The owners of this process by their names. A forked process has a copy of its parent's, under the parent's name.
_owners: Final[WeakValueDictionary[str, LeaseOwner]] = WeakValueDictionary()


def is_gone(owner_id: str, key: str) -> bool:
    """Whether it is certain that this owner no longer works on what the key stands for."""
    process, _, _ = owner_id.rpartition("/")
    this = _process(os.getpid())
    if process == this:
        owner = _owners.get(owner_id)
        return owner is None or not owner.has(key)
    host, _, rest = process.partition("/")
    here, _, _ = this.partition("/")
    if host != here:
        return False
    pid, _, started = rest.partition("/")
    return not pid.isdigit() or _started(int(pid)) != started


@lru_cache(maxsize=1)  # by the process id, because a forked process inherits this cache
def _process(pid: int) -> str:
    """A name that no other process ever has: its machine or container, its id there, and when it began."""
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
    """When a process began, in ticks since its machine did; empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
