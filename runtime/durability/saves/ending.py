"""The writes for the saves of a run that ends: they expire after a while.

The end is written even if another run uses the name of the saves by now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from ...errors import WriteRefused
from ...stores.writes import Ending, Put, Write
from ..store_keys import history_key
from .long_history import Segments
from .save_slot import SaveSlot

__all__ = ["write_end"]


async def write_end(
    write: Callable[[Sequence[Write], Ending], Awaitable[None]],
    writes: Sequence[Write],
    slot: SaveSlot,
    segments: Segments | None,
    run_id: str,
    seconds: float,
) -> None:
    """Write the end of a run, and let its saves expire after `seconds`."""
    saves = await slot.expire(run_id, seconds)
    if segments is not None and segments.stored:
        saves.append(Put(history_key(run_id), b"", seconds))
    try:
        await write([*writes, *saves], "forget")
    except WriteRefused as refused:
        if not saves or refused.key != slot.name:
            raise
        await write(writes, "forget")  # another run uses that name, and its saves, by now
