"""Checkpoint ids, and the contents of a stored checkpoint.

This module names the saves of a checkpoint and validates its bytes. It never accesses a store.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..codec.packing import unpack
from ..errors import CheckpointError, UsageError
from ..stores.arguments import LONGEST_KEY
from .compatibility import FORMAT
from .store_keys import RESERVED, stuck_key

__all__ = [
    "check_checkpoint_id",
    "check_run_id",
    "kept_of",
    "numbered_id",
    "read_checkpoint",
    "split_id",
]

_VERSIONED: Final = re.compile(r"(.+)@([0-9]{1,9})", re.DOTALL)
"""The id of one particular save."""

_MOST: Final = 1_000_000_000

LONGEST_KEPT: Final = 1e9
"""Seconds: some thirty years, which every store can represent."""

_LONGEST_ID: Final = 2_000
"""The longest id that is read, in characters: longer than any that is written, with suffixes."""

_LONGEST_NEW_ID: Final = 1_500
"""The longest id of a new run or checkpoint, in bytes.

The keys derived from it are longer, and stores limit the length of keys.
"""


def check_checkpoint_id(checkpoint_id: str, name: str = "checkpoint_id") -> str:
    """Raise UsageError if it cannot be the id of a new checkpoint."""
    if not isinstance(checkpoint_id, str) or not checkpoint_id:
        msg = f"{name} must be a string that is not empty, got {checkpoint_id!r}."
        raise UsageError(msg)
    if checkpoint_id.startswith(RESERVED) or _VERSIONED.fullmatch(checkpoint_id):
        msg = (
            f"{name} must not start with {RESERVED!r}, nor end in '@' and a number (which names "
            f"a saved version), got {checkpoint_id!r}."
        )
        raise UsageError(msg)
    size = len(checkpoint_id.encode("utf-8", "surrogatepass"))
    if size > _LONGEST_NEW_ID:
        msg = (
            f"{name} must have at most {_LONGEST_NEW_ID:,} bytes, got {size:,} bytes: "
            f"{checkpoint_id[:40]!r}... Pass a hash of it."
        )
        raise UsageError(msg)
    return checkpoint_id


def check_run_id(run_id: str, agent_name: str) -> str:
    """Raise UsageError if it cannot be the id of a run of that agent."""
    check_checkpoint_id(run_id, "run_id")
    too_many = len(stuck_key(agent_name, run_id).encode("utf-8", "surrogatepass")) - LONGEST_KEY
    if too_many > 0:
        msg = (
            f"run_id={run_id[:40]!r}...: with the name of its agent, {agent_name[:40]!r}..., "
            f"it is {too_many:,} bytes longer "
            "than the limit. Shorten one of them."
        )
        raise UsageError(msg)
    return run_id


def numbered_id(name: str, number: int) -> str:
    """Return the name of one of several saves."""
    return f"{name}@{number}"


def split_id(checkpoint_id: str) -> tuple[str, int | None]:
    """Split an id into the checkpoint's name and the number of the save, if it has one."""
    match = _VERSIONED.fullmatch(checkpoint_id)
    return (checkpoint_id, None) if match is None else (match.group(1), int(match.group(2)))


def read_checkpoint(name: str, data: bytes) -> dict[str, Any]:
    """Decode the bytes of a checkpoint: an image or a journal position, and the run it belongs to.

    Raises CheckpointError.
    """
    try:
        found: Any = unpack(data)
    except CheckpointError as error:
        msg = f"checkpoint {name!r}: {error}"
        raise CheckpointError(msg) from error
    if not isinstance(found, dict) or not _is_count(found.get("checkpoint")):
        raise _damaged(name)
    if found["checkpoint"] > FORMAT:
        msg = (
            f"checkpoint {name!r} was written by a newer version of offbook: its format is "
            f"{found['checkpoint']}, "
            f"and this version reads up to {FORMAT}. Update offbook."
        )
        raise CheckpointError(msg)
    where = ("run",) if "image" in found else ("run", "journal")
    counts = ("number",) if "image" in found else ("number", "records")
    if not all(_is_id(found.get(key)) for key in where) or not all(
        _is_count(found.get(key)) for key in counts
    ):
        raise _damaged(name)
    checkpoint: dict[str, Any] = found
    return checkpoint


def kept_of(checkpoint: dict[str, Any]) -> tuple[float | None, str | None]:
    """Return the retention of the run's result, in seconds, and the fingerprint of its input.

    Damaged data counts as absent.
    """
    match checkpoint.get("kept"):
        case [int() | float() | None as keep, str() | None as asked] if (
            keep is None or 0 <= keep <= LONGEST_KEPT
        ):
            return keep, asked
    return 0.0, None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < _MOST


def _is_id(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= _LONGEST_ID


def _damaged(name: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint {name!r} is damaged, or is not a checkpoint: it lacks the fields of one. "
        "Check the id, or restore the store from a backup."
    )
