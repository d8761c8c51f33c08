"""Keys with one hash: each that is put into a set or a dict is compared with all that are there, so that their number costs its square.

Texts and bytes have other hashes in each process, and numbers the same everywhere: 100,000 integers that a factor of 2**61-1 has made take a minute.

Owns: how many there may be, when they are written and when they are read. It must never look at what a key says, only at its hash.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from operator import eq
from typing import Final, TypeVar

from ..errors import CheckpointError

__all__ = ["FEW", "MOST", "checked_keys", "collide"]

FEW: Final = 256
"""As many keys may have one hash, or not: their square is small."""
MOST: Final = 100
"""Of more keys, this many may have one hash. Powers of two have 61 between them: all that a float can be make 68 to each."""

_FRESH: Final = frozenset((str, bytes))  # hashed with a key of the process
_C = TypeVar("_C", bound=Collection[object])


def collide(keys: Collection[object]) -> bool:
    """Whether too many of them have one hash. Takes as long as sorting."""
    if len(keys) < FEW or _FRESH.issuperset(map(type, keys)):
        return False
    hashes = sorted(map(hash, keys))
    return any(map(eq, hashes, islice(hashes, MOST, None)))


def checked_keys(keys: _C) -> _C:
    """The keys, or a CheckpointError."""
    if len(keys) >= FEW and collide(keys):
        msg = f"more than {MOST} of its {len(keys)} keys have one hash, and would take too long to read."
        raise CheckpointError(msg)
    return keys
