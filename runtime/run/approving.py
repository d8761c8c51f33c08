"""The interrupt that an approval or denial answers.

An answer applies only to the interrupt that the person was shown.
"""

from __future__ import annotations

from ..data.checkpoint_id import checkpoint_of
from ..data.interrupt import InterruptContext
from ..errors import UsageError

__all__ = ["shown_interrupt", "stored_interrupt"]


def stored_interrupt(call: str, interrupt: InterruptContext | str) -> tuple[str, str]:
    """Return the id of the checkpoint that has an interrupt, and the interrupt's id."""
    interrupt_id = interrupt.id if isinstance(interrupt, InterruptContext) else interrupt
    if not isinstance(interrupt_id, str) or not interrupt_id:
        msg = (
            f"{call}: interrupt must be an InterruptContext or its id, got {interrupt!r:.80}. "
            "Pass one of result.interrupts, or of info.waiting of pending()."
        )
        raise UsageError(msg)
    checkpoint_id = checkpoint_of(interrupt_id)
    if checkpoint_id is None:
        msg = (
            f"{call}: interrupt must be the id of an interrupt in a store, got "
            f"{interrupt_id!r:.80}. Pass the id unchanged, and a store to the Runner of the run."
        )
        raise UsageError(msg)
    return checkpoint_id, interrupt_id


def shown_interrupt(interrupt: InterruptContext | str) -> InterruptContext | None:
    """Return the interrupt as the person was shown it, if it was passed whole."""
    return interrupt if isinstance(interrupt, InterruptContext) else None
