"""Bytes are what `pack` wrote, or a CheckpointError: nothing else comes of them, and nothing is
loaded or called because they name it.
"""

import dataclasses
import os
import pickle
import subprocess
import sys
import tracemalloc
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID
from zlib import crc32
from zoneinfo import ZoneInfo

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgpack import ExtType

from offbook.runtime.codec.packing import RecordedError, pack, register_type, unpack
from offbook.runtime.data.chat import Message, ToolCall, Usage
from offbook.runtime.data.events import AgentEvent, Exit
from offbook.runtime.errors import CheckpointError, ToolError, UsageError


def sealed(body):
    """A header that fits: what follows it is read, however damaged."""
    return b"\xc1ob\x01" + crc32(body).to_bytes(4, "big") + body


def forged(value):
    return sealed(msgpack.packb(value))


def mark(code, payload=b""):
    return ExtType(code, payload)


SAMPLES = [
    pack(Message("assistant", "hé", (ToolCall("1", "f", "{}"),), usage=Usage(1, 2))),
    pack(AgentEvent("a", ("a",), action=Exit(), error=ToolError("x", run="r"), seq=2)),
    pack({(1, 2): {3, 2**70}, "list": [1.5, None, frozenset([b"x"])]}),
]


def reads_or_refuses(data):
    try:
        unpack(data)
    except CheckpointError as error:
        assert str(error)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_g09_random_bytes_are_refused(data):
    with pytest.raises(CheckpointError):
        unpack(data)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_g09_random_bytes_behind_a_good_header_give_a_value_or_are_refused(data):
    reads_or_refuses(sealed(data))


@pytest.mark.parametrize("sample", SAMPLES)
def test_g09_every_truncation_is_refused(sample):
    for end in range(len(sample)):
        with pytest.raises(CheckpointError):
            unpack(sample[:end])
        reads_or_refuses(sealed(sample[8:end]))


@pytest.mark.parametrize("sample", SAMPLES)
def test_g09_every_flipped_byte_is_refused(sample):
    for index in range(len(sample)):
        with pytest.raises(CheckpointError):
            unpack(sample[:index] + bytes((sample[index] ^ 0x41,)) + sample[index + 1 :])


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_g09_mutations_with_a_checksum_that_fits_give_a_value_or_are_refused(sample, changes):
    body = bytearray(sample[8:])
    for index, byte in changes:
        body[index % len(body)] = byte
    reads_or_refuses(sealed(bytes(body)))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "no bytes"),
        (pickle.dumps([1]), "not written by pack"),
        (b"{}", "not written by pack"),
        (b"\xc1ob\x02anything", "newer version"),
        (b"\xc1ob\x00anything", "has an invalid version"),
        (pack(1) + b"\x00", "checksum"),
        (sealed(b"\x01\x02"), "extra"),
        (sealed(b"\xa1\xff"), "utf-8"),
        (forged([mark(1, b"os.system"), "true"]), "'os.system' is not registered"),
        (forged([mark(1, b"\xff"), 1]), "utf-8"),
        (forged([mark(1, b"TextPart\0text")]), "0 values for 1 fields"),
        (forged([mark(1, b"TextPart\0text"), "a", "b"]), "more values"),
        (forged([mark(1, b"TextPart\0text\0text"), "a", "b"]), "twice"),
        (forged([mark(1, b"TextPart\0txt"), "a"]), "no field 'txt'"),
        (forged([mark(1, b"Message\0role"), "nobody"]), "'nobody'"),
        (forged([mark(99)]), "code 99"),
        (forged(mark(2)), "the start of a value where none can start"),
        (forged([1, mark(2)]), "the start of a value where none can start"),
        (forged({"a": mark(2)}), "the start of a value where none can start"),
        (forged([mark(2), mark(2)]), "the start of a value where none can start"),
        (forged(msgpack.Timestamp(1)), "code -1"),
        (forged([{"a": msgpack.Timestamp(1, 2)}]), "code -1"),
        (forged([mark(3), [1]]), "unhashable"),
        (sealed(b"\x81\x90\x01"), "unhashable"),
        (forged([mark(6), 2024, 13, 1]), "month"),
        (forged([mark(6), "x", 13, 1]), "integers"),
        (forged([mark(5), b"0123456789"]), "datetime"),
        (forged([mark(10), "../../etc/passwd"]), "time zone"),
        (forged([mark(10), "No/Where"]), "No/Where"),
        (forged([mark(9), 5, 0, 0, None]), "ValueError"),
        (forged(mark(33, b"short")), "16"),
        (forged(mark(34, b"words")), "ConversionSyntax"),
        (forged(mark(35, b"x")), "16 bytes"),
        (forged([mark(13)]), "exception"),
        (forged([mark(13), ["builtins.ValueError", "x", [[1]], None]]), "plain values"),
        (forged([mark(13), ["offbook.ToolError", "x", None, {"__class__": 1}]]), "__class__"),
    ],
)
def test_g09_damage_is_named(data, text, says):
    with pytest.raises(CheckpointError) as caught:
        unpack(data)
    says(caught, text)


def test_g09_what_is_no_bytes_is_the_callers_mistake():
    with pytest.raises(UsageError, match="must be bytes"):
        unpack("text")


@pytest.mark.parametrize("depth", [201, 1000, 100_000])
def test_g09_deep_nesting_is_refused(depth):
    for body in (
        b"\x91" * depth + b"\xc0",
        b"\x81\x01" * depth + b"\xc0",
        b"\x92\xc7\x00\x02" * depth + b"\xc0",
    ):
        with pytest.raises(CheckpointError):
            unpack(sealed(body))


