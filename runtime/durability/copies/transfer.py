"""Export and import of runs and sessions, to move them between stores of any kind.

The file starts with a header, has one value for each key and each row of a run, and
ends with their counts, so a truncated file is detected before anything is written. Owners, claims
and marks belong to the store and are not exported. Neither are expiry times: imported data lasts
until it is forgotten or pruned. An import never overwrites existing data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from ...data.run_result import RunStatus
from ...errors import StoreError, UsageError, WriteRefused
from ...stores.marks import HELD, MARKS
from ...stores.run_entries import NUMBERS, TEXTS, TIMER, RunEntry, RunQuery, numbers_of, texts_of
from ...stores.writes import Append, Expect, Put, Write
from ..store_keys import PREEMPT, RESERVED

if TYPE_CHECKING:
    from ...stores import JournalStore, ListsRuns

__all__ = ["Progress", "export_store", "import_store"]

Progress = Callable[[int, int], object]
"""Receives the number done and the total; the total is 0 if it is unknown."""

_NAME: Final = "offbook-export"
_FORMAT: Final = 1
_PAGE: Final = 1_000
_MOST_BYTES: Final = 4 << 20
"""The size limit of the records in one write."""
_MOST_NAMED: Final = 3
_OPEN: Final = (f"{RESERVED}open:", f"{RESERVED}stuck:")
"""Keys that let a process find an unfinished run."""
_OWN: Final = (PREEMPT, f"{RESERVED}stop:", f"{RESERVED}cluster:", f"{RESERVED}doctor:")
"""Keys by which processes send each other requests through a store."""


async def export_store(store: Any, file: IO[bytes], progress: Progress) -> tuple[int, int]:
    """Write all runs and sessions to a file. Returns the numbers of keys and of runs."""
    if await store.get(HELD) is None:
        msg = (
            f"export: {store!r} must be held during an export, because its runs could change "
            "while they are read. Hold it first: offbook hold STORE."
        )
        raise UsageError(msg)
    pack = msgpack.Packer(unicode_errors="surrogatepass").pack
    file.write(pack([_NAME, _FORMAT]))
    # The keys that make a run findable come last: an interrupted import leaves no run without its
    # steps.
    keys = sorted(
        (key for key in await store.keys("") if _is_moved(key)),
        key=lambda key: (key.startswith(_OPEN), key),
    )
    written = runs = 0
    for done, key in enumerate(keys):
        value, records = await store.get(key), await store.read(key)
        if value is not None or records:
            file.write(pack(["key", key, value, records]))
            written += 1
        progress(done + 1, len(keys))
    async for entry in _entries(store):
        file.write(
            pack(
                [
                    "run",
                    entry.key,
                    [*texts_of(entry), *numbers_of(entry)],
                    list(entry.labels),
                    entry.value,
                ]
            )
        )
        runs += 1
        progress(runs, 0)
    file.write(pack(["end", written, runs]))
    return written, runs


async def import_store(store: Any, file: IO[bytes], progress: Progress) -> tuple[int, int]:
    """Write the contents of a file to a store. Returns the numbers of keys and of runs.

    Nothing is written if one of the keys holds different data. Data that is already there and equal
    is left alone, so an interrupted import can be repeated.
    """
    keys, runs = _check(file)
    conflicts: list[str] = []
    for done, one in enumerate(_read(file)):
        if one[0] == "key" and not await _fits(store, *one[1:]):
            conflicts.append(one[1])
        elif (
            one[0] == "run"
            and (found := await store.run_entry(one[1])) is not None
            and found != _entry(one)
        ):
            conflicts.append(f"run {one[1]}")
        progress(done + 1, keys + runs)
    if conflicts:
        named = ", ".join(repr(key) for key in conflicts[:_MOST_NAMED]) + (
            ", …" if len(conflicts) > _MOST_NAMED else ""
        )
        msg = (
            f"import: nothing was written, because {store!r} already has different data under "
            f"{len(conflicts):,} of the keys: {named}. Import into an empty store, or forget "
            "these runs and sessions there first."
        )
        raise UsageError(msg)
    # The rows come last: a run that a process finds, to continue it, is there as a whole.
    for kind in ("key", "run"):
        for done, one in enumerate(one for one in _read(file) if one[0] == kind):
            if kind == "run":
                await store.commit(None, [_entry(one)])
            else:
                await _write(store, *one[1:])
            progress(done + 1, runs if kind == "run" else keys)
    return keys, runs


def _is_moved(key: str) -> bool:
    return key not in MARKS and not key.startswith(_OWN)


async def _entries(store: ListsRuns) -> AsyncIterator[RunEntry]:
    after: str | None = None
    while True:
        page = await store.run_entries(
            RunQuery((*(one.value for one in RunStatus), TIMER), limit=_PAGE, after=after)
        )
        for entry in page:
            yield entry
        if len(page) < _PAGE:
            return
        after = page[-1].key


def _entry(one: Sequence[Any]) -> RunEntry:
    _, key, columns, labels, value = one
    named = dict(zip((*TEXTS, *NUMBERS), columns, strict=True))
    return RunEntry(key=key, labels=tuple(labels), value=value, **named)


async def _fits(
    store: JournalStore, key: str, value: bytes | None, records: Sequence[bytes]
) -> bool:
    """Return whether the key is free, or holds the same data or a prefix of the journal."""
    found, held = await store.get(key), await store.read(key)
    return (found is None and not held) or (found == value and held == list(records[: len(held)]))


async def _write(
    store: JournalStore, key: str, value: bytes | None, records: Sequence[bytes]
) -> None:
    """Write one key, or the missing part of it. The value comes first, with the first records."""
    start = len(await store.read(key))
    is_new = not start and await store.get(key) is None
    writes: list[Write] = [Expect(key)] if is_new else []
    if is_new and value is not None:
        writes.append(Put(key, value))
    while writes or start < len(records):
        part: list[bytes] = []
        size = 0
        while start + len(part) < len(records) and size < _MOST_BYTES:
            part.append(records[start + len(part)])
            size += len(part[-1])
        try:
            await store.commit(
                None, [*writes, *([Append(key, tuple(part), start)] if part else [])]
            )
        except WriteRefused as refused:
            msg = (
                f"import: another process writes to {store!r} at this moment ({key!r}). Hold it "
                "first, and import again. Keys that are already imported stay."
            )
            raise StoreError(msg) from refused
        writes, start = [], start + len(part)


def _check(file: IO[bytes]) -> tuple[int, int]:
    """Check that the file is complete. Returns the numbers of keys and of runs in it."""
    counts = {"key": 0, "run": 0}
    last: Sequence[Any] = ()
    for last in _read(file, whole=True):
        if last[0] in counts:
            counts[last[0]] += 1
    if list(last) != ["end", counts["key"], counts["run"]]:
        msg = (
            "import: the file ends too early: it was cut off when it was written or copied. "
            "Export again. Nothing was written."
        )
        raise UsageError(msg)
    return counts["key"], counts["run"]


def _read(file: IO[bytes], *, whole: bool = False) -> Iterator[Sequence[Any]]:
    """Yield the entries of the file; with `whole`, its end as well."""
    file.seek(0)
    parts = iter(msgpack.Unpacker(file, unicode_errors="surrogatepass", max_buffer_size=0))
    try:
        header = next(parts, None)
        if not isinstance(header, list) or len(header) != 2 or header[0] != _NAME:  # noqa: PLR2004 -- a name and a format
            msg = "import: this file was not written by `offbook export`. Pass a file that was."
            raise UsageError(msg)
        if header[1] != _FORMAT:
            msg = (
                f"import: the file has format {header[1]!r}, and this version of offbook reads "
                f"{_FORMAT}. Update offbook."
            )
            raise UsageError(msg)
        for one in parts:
            if (
                not isinstance(one, list)
                or not one
                or one[0] not in _SIZES
                or len(one) != _SIZES[one[0]]
            ):
                raise ValueError("it contains an unknown record")  # noqa: TRY301 -- wrapped below
            if whole or one[0] != "end":
                yield one
    except (ValueError, msgpack.UnpackException) as error:
        msg = f"import: the file is damaged ({type(error).__name__}: {error}). Export again."
        raise UsageError(msg) from error


_SIZES: Final = {"key": 4, "run": 5, "end": 3}
