"""The rows of runs in a store that has no place for them: a value for each unfinished or stuck run.

Such a store finds its unfinished runs, and lists none of the others. This module never accesses a
store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..codec.packing import pack, unpack
from ..data.run_result import RunStatus
from ..errors import CheckpointError
from ..stores.run_entries import (
    NUMBERS,
    TEXTS,
    DropEntry,
    ExpectEntry,
    RunEntry,
    numbers_of,
    texts_of,
)
from ..stores.writes import Expect, Put, Remove, Write
from .store_keys import open_key, stuck_key, stuck_of

__all__ = ["as_values", "read_value"]

_NAMES: Final = (*TEXTS, *NUMBERS)


def as_values(writes: Sequence[Write]) -> list[Write]:
    """Return the writes for a store that has only values and journals."""
    return [other for write in writes for other in _as_values(write)]


def _as_values(write: Write) -> Iterator[Write]:
    match write:
        case RunEntry(claim=str() as claim) if claim:
            yield Put(claim, _packed(write))
            yield Remove(stuck_of(claim))
        case RunEntry():
            if write.status == RunStatus.STUCK.value:
                yield Put(stuck_key(write.agent, write.key), _packed(write))
            else:
                yield Remove(stuck_key(write.agent, write.key))
            yield Remove(open_key(write.agent, write.key))
        case DropEntry():
            if write.claim:
                yield Remove(write.claim)
                yield Remove(stuck_of(write.claim))
        case ExpectEntry():
            yield Expect(write.claim, None if write.entry is None else _packed(write.entry))
        case _:
            yield write


def _packed(row: RunEntry) -> bytes:
    return pack([row.key, [*texts_of(row), *numbers_of(row)], list(row.labels), row.value])


def read_value(key: str, data: bytes) -> RunEntry:
    """Decode the value under `key`. Raises `CheckpointError`."""
    match unpack(data):
        case [str() as run_id, [*columns], [*labels], bytes() as value] if (
            len(columns) == len(_NAMES)
            and {type(column) for column in columns[: len(TEXTS)]} == {str}
            and {type(column) for column in columns[len(TEXTS) :]} == {int}
            and {type(label) for label in labels} <= {str}
        ):
            return RunEntry(
                key=run_id,
                labels=tuple(labels),
                value=value,
                **dict(zip(_NAMES, columns, strict=True)),
            )
    msg = f"the stored row under {key!r} is damaged. Restore the store from a backup."
    raise CheckpointError(msg)
