"""Comparison of two values by their stored form.

It never uses `==`, which users' classes can redefine.
"""

from __future__ import annotations

from .packing import pack, unpack

__all__ = ["same_bytes", "stored_form"]


def stored_form(value: object) -> bytes:
    """Return the bytes of the value after it was stored and read back once.

    They are the same for a value that comes from a store.
    """
    return pack(unpack(pack(value)))


def same_bytes(one: object, other: object) -> bool:
    """Return whether both values have the same stored form."""
    return stored_form(one) == stored_form(other)
