"""Fast binary encoding of lists for PostgreSQL: a batch is sent as some twenty lists with hundreds
of items.

Imported when a connection is made, because it imports the client.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

from .batch import Blobs, Numbers, Words

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.rows import TupleRow

__all__ = ["register"]

_BYTEA, _BIGINT, _TEXT = 17, 20, 25  # the server's ids of these types, and of lists of them
_BYTEAS, _BIGINTS, _TEXTS = 1001, 1016, 1009
_NULL: Final = b"\xff\xff\xff\xff"  # a length of -1


class _NumbersDumper(Dumper):
    format = Format.BINARY
    oid = _BIGINTS

    def dump(self, obj: list[int]) -> Buffer:
        flat = [8] * (2 * len(obj))
        flat[1::2] = obj
        return _head(_BIGINT, len(obj)) + struct.pack(">" + "iq" * len(obj), *flat)


class _BlobsDumper(Dumper):
    format = Format.BINARY
    oid = _BYTEAS

    def dump(self, obj: list[bytes | None]) -> Buffer:
        parts = [_head(_BYTEA, len(obj))]
        for blob in obj:
            parts += (_NULL,) if blob is None else (len(blob).to_bytes(4, "big"), blob)
        return b"".join(parts)


class _WordsDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: list[str]) -> Buffer:
        return _head(_TEXT, len(obj)) + b"".join(
            [len(word).to_bytes(4, "big") + word.encode("ascii") for word in obj]
        )


def _head(kind: int, count: int) -> bytes:
    """Encode dimensions, whether there may be nulls, the type; the size, and the lower bound."""
    return struct.pack(">iiiii", 1, 1, kind, count, 1) if count else struct.pack(">iii", 0, 0, kind)


def register(connection: Connection[TupleRow]) -> None:
    for cls, dumper in ((Numbers, _NumbersDumper), (Blobs, _BlobsDumper), (Words, _WordsDumper)):
        connection.adapters.register_dumper(cls, dumper)
