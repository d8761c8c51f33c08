"""Requests of other processes: that a turn of a session ends at once, or that a run ends.

A request to end a run is a value under a key that starts with the owner's name. An owner checks
only its own keys, once a second while it has runs, so an idle owner causes no load. A request that
is not taken expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from ..agent.run_messages import CancelMode, CancelRun
from ..codec.packing import pack, unpack
from ..errors import CheckpointError
from ..log import loggers
from ..stores.writes import Put
from .store_access import StoreAccess
from .store_keys import stop_key, stop_prefix

if TYPE_CHECKING:
    from .store_owner import StoreOwner

__all__ = ["ask_to_stop", "look_for_others"]

_SECONDS: Final = 60.0
"""Seconds after which a request expires: its owner has lost the run by then."""


async def ask_to_stop(
    access: StoreAccess, holder: str, key: str, mode: CancelMode, timeout: float | None
) -> None:
    """Ask an owner to end the run with this key."""
    from hashlib import blake2b  # noqa: PLC0415 -- a part of the standard library that most programs do without

    name = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    await access.commit(
        None,
        [
            Put(
                stop_key(holder, name),
                pack({"run": key, "mode": mode, "timeout": timeout}),
                _SECONDS,
            )
        ],
    )


async def look_for_others(owner: StoreOwner) -> None:
    """Look for requests that concern an owner's leases, and deliver them."""
    owner.is_looking = True
    try:
        if any(lease.on_wanted is not None for lease in owner.by_key.values()):
            await _look_for_turns(owner)
        if any(lease.on_stop is not None for lease in owner.by_key.values()):
            await _look_for_stops(owner)
    except Exception as error:  # noqa: BLE001 -- errors of one store must not affect the others
        loggers.durability.warning(
            "The requests of other processes to this one's runs could not be read: %s", error
        )
    finally:
        owner.is_looking = False


async def _look_for_turns(owner: StoreOwner) -> None:
    for key, mark in await owner.access.wanted_sessions():
        lease = owner.by_key.get(key)
        if lease is not None and await owner.access.get(mark) == owner.name.encode():
            # A process that still waits writes it again; the mark of a lost process must not end a
            # later turn.
            await owner.access.delete(mark)
            lease.preempt()


async def _look_for_stops(owner: StoreOwner) -> None:
    for key in await owner.access.keys(stop_prefix(owner.name)):
        data = await owner.access.get(key)
        await owner.access.delete(key)
        if data is None:
            continue
        try:
            said: Any = unpack(data)
            lease, request = owner.by_key.get(said["run"]), _request(said["mode"], said["timeout"])
        except (CheckpointError, KeyError, TypeError, ValueError) as error:
            loggers.durability.warning(
                "A stored request to end a run is damaged, and is ignored: %s: %s",
                type(error).__name__,
                error,
            )
            continue
        if lease is not None and lease.on_stop is not None:
            lease.on_stop(request)


def _request(mode: CancelMode, timeout: float | None) -> CancelRun:
    if mode not in get_args(CancelMode) or not (timeout is None or timeout >= 0):
        msg = (
            f"mode must be one of {get_args(CancelMode)}, and timeout None or 0 or more, "
            f"got mode {mode!r} and timeout {timeout!r}"
        )
        raise ValueError(msg)
    return CancelRun("cancel() was called by who looks on", mode, timeout)
