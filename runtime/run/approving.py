"""The interrupt that an approval or denial answers.

An answer applies only to the interrupt that the person was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from ..data.checkpoint_id import checkpoint_of
from ..data.interrupt import InterruptContext
from ..errors import UsageError

__all__ = ["check_arguments", "shown_interrupt", "stored_interrupt"]


def check_arguments(arguments: str | Mapping[str, object] | None) -> None:
    """Refuse arguments of an approved call that no call can have."""
    given: object = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments)
        except ValueError:
            given = ...
    if given is not None and not isinstance(given, Mapping):
        msg = (
            "approve: arguments must be a mapping or a JSON object, which replaces the arguments "
            f"of the call, got {arguments!r:.80}. To refuse the call: deny(interrupt)."
        )
        raise UsageError(msg)


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
            f"{interrupt_id!r:.80}. Pass the id unchanged. If its run was not stored, start it "
            "again with a store: Runner(agent, store=SQLiteStore('runs.db'))."
        )
        raise UsageError(msg)
    return checkpoint_id, interrupt_id


def shown_interrupt(interrupt: InterruptContext | str) -> InterruptContext | None:
    """Return the interrupt as the person was shown it, if it was passed whole."""
    return interrupt if isinstance(interrupt, InterruptContext) else None
