"""The writes of a store's step, and the owners and claims on whose behalf they are made.

A process's system is an *owner*: one row in the store, alive until it expires or is revoked. A
*claim* records that an owner works on a key (a run, a session), and its *epoch*, a fencing token: a
number that grows with each claim and is never used twice. A write for that key succeeds only if the
claim is still the owner's and the owner is alive; the store checks and writes in one step.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..data.value import Value
from .run_entries import DropEntry, ExpectEntry, RunEntry

__all__ = ["Append", "Claim", "Ending", "Expect", "Put", "Remove", "Write"]


class Claim(Value, frozen=True):
    """An owner's right to write for a key."""

    key: str
    owner: str
    epoch: int
    """Larger than that of every earlier claim, of any key of this store."""
    attempts: int = 1
    """How often the key was claimed, this time included, since its last orderly release."""


class Put(Value, frozen=True):
    """Write a value, replacing any other."""

    key: str
    value: bytes
    seconds: float | None = None
    """The lifetime of the value; None: the store's own time to live applies, if it has one."""


class Remove(Value, frozen=True):
    """Remove the value and the journal of a key."""

    key: str


class Append(Value, frozen=True):
    """Append records to the journal of a key, which must hold `after` records now.

    If it does not, everything is refused. Without records, only that is checked.
    """

    key: str
    records: tuple[bytes, ...]
    after: int


class Expect(Value, frozen=True):
    """Refuse everything, unless the value of a key is this.

    None: there is neither a value nor a journal.
    """

    key: str
    value: bytes | None = None


Write: TypeAlias = Put | Remove | Append | Expect | RunEntry | DropEntry | ExpectEntry
"""The last three only for a store that lists runs."""

Ending: TypeAlias = Literal["keep", "release", "forget"]
"""The handling of a claim after a write.

It is retained; released for other owners, with attempts reset; or removed.
"""
