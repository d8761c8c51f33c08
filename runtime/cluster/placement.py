"""The host that a key belongs to: rendezvous hashing over the names of the hosts.

All processes that know the same names agree, without a table or a coordinator. When a host joins,
only its share moves; when one leaves, only its own keys move.

It does not consider whether a host is alive, and does not decide who may write: a wrong answer
costs only a wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

__all__ = ["Placement"]

_BITS: Final = (1 << 64) - 1
_REMEMBERED: Final = 16_384
"""Keys whose first host is cached. With 1,000 hosts, computing it takes 0.4 ms."""


class Placement:
    """A placement for one list of hosts. Another list needs another placement."""

    __slots__ = ("_hashes", "_remembered", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        self._hashes = tuple(_hash(b"host", name) for name in self.names)
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._first)

    def first(self, key: str) -> str | None:
        """Return the host that a key belongs to, or None if there are no hosts."""
        return self._remembered(key)

    def first_of(self, key: str, without: Collection[str]) -> str | None:
        """Return the first host for a key that is not in `without`."""
        first = self._remembered(key)
        if first is None or first not in without:
            return first
        return next((name for name in self.ranked(key) if name not in without), None)

    def ranked(self, key: str) -> list[str]:
        """Return all hosts in their order for the key, starting with the one it belongs to."""
        hashed = _hash(b"key", key)
        scores = sorted(
            zip((_mixed(hashed ^ own) for own in self._hashes), self.names, strict=True),
            reverse=True,
        )
        return [name for _, name in scores]

    def rank(self, key: str, name: str, without: Collection[str] = ()) -> int | None:
        """Return the place of a host in that order, from 0, without those others.

        Returns None if it is not in the list.
        """
        if name not in self.names:
            return None
        return [one for one in self.ranked(key) if one == name or one not in without].index(name)

    def _first(self, key: str) -> str | None:
        hashed = _hash(b"key", key)
        best, found = -1, None
        for own, name in zip(self._hashes, self.names, strict=True):
            score = _mixed(hashed ^ own)
            # Same order as `ranked`: if two scores are equal, the name that sorts last wins.
            if score >= best:
                best, found = score, name
        return found


def _hash(kind: bytes, text: str) -> int:
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind).digest(), "big"
    )


def _mixed(bits: int) -> int:
    """Mix the bits, so that each depends on all input bits (the finalizer of SplitMix64)."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _BITS
    return bits ^ (bits >> 31)
