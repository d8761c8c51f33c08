"""Serialization to bytes and back, for registered types only.

Each module imports only from those above it:

    collisions      limits how many keys may have the same hash
    builtin         encoding of Python's own values: the marks and their numbers
    kinds           encoding of dataclasses, named tuples and enums
    models          encoding of pydantic models
    registered      the registry of classes and their names
    refusals        error messages for values that cannot be written
    packing         the header, the bounds, exceptions as data; `pack` and `unpack`
    json_values     values of types that are not registered, as plain data
    kept_values     remembered session values, to detect changes; their comparison

Bytes can never cause an import, a call, or the construction of a class that is not registered. The
meaning of a mark never changes.
"""

from .packing import RecordedError, pack, register_type, unpack

__all__ = ["RecordedError", "pack", "register_type", "unpack"]
