"""Encoding of Python's built-in values: tuples, sets, dates, zones, and numbers that msgpack does
not support.

A value that is more than a scalar is written as an array that starts with a mark, an extension type
without any other use: `[mark, items…]`. So nested values are not encoded twice, however deep they
are, and msgpack does the traversal. The numbers of the marks are part of the format, and never
change their meaning. This module never imports names that occur in bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from msgpack import ExtType  # type: ignore[import-untyped]  # it has no stubs

from ..data.checkpoint_id import CheckpointId
from ..errors import CheckpointError
from .collisions import checked_keys

__all__ = [
    "ERROR",
    "MODEL",
    "TYPE",
    "VALUE_ENCODERS",
    "VALUE_MARKS",
    "VALUE_SCALARS",
    "Encoder",
    "Mark",
]

Encoder: TypeAlias = Callable[[Any], object]

TYPE: Final = 1
"""The mark of a registered type: its payload holds the name, and the names of the fields."""
ERROR: Final = 13
"""The mark of an exception."""
MODEL: Final = 14
"""The mark of a pydantic model: its payload is that of a registered type."""


class Mark:
    """The first item of an array that is more than a list.

    `build` makes the value from the whole array. Marks themselves cannot be written.
    """

    __slots__ = ("build",)

    def __init__(self, build: Callable[[list[object]], object]) -> None:
        self.build = build


_TUPLE: Final = ExtType(2, b"")
_SET: Final = ExtType(3, b"")
_FROZENSET: Final = ExtType(4, b"")
_DATETIME: Final = ExtType(5, b"")
_DATE: Final = ExtType(6, b"")
_TIME: Final = ExtType(7, b"")
_TIMEDELTA: Final = ExtType(8, b"")
_OFFSET: Final = ExtType(9, b"")
_ZONE: Final = ExtType(10, b"")

_INT: Final = 32
_UUID: Final = 33
_DECIMAL: Final = 34
_COMPLEX: Final = 35

_COMPLEX_FORM: Final = struct.Struct(">dd")
# Python searches folders and packages for zones by name: only these characters occur in the names
# of zones.
_ZONE_KEY: Final = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")


def _numbers(kind: str, items: list[object], count: int) -> list[int]:
    """Return the `count` integers after the mark.

    Some constructors also accept other types, with another meaning.
    """
    numbers = [number for number in items[1 : count + 1] if type(number) is int]
    if len(numbers) != count:
        msg = (
            f"a stored {kind} must consist of {count} integers, but does not. The data is "
            "damaged: restore it from a backup."
        )
        raise CheckpointError(msg)
    return numbers


def _rest(kind: str, items: list[object], count: int) -> list[object]:
    if len(items) != count:
        msg = (
            f"a stored {kind} has {len(items) - 1} parts, expected {count - 1}. The data is "
            "damaged: restore it from a backup."
        )
        raise CheckpointError(msg)
    return items


def _zone(value: object) -> tzinfo | None:
    if value is None or type(value) is timezone or type(value) is ZoneInfo:
        return value
    msg = f"a time zone must be None, a fixed offset or a ZoneInfo, got a {type(value).__name__}."
    raise CheckpointError(msg)


def _write_datetime(value: datetime) -> list[object]:
    return [
        _DATETIME,
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        value.fold,
        value.tzinfo,
    ]


def _read_datetime(items: list[object]) -> datetime:
    *parts, fold = _numbers("datetime", _rest("datetime", items, 10), 8)
    year, month, day, hour, minute, second, microsecond = parts
    return datetime(year, month, day, hour, minute, second, microsecond, _zone(items[9]), fold=fold)


def _write_time(value: time) -> list[object]:
    return [
        _TIME,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        value.fold,
        value.tzinfo,
    ]


def _read_time(items: list[object]) -> time:
    hour, minute, second, microsecond, fold = _numbers("time", _rest("time", items, 7), 5)
    return time(hour, minute, second, microsecond, _zone(items[6]), fold=fold)


def _read_date(items: list[object]) -> date:
    return date(*_numbers("date", _rest("date", items, 4), 3))


def _read_timedelta(items: list[object]) -> timedelta:
    return timedelta(*_numbers("timedelta", _rest("timedelta", items, 4), 3))


def _write_offset(value: timezone) -> list[object]:
    # The second item is the name, if the zone has one.
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]  # as pickle uses it
    return [_OFFSET, offset.days, offset.seconds, offset.microseconds, name[0] if name else None]


def _read_offset(items: list[object]) -> timezone:
    offset = timedelta(*_numbers("time zone", _rest("time zone", items, 5), 3))
    name = items[4]
    if name is not None:
        return timezone(offset, name)  # type: ignore[arg-type]  # it refuses anything but strings by itself
    return UTC if not offset else timezone(offset)


def _write_zone(value: ZoneInfo) -> list[object]:
    key = value.key
    if not key or _ZONE_KEY.fullmatch(key) is None:
        msg = (
            f"{value!r} is a time zone without a key, so it cannot be stored. Use a named one, "
            "such as ZoneInfo('Europe/Paris')."
        )
        raise CheckpointError(msg)
    return [_ZONE, key]


def _read_zone(items: list[object]) -> ZoneInfo:
    key = _rest("time zone", items, 2)[1]
    if type(key) is not str or _ZONE_KEY.fullmatch(key) is None:
        msg = (
            f"a stored time zone has the invalid name {key!r:.80}. The data is damaged: restore it "
            "from a backup."
        )
        raise CheckpointError(msg)
    return ZoneInfo(key)


def _read_int(payload: bytes) -> int:
    return int.from_bytes(payload, "big", signed=True)


def _write_int(value: int) -> ExtType:
    return ExtType(_INT, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


VALUE_ENCODERS: Final[tuple[tuple[type, Encoder], ...]] = (
    (tuple, lambda value: [_TUPLE, *value]),
    (CheckpointId, str),
    (set, lambda value: [_SET, *checked_keys(value)]),
    (frozenset, lambda value: [_FROZENSET, *checked_keys(value)]),
    (datetime, _write_datetime),
    (date, lambda value: [_DATE, value.year, value.month, value.day]),
    (time, _write_time),
    (timedelta, lambda value: [_TIMEDELTA, value.days, value.seconds, value.microseconds]),
    (timezone, _write_offset),
    (ZoneInfo, _write_zone),
    (int, _write_int),
    (UUID, lambda value: ExtType(_UUID, value.bytes)),
    (Decimal, lambda value: ExtType(_DECIMAL, str(value).encode("ascii"))),
    (complex, lambda value: ExtType(_COMPLEX, _COMPLEX_FORM.pack(value.real, value.imag))),
)
"""Convert values that msgpack cannot write.

The entry for int is only used for those beyond 64 bits.
"""

VALUE_MARKS: Final[tuple[tuple[int, Mark], ...]] = (
    (_TUPLE.code, Mark(lambda items: tuple(items[1:]))),
    (_SET.code, Mark(lambda items: set(checked_keys(items[1:])))),
    (_FROZENSET.code, Mark(lambda items: frozenset(checked_keys(items[1:])))),
    (_DATETIME.code, Mark(_read_datetime)),
    (_DATE.code, Mark(_read_date)),
    (_TIME.code, Mark(_read_time)),
    (_TIMEDELTA.code, Mark(_read_timedelta)),
    (_OFFSET.code, Mark(_read_offset)),
    (_ZONE.code, Mark(_read_zone)),
)

VALUE_SCALARS: Final[tuple[tuple[int, Callable[[bytes], object]], ...]] = (
    (_INT, _read_int),
    (_UUID, lambda payload: UUID(bytes=payload)),
    (_DECIMAL, lambda payload: Decimal(payload.decode("ascii"))),
    (_COMPLEX, lambda payload: complex(*_COMPLEX_FORM.unpack(payload))),
)
