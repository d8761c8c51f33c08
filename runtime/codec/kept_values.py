"""Session values as they are remembered, to tell later on whether they have changed, and what they were.

Owns: the form in which one is remembered, and that those are refused which cannot be kept. It must never hold on to an object that others may change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..errors import CheckpointError
from .packing import pack, unpack

__all__ = ["check_values", "kept_value", "value_of"]

_PLAIN: Final = (type(None), bool, int, str, bytes)  # and no floats: 0.0 equals -0.0


def check_values(values: Mapping[str, Any]) -> None:
    """Raise CheckpointError, if a session value cannot be kept."""
    for key, value in values.items():
        try:
            kept_value(value)
        except CheckpointError as error:
            instead = "What only lives in this process belongs into a closure or into options, or the run into a Runner with durability='none'."
            msg = f"the session value {key!r} cannot be kept in the store of this run: {error} {instead}"
            raise CheckpointError(msg) from error


class _Packed(bytes):
    """Of a value that may be changed in place."""

    __slots__ = ()


def kept_value(value: Any) -> Any:
    """A value as it is remembered, to tell whether it has changed since: itself, or its bytes."""
    if type(value) in _PLAIN:
        return value
    return _Packed(pack(value))


def value_of(kept: Any) -> Any:
    """The value again, which nothing else has, from what `kept_value` has made of it."""
    return unpack(kept) if type(kept) is _Packed else kept
