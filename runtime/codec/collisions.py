"""Limits on keys with the same hash: inserting n of them into a set or a dict takes time
proportional to the square of n.

Strings and bytes have different hashes in each process, but numbers have the same everywhere:
100,000 integers that are multiples of 2**61-1 take a minute. The checks look at hashes only, when
keys are written and when they are read.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from operator import eq
from typing import Final, TypeVar

from ..errors import CheckpointError

__all__ = ["FEW", "MOST", "checked_keys", "collide"]

FEW: Final = 256
"""Fewer keys than this may all have the same hash: their square is small."""
MOST: Final = 100
"""Of more keys, this many may have the same hash.

Powers of two share 61 hashes: all that a float can represent have 68 for each.
"""

_FRESH: Final = frozenset((str, bytes))  # hashed with a key of the process
_C = TypeVar("_C", bound=Collection[object])


def collide(keys: Collection[object]) -> bool:
    """Return whether too many of them have the same hash. Takes as long as sorting."""
    if len(keys) < FEW or _FRESH.issuperset(map(type, keys)):
        return False
    hashes = sorted(map(hash, keys))
    return any(map(eq, hashes, islice(hashes, MOST, None)))


def checked_keys(keys: _C) -> _C:
    """Return the keys, or raise CheckpointError."""
    if len(keys) >= FEW and collide(keys):
        msg = (
            f"more than {MOST} of its {len(keys)} keys share one hash; reading them would take "
            "too long. Use other keys."
        )
        raise CheckpointError(msg)
    return keys
