"""Marks that stop runs from starting in a store that is held or belongs to another environment.

A copy of a production store, restored or made for tests, contains runs that production has
continued since. Any process that opens the copy would continue them a second time. So a copy is
held before any process uses it, and a store remembers the environment (`OFFBOOK_ENV`) in which it
was first used. The marks are not read at each write: an owner reads them when it enters the store
and each time that it renews its lease.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack, unpack
from ...data.run_result import RunStatus
from ...environment import environment
from ...errors import CheckpointError, WriteRefused
from ...stores.marks import ENVIRONMENT, HELD, MARKS, mark
from ...stores.run_entries import RunQuery
from ...stores.writes import Expect, Remove, Write

if TYPE_CHECKING:
    from ..store_access import StoreAccess

__all__ = [
    "ENVIRONMENT_VARIABLE",
    "current_environment",
    "environment_of",
    "held_text",
    "hold",
    "refusal",
    "release",
]

ENVIRONMENT_VARIABLE: Final = "OFFBOOK_ENV"
_DAY: Final = 86_400.0
_TRIES: Final = 10
"""Attempts to write a mark that another process writes at the same time."""


def current_environment() -> str:
    """Return the environment of this process: `OFFBOOK_ENV`, or an empty string."""
    return environment().get(ENVIRONMENT_VARIABLE, "").strip()


async def refusal(access: StoreAccess, *, takes: bool = True) -> str | None:
    """Return the reason why no run may start or continue in this store; None if runs may.

    An unused store is assigned to this environment, unless `takes` is False.
    """
    for _ in range(_TRIES):
        held, said = await access.get_both(HELD, ENVIRONMENT)
        if held is not None:
            return held_text(access, held)
        own = current_environment()
        if said is None and not own:
            return None
        if said is None and await _was_used(access):
            return _other_text(access, "", own)
        if said is not None and (found := _read(said).get("environment")) != own:
            return _other_text(access, str(found), own)
        if not takes:
            return None
        if said is not None and time() - float(_read(said).get("seen", 0)) < _DAY:
            return None
        if await _write(access, ENVIRONMENT, said, {"environment": own, "seen": time()}):
            return None
    return (
        f"{access.store!r}: other processes kept changing the hold of this store. Wait until "
        "they have finished, and try again."
    )


async def environment_of(access: StoreAccess) -> str | None:
    """Return the environment that the store belongs to; None if it has none."""
    said = await access.get(ENVIRONMENT)
    return None if said is None else str(_read(said).get("environment", ""))


async def hold(access: StoreAccess) -> bool:
    """Block starting, continuing and recovering runs until the release. False: already held."""
    return await _write(access, HELD, None, {"since": time(), "by": _who()})


async def release(access: StoreAccess, environment_name: str | None = None) -> bool:
    """Allow runs to start and continue again; with a name, in that environment from now on.

    Returns False, and changes nothing, if the store was not held.
    """
    for _ in range(_TRIES):
        held, said = await access.get_both(HELD, ENVIRONMENT)
        if held is None and environment_name is None:
            return False
        writes: list[Write] = [] if held is None else [Expect(HELD, held), Remove(HELD)]
        if environment_name:
            writes += mark(
                ENVIRONMENT, said, pack({"environment": environment_name, "seen": time()})
            )
        elif environment_name is not None and said is not None:
            writes += [Expect(ENVIRONMENT, said), Remove(ENVIRONMENT)]
        try:
            await access.commit(None, writes)
        except WriteRefused:
            continue
        return True
    return False


def held_text(access: StoreAccess, data: bytes) -> str:
    """Return the message for a held store: since when, by whom, and the next step."""
    said = _read(data)
    since = datetime.fromtimestamp(float(said.get("since", 0)), UTC)
    return (
        f"{access.store!r} is held since {since:%Y-%m-%d %H:%M:%S} UTC by "
        f"{said.get('by', 'somebody')}: no run starts, continues or is recovered in it. Inspect "
        "its runs (offbook runs), forget those that must not continue (offbook forget ID), then "
        "release it: offbook release STORE."
    )


def _other_text(access: StoreAccess, found: str, own: str) -> str:
    return (
        f"{access.store!r} belongs to the environment {found!r}, and this process runs in {own!r} "
        f"({ENVIRONMENT_VARIABLE}): it would continue the runs of that one. Set "
        f"{ENVIRONMENT_VARIABLE}={found!r}, or give this process a store of its own. If the "
        "store is a "
        "copy that is to be used here: offbook hold STORE, forget the runs that must not "
        "continue, then "
        f"offbook release STORE --env {own!r}."
    )


async def _was_used(access: StoreAccess) -> bool:
    if access.lists_runs and await access.run_entries(
        RunQuery(tuple(status.value for status in RunStatus), limit=1)
    ):
        return True
    return any(key not in MARKS for key in await access.keys(""))


async def _write(access: StoreAccess, key: str, before: bytes | None, said: dict[str, Any]) -> bool:
    """Write a mark, unless another process was faster."""
    try:
        await access.commit(None, mark(key, before, pack(said)))
    except WriteRefused:
        return False
    return True


def _read(data: bytes) -> dict[str, Any]:
    """Decode a mark. A damaged one still counts as present, with no content."""
    try:
        said = unpack(data)
    except CheckpointError:
        return {}
    return said if isinstance(said, dict) else {}


def _who() -> str:
    import getpass  # noqa: PLC0415 -- parts of the standard library that most programs do without
    import socket  # noqa: PLC0415

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may have a user without a name
        user = str(os.getuid()) if hasattr(os, "getuid") else "a user"
    return f"{user} on {socket.gethostname()}"
