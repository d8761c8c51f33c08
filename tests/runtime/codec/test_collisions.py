"""Bytes are read in a time that grows with their number, also where all keys of a map or a set have
one hash.
"""

import time
from decimal import Decimal
from zlib import crc32

import msgpack
import pytest

from offbook.runtime.codec.packing import pack, unpack
from offbook.runtime.errors import CheckpointError


def sealed(body):
    return b"\xc1ob\x01" + crc32(body).to_bytes(4, "big") + body


PRIME = 2**61 - 1
NUMBER = 60_000


def wide(kind, keys):
    """A map or a set of those keys, as bytes."""
    if kind == "map":
        return sealed(
            b"\xdf"
            + len(keys).to_bytes(4, "big")
            + b"".join(
                msgpack.packb(key, strict_types=True, default=long) + b"\xc0" for key in keys
            )
        )
    code = msgpack.packb(msgpack.ExtType(3, b""))
    return sealed(
        b"\xdd"
        + (len(keys) + 1).to_bytes(4, "big")
        + code
        + b"".join(msgpack.packb(key, strict_types=True, default=long) for key in keys)
    )


def long(key):
    if isinstance(key, tuple):
        return [msgpack.ExtType(2, b""), *key]
    return msgpack.ExtType(32, key.to_bytes(key.bit_length() // 8 + 1, "big", signed=True))


def seconds(data):
    before = time.process_time()
    try:
        unpack(data)
    except CheckpointError:
        pass
    return time.process_time() - before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["map", "set"])
@pytest.mark.parametrize("shape", ["number", "tuple"])
def test_g09_keys_of_one_hash_take_no_longer_than_others(kind, shape):
    shaped = (lambda number: number) if shape == "number" else (lambda number: (number, 1))
    hostile = wide(kind, [shaped(k * PRIME) for k in range(1, NUMBER)])
    innocent = wide(kind, [shaped(k * PRIME + k * 7919) for k in range(1, NUMBER)])
    assert seconds(hostile) < 5 * seconds(innocent) + 0.5
    with pytest.raises(CheckpointError, match="one hash"):
        unpack(hostile)
    assert len(unpack(innocent)) == NUMBER - 1


def test_g09_many_small_maps_of_one_hash_take_no_longer_than_others():
    def maps(step):
        one = b"\xde\x00\xff" + b"".join(
            msgpack.packb(long(k * step)) + b"\xc0" for k in range(1, 256)
        )
        return sealed(b"\xdc\x00\xc8" + one * 200)

    assert seconds(maps(PRIME)) < 20 * seconds(maps(PRIME + 7919)) + 0.5


def test_numbers_as_people_have_them_are_keys():
    for keys in (
        range(5000),
        range(-5000, 0),
        [k << 22 for k in range(5000)],
        [2.0**k for k in range(-1000, 1000)],
        [Decimal(k) / 100 for k in range(5000)],
    ):
        assert unpack(pack(dict.fromkeys(keys, 1))) == dict.fromkeys(keys, 1)
        assert unpack(pack(set(keys))) == set(keys)
    grid = {(x, y): 1 for x in range(-40, 40) for y in range(-40, 40)}
    assert unpack(pack(grid)) == grid
