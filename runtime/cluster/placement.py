"""Where a key belongs: rendezvous hashing over the names of the hosts.

All that know the same names agree, without a table and without a coordinator. When a host comes, only its share moves; when one goes, only what it had.

Owns: the order of the hosts for a key. It must never know whether a host is alive, nor decide who may write: a wrong answer costs a wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

__all__ = ["Placement"]

_BITS: Final = (1 << 64) - 1
_REMEMBERED: Final = 16_384
"""Keys whose first host is remembered: of 1,000 hosts, looking takes 0.4 ms."""


class Placement:
    """One list of hosts. Another list is another placement."""

    __slots__ = ("_hashes", "_remembered", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(set(names)))
        self._hashes = tuple(_hash(b"host", name) for name in self.names)
        self._remembered = lru_cache(maxsize=_REMEMBERED)(self._first)

    def first(self, key: str) -> str | None:
        """The host to which a key belongs; None if there is none."""
        return self._remembered(key)

    def first_of(self, key: str, without: Collection[str]) -> str | None:
        """The same, if those are not there."""
        first = self._remembered(key)
        if first is None or first not in without:
            return first
        return next((name for name in self.ranked(key) if name not in without), None)

    def ranked(self, key: str) -> list[str]:
        """All hosts: the one to which the key belongs, then who is to take it if that one is gone, and so on."""
        hashed = _hash(b"key", key)
        scores = sorted(zip((_mixed(hashed ^ own) for own in self._hashes), self.names, strict=True), reverse=True)
        return [name for _, name in scores]

    def rank(self, key: str, name: str, without: Collection[str] = ()) -> int | None:
        """The place of a host in that order, from 0, if those others are not there; None if it is not in the list."""
        if name not in self.names:
            return None
        return [one for one in self.ranked(key) if one == name or one not in without].index(name)

    def _first(self, key: str) -> str | None:
        hashed = _hash(b"key", key)
        best, found = -1, None
        for own, name in zip(self._hashes, self.names, strict=True):
            score = _mixed(hashed ^ own)
            if score >= best:  # as `ranked` has it: of two with one score, the name that is sorted last
                best, found = score, name
        return found


def _hash(kind: bytes, text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind).digest(), "big")


def _mixed(bits: int) -> int:
    """Each bit of the result depends on each of these (the finalizer of SplitMix64)."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _BITS
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _BITS
    return bits ^ (bits >> 31)
