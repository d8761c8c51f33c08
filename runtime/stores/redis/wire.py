"""Encoding of operations for the scripts of a `RedisStore`, and decoding of their answers.

This module never talks to a server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import WriteRefused
from ..run_entries import TEXTS

if TYPE_CHECKING:
    from ..store_thread import Operation
    from ..threaded_store import EncodedWrite

__all__ = ["FAILED", "REFUSED", "answer_of", "behind", "milliseconds", "refusal", "words_of"]

FAILED: Final = 0
"""The first item of an answer if the server itself has ended an operation with an error."""
REFUSED: Final = 2
"""The first item of an answer if a precondition of an operation no longer holds."""


def words_of(operation: Operation, least: int) -> list[object]:
    """Encode an operation for a batch. The epoch of a claim must be larger than `least`."""
    mine = _arguments(operation, least)
    return [operation.name, len(mine), *mine]


def _arguments(operation: Operation, least: int) -> list[object]:
    key, arguments = operation.key, operation.arguments
    match operation.name:
        case "commit":
            claim, writes, then = arguments
            owner, epoch = claim or (b"", "")
            words = [key, owner, epoch, then]
        case "claim":
            owner, writes = arguments
            words = [key, owner, least]
        case "append":
            return [key, *arguments[0]]
        case "keep_alive":
            seconds, first = arguments
            return [key, milliseconds(seconds), int(first)]
        case _:
            return [key, *arguments]
    for write in writes:
        _add(words, write)
    return words


def _add(words: list[object], write: EncodedWrite) -> None:
    kind = write.kind
    if kind == "append":
        words += (kind, write.key, write.after, len(write.records), *write.records)
    elif kind == "put":
        words += (
            kind,
            write.key,
            write.value,
            0 if write.seconds is None else milliseconds(write.seconds),
        )
    elif kind in ("expect", "expect_entry"):
        words += (
            (kind, write.key, 0, b"") if write.value is None else (kind, write.key, 1, write.value)
        )
    elif kind == "entry":
        ends = 0 if write.seconds is None else milliseconds(write.seconds)
        words += (
            kind,
            write.key,
            write.value,
            ends,
            len(write.records) + len(write.numbers),
            *write.records[: len(TEXTS)],
            *write.numbers,
            *write.records[len(TEXTS) :],
        )
    else:
        words += (kind, write.key)


def answer_of(name: str, found: Any) -> object:
    """Convert the script's answer to the result of an operation of that name."""
    match name:
        case "create" | "keep_alive":
            return bool(found)
        case "append":
            return found
        case "claim":
            return tuple(found) if found else None
    return None


def refusal(found: Sequence[Any]) -> WriteRefused:
    """Convert the script's refusal of an operation to an error."""
    reason, key, there, wanted = (_text(part) for part in found)
    match reason:
        case "epoch":
            why = f"its claim now belongs to {f'owner {there!r}' if there else 'no owner'}"
        case "owner":
            why = f"owner {there!r} is not alive"
        case "position":
            why = f"its journal holds {there} records, and not {wanted}"
        case _:
            why = "its value has changed in the meantime"
    return WriteRefused(f"nothing was written for {key!r}: {why}.", reason=reason, key=key)


def behind(prefix: bytes) -> bytes:
    """Return the end of the range of keys with that prefix, in the syntax of ZRANGEBYLEX.

    The last byte of UTF-8 can always be incremented.
    """
    return b"(" + prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"+"


def milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _text(part: bytes | int) -> str:
    return part.decode("utf-8", "surrogatepass") if isinstance(part, bytes) else str(part)
