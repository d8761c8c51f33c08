"""Remembered session values, to detect later whether they have changed, and to restore them.

Mutable values are remembered as bytes, so that other code cannot change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..errors import CheckpointError
from .packing import pack, unpack

__all__ = ["check_values", "kept_value", "same_bytes", "stored_form", "value_of"]

_PLAIN: Final = (type(None), bool, int, str, bytes)  # no floats: 0.0 equals -0.0


def check_values(values: Mapping[str, Any]) -> None:
    """Raise CheckpointError if a session value cannot be stored."""
    for key, value in values.items():
        try:
            kept_value(value)
        except CheckpointError as error:
            instead = (
                "Put objects of this process into a closure or into options instead, or run with "
                "durability='none'."
            )
            msg = f"the session value {key!r} cannot be stored with this run: {error} {instead}"
            raise CheckpointError(msg) from error


class _Packed(bytes):
    """The bytes of a mutable value."""

    __slots__ = ()


def kept_value(value: Any) -> Any:
    """Return the form in which a value is remembered: the value itself, or its bytes."""
    if type(value) in _PLAIN:
        return value
    return _Packed(pack(value))


def value_of(kept: Any) -> Any:
    """Return a fresh copy of the value, from the result of `kept_value`."""
    return unpack(kept) if type(kept) is _Packed else kept


def stored_form(value: object) -> bytes:
    """Return the bytes of the value after it was stored and read back once.

    They are the same for a value that comes from a store.
    """
    return pack(unpack(pack(value)))


def same_bytes(one: object, other: object) -> bool:
    """Return whether both values have the same stored form."""
    return stored_form(one) == stored_form(other)
