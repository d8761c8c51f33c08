"""`offbook hold`, `release`, `backup`, `export` and `import`: copies of stores.

The package `durability/copies/` enforces a hold.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Self

from ..data.run_result import RunStatus
from ..durability.copies.store_marks import environment_of, held_text, hold, release
from ..durability.copies.transfer import export_store, import_store
from ..durability.store_access import StoreAccess
from ..errors import UsageError
from ..stores.marks import HELD
from ..stores.run_entries import RunQuery
from .stores import chosen_address, existing_store_at, store_at
from .terminal.screen import Screen
from .terminal.shell import quoted

__all__ = ["back_up", "export_to", "hold_store", "import_from", "release_store"]

_UNFINISHED: Final = (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.DRAINED)
_MOST: Final = 1_000


def hold_store(address: str | None) -> int:
    """Block starting, continuing and recovering runs in a store."""

    async def work(access: StoreAccess) -> int:
        screen, named = Screen(), quoted(chosen_address(address))
        if not await hold(access):
            held = await access.get(HELD)
            screen.say(held_text(access, held or b""))
            return 0
        screen.say(
            f"{named} is held: no run is started, continued or recovered in it until `offbook "
            f"release {named}`"
        )
        screen.say(
            "a process that uses it now loses its runs when it next renews its lease: "
            "within 10 s, or a third of its lease_seconds",
            "dim",
        )
        unfinished, waiting = (
            await _count(access, *_UNFINISHED),
            await _count(access, RunStatus.INTERRUPTED),
        )
        screen.say(
            f"runs in it: {unfinished} unfinished, {waiting} waiting for an answer "
            f"(offbook runs --store {named})",
            "dim",
        )
        return 0

    return _with_store(address, work)


def release_store(address: str | None, environment: str | None) -> int:
    """Allow runs to start and continue again, in another environment if set."""

    async def work(access: StoreAccess) -> int:
        named = quoted(chosen_address(address))
        if not await release(access, environment):
            msg = f"{named} is not held, so there is nothing to release."
            raise UsageError(msg)
        found = await environment_of(access)
        Screen().say(
            f"{named} is released"
            + ("" if found is None else f"; it belongs to the environment {found!r}")
        )
        return 0

    return _with_store(address, work)


async def _count(access: StoreAccess, *statuses: RunStatus) -> str:
    found = len(
        await access.run_entries(RunQuery(tuple(status.value for status in statuses), limit=_MOST))
    )
    return f"{found:,}{' or more' if found == _MOST else ''}"


def _with_store(address: str | None, work: Callable[[StoreAccess], Awaitable[int]]) -> int:
    async def main() -> int:
        store = existing_store_at(address)
        try:
            return await work(StoreAccess(store))
        finally:
            await store.aclose()

    return asyncio.run(main())


def back_up(address: str, path: str) -> int:
    """Copy a store that is in a file, while it is in use."""

    async def work(access: StoreAccess) -> int:
        backup = getattr(access.store, "backup", None)
        if backup is None:
            named = chosen_address(address)
            msg = (
                f"{named}: offbook backup copies SQLite files only. Back up a server with its "
                "own tools: the page 'Backup and restore' describes the steps."
            )
            raise UsageError(msg)
        await backup(path)
        return 0

    code = _with_store(address, work)
    Screen().say(
        f"{quoted(path)}: a copy of {quoted(chosen_address(address))}, "
        f"{Path(path).stat().st_size:,} bytes"
    )
    return code


def export_to(address: str, path: str) -> int:
    """Write the runs and sessions of a store to a file, which appears only when it is complete."""
    if Path(path).exists():
        msg = f"{path} already exists and is not overwritten. Pass another file."
        raise UsageError(msg)
    part = Path(f"{path}.part")
    written = (0, 0)

    async def work(access: StoreAccess) -> int:
        nonlocal written
        written = await export_store(access.store, file, progress)
        return 0

    try:
        with (
            os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file,
            _Told("exported") as progress,
        ):
            _with_store(address, work)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    keys, runs = written
    Screen().say(
        f"{quoted(path)}: {runs:,} runs, {keys:,} keys. Do not release "
        f"{quoted(chosen_address(address))}: its runs continue in the other store"
    )
    return 0


def import_from(address: str, path: str) -> int:
    """Write the contents of a file by `offbook export` to another store."""

    async def work() -> tuple[int, int]:
        store = store_at(chosen_address(address))
        try:
            return await import_store(store, file, progress)
        finally:
            await store.aclose()

    with Path(path).open("rb") as file, _Told("imported") as progress:
        keys, runs = asyncio.run(work())
    Screen().say(
        f"{quoted(chosen_address(address))}: {runs:,} runs, {keys:,} keys imported from "
        f"{quoted(path)}"
    )
    return 0


class _Told:
    """Reports the progress on stderr, once a second, if it is a terminal."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._next = time.monotonic() + 1
        self._has_told = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._has_told:
            sys.stderr.write("\n")

    def __call__(self, done: int, of: int) -> None:
        if time.monotonic() >= self._next and sys.stderr.isatty():
            self._next, self._has_told = time.monotonic() + 1, True
            sys.stderr.write(f"\r{self._what}: {done:,}{f' of {of:,}' if of else ''} ")
            sys.stderr.flush()
