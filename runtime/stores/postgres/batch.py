"""A batch of operations, as the lists that the function `perform` takes, and its answers.

Every operation that writes concerns an owner, takes a claim, or commits writes with or without a
claim; simple writes become commits without one. `functions.py` has the function itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import WriteRefused
from ..store_thread import Operation
from ..threaded_store import EncodedWrite

__all__ = ["Batch", "Blobs", "Numbers", "Words"]


class Numbers(list[int]):
    """A list of `bigint`."""


class Blobs(list["bytes | None"]):
    """A list of `bytea`."""


class Words(list[str]):
    """A list of `text`."""


_NONE = -1  # a missing number


class Batch:
    """The arguments of one batch, and the assignment of its answers.

    Operations on owners come first, and then all others by keys, because rows are locked in this
    order.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = sorted(
            operations,
            key=lambda operation: (operation.name not in {"keep_alive", "revoke"}, operation.key),
        )
        self.kinds, self.endings = Words(), Words()
        self.keys, self.owners = Blobs(), Blobs()
        self.epochs, self.spans, self.lasts = Numbers(), Numbers(), Numbers()
        self.w_kinds, self.w_keys, self.w_values = Words(), Blobs(), Blobs()
        self.w_afters, self.w_spans, self.w_lasts = Numbers(), Numbers(), Numbers()
        self.w_records, self.w_numbers = Blobs(), Numbers()
        for operation in self._operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        key, arguments = operation.key, operation.arguments
        match operation.name:
            case "commit":
                mine, writes, ending = arguments
                owner, epoch = (None, _NONE) if mine is None else mine
                self._operation("commit", key, owner, epoch=epoch, ending=ending, writes=writes)
            case "claim":
                owner, writes = arguments
                self._operation("claim", key, owner, writes=writes)
            case "keep_alive":
                seconds, first = arguments
                self._operation(
                    "first" if first else "keep_alive", None, key, span=_microseconds(seconds)
                )
            case "revoke":
                self._operation("revoke", None, key)
            case _:
                self._operation("commit", None, None, writes=_writes_of(operation))

    def _operation(
        self,
        kind: str,
        key: bytes | None,
        owner: bytes | None,
        *,
        epoch: int = _NONE,
        span: int = _NONE,
        ending: str = "keep",
        writes: Sequence[EncodedWrite] = (),
    ) -> None:
        self.kinds.append(kind)
        self.keys.append(key)
        self.owners.append(owner)
        self.epochs.append(epoch)
        self.spans.append(span)
        self.endings.append(ending)
        for write in writes:
            self.w_kinds.append(write.kind)
            self.w_keys.append(write.key)
            self.w_values.append(write.value)
            if write.numbers:
                self.w_afters.append(len(self.w_numbers))
                self.w_numbers.extend(write.numbers)
            else:
                self.w_afters.append(write.after)
            self.w_spans.append(_NONE if write.seconds is None else _microseconds(write.seconds))
            self.w_records.extend(write.records)
            self.w_lasts.append(len(self.w_records))
        self.lasts.append(len(self.w_kinds))

    def arguments(self) -> tuple[object, ...]:
        of_operations = (
            self.kinds,
            self.keys,
            self.owners,
            self.epochs,
            self.spans,
            self.endings,
            self.lasts,
        )
        return (
            *of_operations,
            self.w_kinds,
            self.w_keys,
            self.w_values,
            self.w_afters,
            self.w_spans,
            self.w_lasts,
            self.w_records,
            self.w_numbers,
        )

    def written(self) -> Blobs:
        """Return the written keys, for watchers."""
        return Blobs(
            {
                key
                for kind, key in zip(self.w_kinds, self.w_keys, strict=True)
                if kind not in {"expect", "expect_entry"}
            }
        )

    def answer(self, row: Sequence[Any]) -> None:
        """Set the result of each operation, or the reason why it was refused."""
        for operation, word, one, two, name in zip(self._operations, *row, strict=True):
            if word in {"done", "none"}:
                operation.result = _result(operation.name, word, one, two)
            elif operation.name == "create":
                operation.result = False
            else:
                operation.error = self._refusal(operation, word, one, two, name)

    def _refusal(
        self, operation: Operation, word: str, place: int, held: int, holder: bytes | None
    ) -> WriteRefused:
        """Build the same error as the other stores. Positions are counted from 1."""
        key: bytes = (
            (self.w_keys[place - 1] or b"") if word in {"position", "value"} else operation.key
        )
        match word:
            case "owner":
                owner = (
                    operation.arguments[0]
                    if operation.name == "claim"
                    else operation.arguments[0][0]
                )
                why = f"owner {_text(owner)!r} is not alive"
            case "epoch":
                why = (
                    "its claim now belongs to "
                    f"{'no owner' if holder is None else f'owner {_text(holder)!r}'}"
                )
            case "position":
                why = f"its journal has {held} records, expected {self.w_afters[place - 1]}"
            case _:
                why = "its value has changed in the meantime"
        return WriteRefused(
            f"nothing was written for {_text(key)!r}: {why}.", reason=word, key=_text(key)
        )


def _writes_of(operation: Operation) -> tuple[EncodedWrite, ...]:
    key = operation.key
    match operation.name:
        case "set":
            return (EncodedWrite("put", key, operation.arguments[0]),)
        case "create":
            return EncodedWrite("expect", key), EncodedWrite("put", key, operation.arguments[0])
        case "append":
            return (
                EncodedWrite("append", key, records=tuple(operation.arguments[0]), after=_NONE),
            )
        case _:
            return (EncodedWrite("remove", key),)


def _result(name: str, word: str, one: int, two: int) -> object:
    match name:
        case "claim":
            return (one, two) if word == "done" else None
        case "keep_alive" | "create":
            return word == "done"
        case "append":
            return one
        case _:
            return None


def _microseconds(seconds: float) -> int:
    return max(1, round(seconds * 1e6))


def _text(encoded: bytes) -> str:
    return encoded.decode("utf-8", "surrogatepass")
