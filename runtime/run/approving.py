"""Approving and denying calls that need approval.

An answer applies only to the interrupt that the person was shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic

from ..data.checkpoint_id import checkpoint_of
from ..data.interrupt import InterruptContext
from ..data.output_type import OutputT_co
from ..durability.answers import Answers, Verdict
from ..errors import UsageError
from .overriding import Overriding
from .run import Run

if TYPE_CHECKING:
    from ..agent.run_context import RunContext

__all__ = ["Approving"]


class Approving(Overriding, Generic[OutputT_co]):
    """The part of a `Runner` that answers calls that need approval."""

    def approve(
        self,
        interrupt: InterruptContext | str,
        arguments: str | Mapping[str, object] | None = None,
        *,
        answer_id: str | None = None,
    ) -> Run[OutputT_co]:
        """Approve one call and continue its run, with the call's own arguments or with `arguments`.

        `interrupt` is one of `result.interrupts`, of `info.waiting` or of the interrupts in
        `pending()`, or its id. The run's other interrupts keep waiting. If the call no longer
        waits, because it was answered or the run has ended, the run fails with `ResumeError` and
        nothing is called. With an `answer_id` the same answer may be sent again, from any process:
        if the store already has it, the run is followed.
        """
        return self._verdict(
            "approve", interrupt, Verdict(True, arguments, shown=_shown(interrupt)), answer_id
        )

    def deny(
        self, interrupt: InterruptContext | str, reason: str = "", *, answer_id: str | None = None
    ) -> Run[OutputT_co]:
        """Deny one call and continue its run. The model receives the denial and the `reason`.

        `interrupt` and `answer_id` are as for `approve`.
        """
        if not isinstance(reason, str):
            msg = (
                f"deny(reason={reason!r:.80}): the reason must be a string, which the model is "
                "told."
            )
            raise UsageError(msg)
        return self._verdict(
            "deny", interrupt, Verdict(False, reason=reason, shown=_shown(interrupt)), answer_id
        )

    def _verdict(
        self, call: str, interrupt: InterruptContext | str, verdict: Verdict, answer_id: str | None
    ) -> Run[OutputT_co]:
        interrupt_id = interrupt.id if isinstance(interrupt, InterruptContext) else interrupt
        if not isinstance(interrupt_id, str) or not interrupt_id:
            msg = (
                f"{call}({interrupt!r:.80}): interrupt must be an InterruptContext or its id. "
                "Pass one of result.interrupts, or of info.waiting of pending()."
            )
            raise UsageError(msg)
        checkpoint_id = checkpoint_of(interrupt_id)
        if checkpoint_id is None:
            msg = (
                f"{call}({interrupt_id!r:.80}): this id names no run in a store. Pass the id as "
                "it was handed out; the run needs a Runner with a store."
            )
            raise UsageError(msg)
        return self._answered(
            checkpoint_id,
            Answers.to(interrupt_id, verdict, checkpoint_id, answer_id),
            self._factory.context(None, None, None),
        )

    def _answered(self, checkpoint_id: str, answers: Answers, own: RunContext) -> Run[OutputT_co]:
        raise NotImplementedError


def _shown(interrupt: object) -> InterruptContext | None:
    return interrupt if isinstance(interrupt, InterruptContext) else None
