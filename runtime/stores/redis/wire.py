"""How operations are written for the scripts of a `RedisStore`, and how their answers are read.

Owns: the words of a batch, and in which words a write is refused. It must never talk to a server.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...errors import WriteRefused

if TYPE_CHECKING:
    from ..store_thread import Operation
    from ..threaded_store import EncodedWrite

__all__ = ["FAILED", "REFUSED", "answer_of", "behind", "milliseconds", "refusal", "words_of"]

FAILED: Final = 0
"""How an answer begins with which the server itself has ended an operation."""
REFUSED: Final = 2
"""How one begins that says what an operation stands on and is no longer so."""


def words_of(operation: Operation, least: int) -> list[object]:
    """An operation, for a batch. A claim's epoch is to be larger than `least`."""
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
            owner, writes, former = arguments
            words = [key, owner, former or b"", least]
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
        words += (kind, write.key, write.value, 0 if write.seconds is None else milliseconds(write.seconds))
    elif kind == "expect":
        words += (kind, write.key, 0, b"") if write.value is None else (kind, write.key, 1, write.value)
    elif kind == "entry":
        ends = 0 if write.seconds is None else milliseconds(write.seconds)
        words += (kind, write.key, write.value, ends, write.after, len(write.records), *write.records)
    else:
        words += (kind, write.key)


def answer_of(name: str, found: Any) -> object:
    """What an operation of that name returns, from what the script has answered."""
    match name:
        case "create" | "keep_alive":
            return bool(found)
        case "append":
            return found
        case "claim":
            return tuple(found) if found else None
    return None


def refusal(found: Sequence[Any]) -> WriteRefused:
    """Why an operation was refused, as the script has said it."""
    reason, key, there, wanted = (_text(part) for part in found)
    match reason:
        case "epoch":
            why = f"it is claimed by {f'owner {there!r}' if there else 'no owner'} by now"
        case "owner":
            why = f"owner {there!r} is not alive"
        case "position":
            why = f"its journal holds {there} records, and not {wanted}"
        case _:
            why = "its value is another one by now"
    return WriteRefused(f"nothing was written for {key!r}: {why}.", reason=reason, key=key)


def behind(prefix: bytes) -> bytes:
    """The end of what begins with that text, as ZRANGEBYLEX has it: no byte of UTF-8 is so large that it could not be one larger."""
    return b"(" + prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"+"


def milliseconds(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


def _text(part: bytes | int) -> str:
    return part.decode("utf-8", "surrogatepass") if isinstance(part, bytes) else str(part)
