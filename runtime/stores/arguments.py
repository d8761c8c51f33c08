"""Validation of the arguments of a store's methods, before anything happens.

An invalid key, value or time span raises a `UsageError` that names the call and the valid values.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Final

from ..errors import UsageError
from .run_entries import DropEntry, ExpectEntry, RunEntry, entry_size
from .writes import Append, Expect, Put, Remove, Write

__all__ = [
    "LONGEST_KEY",
    "checked_writes",
    "count",
    "is_plain_function",
    "key_bytes",
    "limit_of",
    "owner_name",
    "record_list",
    "span",
    "text",
    "time_to_live",
    "value_bytes",
]

LONGEST_KEY: Final = 2048
"""The longest key, in bytes of UTF-8: every backend can index that without extra work."""

_MOST: Final = 2**63 - 1  # the largest number of all backends
# Seconds, some three hundred years: the longest span that every backend can represent.
_LONGEST_SPAN: Final = 1e10


def key_bytes(call: str, key: object, *, name: str = "key") -> bytes:
    """Encode the key in UTF-8, where bytes sort as text does in Python.

    Half of a surrogate pair counts as an ordinary character.
    """
    if type(key) is str and 0 < len(key) <= _SURELY_SHORT:
        return key.encode("utf-8", "surrogatepass")
    if not isinstance(key, str):
        msg = f"{call}: {name} must be a string, got a {type(key).__name__}."
        raise UsageError(msg)
    if not key:
        msg = f"{call}: {name} must not be an empty string."
        raise UsageError(msg)
    encoded = key.encode("utf-8", "surrogatepass")
    if len(encoded) > LONGEST_KEY:
        msg = (
            f"{call}: {name} must have at most {LONGEST_KEY:,} bytes in UTF-8, got "
            f"{len(encoded):,}: {key[:40]!r}... Put long data into the value."
        )
        raise UsageError(msg)
    return encoded


def owner_name(call: str, owner: object) -> bytes:
    return key_bytes(call, owner, name="owner")


def text(call: str, prefix: object) -> bytes:
    if not isinstance(prefix, str):
        msg = f"{call}: prefix must be a string, which may be empty, got a {type(prefix).__name__}."
        raise UsageError(msg)
    return prefix.encode("utf-8", "surrogatepass")


def value_bytes(call: str, value: object, *, name: str = "value") -> bytes:
    if not isinstance(value, bytes):
        msg = f"{call}: {name} must be bytes, got a {type(value).__name__}."
        raise UsageError(msg)
    return value


def record_list(call: str, records: object) -> list[bytes]:
    if isinstance(records, str | bytes | bytearray | memoryview) or not isinstance(
        records, Sequence
    ):
        msg = f"{call}: records must be a list of bytes, got a {type(records).__name__}."
        raise UsageError(msg)
    listed = list(records)
    for index, record in enumerate(listed):
        if not isinstance(record, bytes):
            value_bytes(call, record, name=f"records[{index}]")
    return listed


def span(call: str, seconds: object, *, name: str = "seconds", zero: bool = False) -> float:
    # Written so that nan, which is neither less nor more than anything, is refused as well.
    if (
        not isinstance(seconds, int | float)
        or isinstance(seconds, bool)
        or not ((seconds > 0 or (zero and seconds == 0)) and seconds <= _LONGEST_SPAN)
    ):
        msg = (
            f"{call}: {name} must be a number of seconds, {'not less' if zero else 'more'} "
            f"than 0 and at most {_LONGEST_SPAN:,.0f}, got {seconds!r}."
        )
        raise UsageError(msg)
    return float(seconds)


def time_to_live(store: str, ttl: object) -> float | None:
    return None if ttl is None else span(store, ttl, name="ttl")


def count(call: str, after: object) -> int:
    if not isinstance(after, int) or isinstance(after, bool) or not 0 <= after <= _MOST:
        msg = f"{call}: after must be a number of records, 0 or more, got {after!r}."
        raise UsageError(msg)
    return after


def limit_of(call: str, limit: object) -> int | None:
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        msg = (
            f"{call}: limit must be a number of keys, 1 or more, or None for all of them, got "
            f"{limit!r}."
        )
        raise UsageError(msg)
    return None if limit is None else min(limit, _MOST)


def checked_writes(call: str, writes: Sequence[Write]) -> int:
    """Return the approximate number of bytes of the writes.

    Raises UsageError if one of them is invalid.
    """
    size = index = 0
    for write in writes:
        kind = type(write)
        if kind not in _WRITES:
            msg = (
                f"{call}: writes[{index}] must be Put, Remove, Append, Expect, RunEntry, "
                f"DropEntry or ExpectEntry, got a {kind.__name__}."
            )
            raise UsageError(msg)
        key = write.key
        if type(key) is not str or not 0 < len(key) <= _SURELY_SHORT:
            key_bytes(call, key, name=f"writes[{index}].key")
        if kind is Put or kind is RunEntry:
            seconds = write.seconds  # type: ignore[union-attr]  # by its kind
            if seconds is not None and not (
                type(seconds) is float and 0 < seconds <= _LONGEST_SPAN
            ):
                span(call, seconds, name=f"writes[{index}].seconds")
        if type(write) is Put:
            size += len(
                write.value
                if type(write.value) is bytes
                else value_bytes(call, write.value, name=f"writes[{index}].value")
            )
        elif type(write) is Append:
            for record in write.records:
                size += len(
                    record
                    if type(record) is bytes
                    else value_bytes(call, record, name=f"writes[{index}].records")
                )
            if type(write.after) is not int or not 0 <= write.after <= _MOST:
                count(call, write.after)
        elif type(write) is RunEntry:
            size += entry_size(call, write)
        elif type(write) is ExpectEntry:
            size += 0 if write.entry is None else entry_size(call, write.entry)
        elif type(write) is Expect and write.value is not None:
            value_bytes(call, write.value, name=f"writes[{index}].value")
        index += 1  # noqa: SIM113 -- a count that is seldom needed
    return size


_SURELY_SHORT: Final = LONGEST_KEY // 4  # characters of at most four bytes each
_WRITES: Final = frozenset((Put, Remove, Append, Expect, RunEntry, DropEntry, ExpectEntry))


def is_plain_function(given: object) -> bool:
    """Return whether it can be called in a thread, and returns its result directly."""
    return callable(given) and not inspect.iscoroutinefunction(given)
