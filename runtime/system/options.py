"""The options of a system, as a type for functions that forward them, and their checks.

The defaults are in `ActorSystem`.
"""

from __future__ import annotations

from typing import Final, Literal, TypedDict

from ..clock import Clock
from ..errors import UsageError
from .full_collections import check_full_collections

__all__ = ["SystemOptions", "check_options"]


_SHORTEST_LEASE: Final = 2.0
_LONGEST_LEASE: Final = 3600.0


class SystemOptions(TypedDict, total=False):
    """The options of `ActorSystem`.

    Write `**options: Unpack[SystemOptions]` in a function that forwards them.
    """

    mailbox_capacity: int | None
    worker_threads: int | None
    clock: Clock | None
    slow_handler: float
    stop_timeout: float
    lease_seconds: float
    full_collections: Literal["paced"] | None


def check_options(
    worker_threads: int | None,
    slow_handler: float,
    stop_timeout: float,
    lease_seconds: float,
    full_collections: object,
) -> None:
    """Raise if a system cannot be created with these options."""
    if worker_threads is not None and worker_threads < 1:
        msg = (
            "ActorSystem: worker_threads must be 1 or more, or None for the "
            f"default, got {worker_threads}."
        )
        raise UsageError(msg)
    for option, seconds in (("slow_handler", slow_handler), ("stop_timeout", stop_timeout)):
        if not seconds >= 0:  # also nan
            msg = f"ActorSystem: {option} must be a number of seconds, 0 or more, got {seconds}."
            raise UsageError(msg)
    if (
        isinstance(lease_seconds, bool)
        or not isinstance(lease_seconds, int | float)
        or not _SHORTEST_LEASE <= lease_seconds <= _LONGEST_LEASE
    ):
        msg = (
            f"ActorSystem: lease_seconds must be from 2 to 3600, got {lease_seconds!r:.80}. With "
            "a shorter lease, a slow store would lose the runs."
        )
        raise UsageError(msg)
    check_full_collections(full_collections)
