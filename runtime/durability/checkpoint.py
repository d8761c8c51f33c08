"""A checkpoint, as it lies in a store: what it is called, and what its bytes say.

Owns: the names of the several saves of one checkpoint, and the look at what is read of one, before anything is made of it. It must never reach a store.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ..codec.packing import unpack
from ..errors import CheckpointError, UsageError
from ..stores.arguments import LONGEST_KEY
from .compatibility import FORMAT
from .store_keys import RESERVED, stuck_key

__all__ = ["check_checkpoint_id", "check_run_id", "kept_of", "numbered_id", "read_checkpoint", "split_id"]

_VERSIONED: Final = re.compile(r"(.+)@([0-9]{1,9})", re.DOTALL)
"""What names one of several saves."""

_MOST: Final = 1_000_000_000

LONGEST_KEPT: Final = 1e9
"""Seconds: some thirty years, which every store can count."""

_LONGEST_ID: Final = 2_000
"""Characters of an id that is read: more than any that is written, with what branches add to it."""

_LONGEST_NEW_ID: Final = 1_500
"""Bytes that the id of a run or of a checkpoint may have: keys are derived from it that are longer, and stores bound their keys."""


def check_checkpoint_id(checkpoint_id: str, name: str = "checkpoint_id") -> str:
    """Raise, if it cannot be the id of a new checkpoint."""
    if not isinstance(checkpoint_id, str) or not checkpoint_id:
        msg = f"{name}={checkpoint_id!r}: give a text that is not empty."
        raise UsageError(msg)
    if checkpoint_id.startswith(RESERVED) or _VERSIONED.fullmatch(checkpoint_id):
        msg = f"{name}={checkpoint_id!r}: an id begins not with {RESERVED!r}, and ends not in '@' and a number: that names one of several saves."
        raise UsageError(msg)
    size = len(checkpoint_id.encode("utf-8", "surrogatepass"))
    if size > _LONGEST_NEW_ID:
        msg = f"{name}={checkpoint_id[:40]!r}...: the id has {size:,} bytes, and {_LONGEST_NEW_ID:,} at most can be kept, with what is derived from it."
        raise UsageError(msg)
    return checkpoint_id


def check_run_id(run_id: str, agent_name: str) -> str:
    """Raise, if it cannot be the id of a run of that agent."""
    check_checkpoint_id(run_id, "run_id")
    too_many = len(stuck_key(agent_name, run_id).encode("utf-8", "surrogatepass")) - LONGEST_KEY
    if too_many > 0:
        msg = f"run_id={run_id[:40]!r}...: with the name of its agent, {agent_name[:40]!r}..., it has {too_many:,} bytes more than can be kept: shorten either."
        raise UsageError(msg)
    return run_id


def numbered_id(name: str, number: int) -> str:
    """The name of one of several saves."""
    return f"{name}@{number}"


def split_id(checkpoint_id: str) -> tuple[str, int | None]:
    """The name of a checkpoint, and of which save."""
    match = _VERSIONED.fullmatch(checkpoint_id)
    return (checkpoint_id, None) if match is None else (match.group(1), int(match.group(2)))


def read_checkpoint(name: str, data: bytes) -> dict[str, Any]:
    """What the bytes of a checkpoint say: an image, or a place in a journal, and where they belong. Raises CheckpointError."""
    try:
        found: Any = unpack(data)
    except CheckpointError as error:
        msg = f"checkpoint {name!r}: {error}"
        raise CheckpointError(msg) from error
    if not isinstance(found, dict) or not _is_count(found.get("checkpoint")):
        raise _damaged(name)
    if found["checkpoint"] > FORMAT:
        msg = (
            f"checkpoint {name!r} was written by a newer version of understudy: its format is {found['checkpoint']}, and this one reads up to {FORMAT}. Update."
        )
        raise CheckpointError(msg)
    where = ("run",) if "image" in found else ("run", "journal")
    counts = ("number",) if "image" in found else ("number", "records")
    if not all(_is_id(found.get(key)) for key in where) or not all(_is_count(found.get(key)) for key in counts):
        raise _damaged(name)
    checkpoint: dict[str, Any] = found
    return checkpoint


def kept_of(checkpoint: dict[str, Any]) -> tuple[float | None, str | None]:
    """For how long it is kept how the run has ended, and what tells its input from another one. What is damaged says nothing."""
    match checkpoint.get("kept"):
        case [int() | float() | None as keep, str() | None as asked] if keep is None or 0 <= keep <= LONGEST_KEPT:
            return keep, asked
    return 0.0, None


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < _MOST


def _is_id(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= _LONGEST_ID


def _damaged(name: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {name!r} is damaged, or something else: it does not hold what a checkpoint does.")
