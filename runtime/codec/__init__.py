"""Bytes and back, for registered types only.

Owns the format of everything that is stored. Its files, each importing only from those above it:

    builtin         how Python's own values are written: the marks and their numbers
    registered      how registered classes are taken apart and made again
    packing         the header with its version, the bounds, unknown types, exceptions as data; `pack` and `unpack`

It must never import, call or construct anything because bytes name it, and never give a mark another meaning.
"""

from .packing import RecordedError, pack, register_type, unpack

__all__ = ["RecordedError", "pack", "register_type", "unpack"]
