"""Bytes and back, for registered types only.

Owns the format of everything that is stored. Its files, each importing only from those above it:

    collisions      how many keys may have one hash
    builtin         how Python's own values are written: the marks and their numbers
    kinds           how dataclasses, named tuples and enums are taken apart and made again
    models          the same for pydantic models
    registered      which classes may be written, and under which names
    refusals        what cannot be written: where it is, and why
    packing         the header, the bounds, exceptions as data; `pack` and `unpack`
    kept_values     session values as they are remembered, to tell whether they have changed

It must never import, call or construct anything because bytes name it, and never give a mark another meaning.
"""

from .packing import RecordedError, pack, register_type, unpack

__all__ = ["RecordedError", "pack", "register_type", "unpack"]
