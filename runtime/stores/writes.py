"""What a store writes in one step, and on whose behalf.

A process's system is an *owner*: one row in the store, alive until its time is over or it is revoked. A *claim* says that an owner works on what a key stands
for (a run, a session), and since which *epoch*: a number that grows with each taking and is never given twice. Whatever an owner writes for that key is written
only if the claim is still its own and the owner is alive; the store looks and writes in one step.

Owns: these values. It must never know a backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..quick_init import quick
from .run_entries import DropEntry, RunEntry

__all__ = ["Append", "Claim", "Ending", "Expect", "Put", "Remove", "Write"]


@quick
@dataclass(frozen=True, slots=True)
class Claim:
    """An owner's right to write for a key."""

    key: str
    owner: str
    epoch: int
    """Larger than that of every claim before it, of any key of this store."""
    attempts: int = 1
    """How often the key was taken since an owner last left it in good order, this time included."""


@quick
@dataclass(frozen=True, slots=True)
class Put:
    """Write a value, whatever was there."""

    key: str
    value: bytes
    seconds: float | None = None
    """It is forgotten after so long; None: when the store's own time to live is over, if it has one."""


@quick
@dataclass(frozen=True, slots=True)
class Remove:
    """Remove the value and the journal of a key."""

    key: str


@quick
@dataclass(frozen=True, slots=True)
class Append:
    """Add records to the journal of a key, which holds `after` records now: if it does not, everything is refused."""

    key: str
    records: tuple[bytes, ...]
    after: int


@quick
@dataclass(frozen=True, slots=True)
class Expect:
    """Refuse everything, unless the value of a key is this. None: there is neither a value nor a journal."""

    key: str
    value: bytes | None = None


Write: TypeAlias = Put | Remove | Append | Expect | RunEntry | DropEntry
"""The last two only for a store that lists runs."""

Ending: TypeAlias = Literal["keep", "release", "forget"]
"""What becomes of a claim after a write: it stays; it is left for other owners, with no attempts; there is nothing left to claim."""