@pytest.mark.parametrize(
    "claim",
    [
        b"\xdd\x00\x00\xff\xff",
        b"\xdc\xff\xff",
        b"\xdf\x00\x00\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
    ],
)
def test_g09_what_bytes_claim_takes_no_memory(claim):
    data = sealed(claim * 150 + b"\xc0" * 70_000)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


class Trap:
    def __reduce__(self):
        return (os.system, ("exit 1",))

    def __init__(self, *args):
        pytest.fail("made from bytes")


class TrapError(Exception):
    def __init__(self, *args):
        pytest.fail("made from bytes")


def test_g09_nothing_that_bytes_name_is_made():
    with pytest.raises(CheckpointError, match="not registered"):
        unpack(forged([mark(1, f"{Trap.__module__}.Trap".encode())]))
    with pytest.raises(CheckpointError, match="not registered"):
        pack(object.__new__(Trap))
    for name in (
        f"{TrapError.__module__}.TrapError",
        "builtins.exec",
        "builtins.SystemExit",
        "os.system",
        "offbook.unknown",
    ):
        back = unpack(forged([mark(13), [name, "x", ["x"], None]]))
        assert type(back) is RecordedError
        assert back.type_name == name


def test_g09_nothing_is_imported():
    code = """
import sys
from zlib import crc32
import msgpack
from offbook.runtime.codec import unpack
from offbook.runtime.errors import CheckpointError
before = set(sys.modules)
for value in ([msgpack.ExtType(1, b"wave.Wave_read"), 1], [msgpack.ExtType(13, b""), ["wave.Error", "x", None, None]], [msgpack.ExtType(10, b""), "wave.Error"]):
    body = msgpack.packb(value)
    try:
        unpack(b"\\xc1ob\\x01" + crc32(body).to_bytes(4, "big") + body)
    except CheckpointError:
        pass
assert "wave" not in sys.modules and "pydantic" not in sys.modules, set(sys.modules) - before
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_g09_what_a_registered_class_raises_is_damage(says):
    @register_type(name="test.Picky")
    @dataclasses.dataclass(frozen=True)
    class Picky:
        number: int

        def __post_init__(self):
            if self.number < 0:
                raise RuntimeError("below zero")

        def __hash__(self):
            raise OSError("no hash")

    with pytest.raises(CheckpointError) as caught:
        unpack(forged([mark(3), [mark(1, b"test.Picky\0number"), 1]]))
    says(caught, "no hash")


STORED = {
    "a message": (
        "c16f62016e16b15e9bc75f014d65737361676500726f6c6500636f6e74656e7400746f6f6c5f63616c6c7300746f6f6c5f63616c6c5f696400746f6f6c5f6e616d6500726561736f6e696e67007573616765007265667573616c0066696e6973685f726561736f6e006964a9617373697374616e74a2686992c7000294c71a01546f6f6c43616c6c006964006e616d6500617267756d656e7473a131a166a27b7dc0c0c095c73701557361676500696e7075745f746f6b656e73006f75747075745f746f6b656e73006361636865645f746f6b656e7300726571756573747301020000c0c0a16d",
        Message("assistant", "hi", (ToolCall("1", "f", "{}"),), usage=Usage(1, 2), id="m"),
    ),
    "an event": (
        "c16f62011cbe4e389cc76a014167656e744576656e74006167656e745f6e616d650072756e5f70617468006d6573736167650064656c746100637573746f6d5f6f757470757400616374696f6e006572726f72007365710074696d657374616d700072756e5f696400696e766f636174696f6e5f6964a16193c70002a161a1629bc75f014d65737361676500726f6c6500636f6e74656e7400746f6f6c5f63616c6c7300746f6f6c5f63616c6c5f696400746f6f6c5f6e616d6500726561736f6e696e67007573616765007265667573616c0066696e6973685f726561736f6e006964a475736572a17891c70002c0c0c0c0c0c0a175c0c091d60145786974c002cb3ff8000000000000a172a0",
        AgentEvent(
            "a",
            ("a", "b"),
            Message("user", "x", id="u"),
            action=Exit(),
            seq=2,
            timestamp=1.5,
            run_id="r",
        ),
    ),
    "values": (
        "c16f62019a3da1d29dc0c3c70920400000000000000000cb3ff8000000000000a2c3a9c4017892c700020192c700030292c70004038193c70002010203d622312e3530d82300000000000000003ff0000000000000d82100000000000000000000000000000005",
        [
            None,
            True,
            2**70,
            1.5,
            "é",
            b"x",
            (1,),
            {2},
            frozenset((3,)),
            {(1, 2): 3},
            Decimal("1.50"),
            1j,
            UUID(int=5),
        ],
    ),
    "dates": (
        "c16f6201069fed529594c70006cd07e8021d9ac70005cd07e80101000000000095c70009000000c097c700070102000000c094c70008ff00009ac70005cd07e80101000000000092c7000aac4575726f70652f5061726973",
        [
            date(2024, 2, 29),
            datetime(2024, 1, 1, tzinfo=UTC),
            time(1, 2),
            timedelta(-1),
            datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Paris")),
        ],
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_g09_bytes_of_this_format_stay_readable(name):
    data, value = STORED[name]
    back = unpack(bytes.fromhex(data))
    assert back == value
    assert type(back) is type(value)
