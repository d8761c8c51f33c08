"""Answers to an interrupted run, and their distribution to agents and tool calls.

Agents and calls without an answer stay pending. An answer that does not fit the pending interrupts
raises ResumeError before anything runs. A call that needs approval is approved only by an answer
that names the interrupt, or the save, that was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self

from ..codec.kept_values import same_bytes
from ..codec.packing import pack
from ..data.checkpoint_id import CheckpointId
from ..data.interrupt import Answer, InterruptContext, Pending
from ..errors import CheckpointError, ResumeError, UsageError
from .checkpoint import split_id

if TYPE_CHECKING:
    from ..agent.invocation import Invocation

__all__ = ["Answers", "Verdict"]

_LONGEST_ID: Final = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no to one call that needs approval."""

    approves: bool
    arguments: str | Mapping[str, object] | None = None
    reason: str = ""
    shown: InterruptContext | None = None
    """The interrupt as it was shown to the person, if known."""

    def data(self, info: Any) -> object:
        """Return the answer in the form that the call defines for a yes or a no."""
        return info.approve(self.arguments) if self.approves else info.deny(self.reason)

    def problem_with(self, context: InterruptContext) -> str | None:
        """Return the reason why this does not answer that interrupt; None if it does."""
        if not callable(getattr(context.info, "approve", None)) or not callable(
            getattr(context.info, "deny", None)
        ):
            return (
                f"{context.info!r:.200} is a question and not a call that needs approval. Answer "
                f"it with resume(checkpoint_id, {{{context.id!r}: answer}})."
            )
        if self.shown is not None and not same_bytes(self.shown.info, context.info):
            return (
                f"{self.shown.info!r:.200} was shown, and {context.info!r:.200} waits. Nothing "
                "was called. Show what waits now, and answer that."
            )
        return None


class Answers:
    """The answers of one resume."""

    __slots__ = ("_data", "_names_save", "_targets", "id", "save")

    def __init__(
        self,
        targets: Mapping[str, Any] | None,
        data: Any,
        checkpoint_id: str,
        answer_id: str | None = None,
    ) -> None:
        if answer_id is not None and (
            not isinstance(answer_id, str)
            or not 0 < len(answer_id) <= _LONGEST_ID
            or "@" in answer_id
        ):
            msg = (
                f"answer_id must be a string of 1 to {_LONGEST_ID} characters without '@', got "
                f"{answer_id!r:.200}. Pass one id for each answer."
            )
            raise UsageError(msg)
        if targets is not None and (
            not isinstance(targets, Mapping) or not all(isinstance(key, str) for key in targets)
        ):
            msg = (
                f"resume(): targets must be a mapping of interrupt ids to data, got {targets!r}. "
                "Pass one such as {result.interrupts[0].id: True}."
            )
            raise UsageError(msg)
        if targets is not None and data is not None:
            raise UsageError(
                "resume: pass either data=, which answers every interrupt, or targets=, "
                "which answers the named ones."
            )
        for name, value in (
            *(() if targets is None else targets.items()),
            *((("data", data),) if data is not None else ()),
        ):
            if value is None or value is True or value is False:
                continue  # most answers
            try:
                pack(value.arguments if isinstance(value, Verdict) else value)
            except CheckpointError as error:
                msg = f"resume(): the answer {name!r} must be a value that can be stored: {error}"
                raise CheckpointError(msg) from error
        self._targets = None if targets is None else dict(targets)
        self._data = data
        self.id = answer_id
        """The id that makes sending the same answer twice idempotent."""
        self.save = (
            checkpoint_id if targets is None and isinstance(checkpoint_id, CheckpointId) else None
        )
        """The only save that this answers.

        Targets do not need it: an interrupt's id belongs to one save.
        """
        self._names_save = self.save is not None or split_id(checkpoint_id)[1] is not None

    @classmethod
    def to(
        cls, interrupt_id: str, verdict: Verdict, checkpoint_id: str, answer_id: str | None = None
    ) -> Self:
        """Return a yes or no to that interrupt; all others stay pending."""
        return cls({interrupt_id: verdict}, None, checkpoint_id, answer_id)

    def give(self, invocations: Iterable[Invocation], checkpoint_id: str) -> None:
        """Give each pending agent and tool call its answer.

        Raises ResumeError before any answer is given.
        """
        waiting = [
            (invocation, pending)
            for invocation in invocations
            for pending in (invocation.pending or {}).values()
        ]
        self._check([pending for _, pending in waiting], checkpoint_id)
        answers: dict[Invocation, dict[Any, Answer]] = {}
        for invocation, pending in waiting:
            answers.setdefault(invocation, dict(invocation.answers or {}))[pending.call_id] = (
                self._answer(pending)
            )
        for invocation, its_answers in answers.items():
            invocation.answers = its_answers
            above: Invocation | None = invocation
            while above is not None:
                above.resumed = True
                above = above.agent_call.parent
            invocation.pending = None

    def _answer(self, pending: Pending) -> Answer:
        if self._targets is None:
            return Answer(pending, is_target=True, data=self._data)
        data = self._targets.get(pending.context.id)
        if isinstance(data, Verdict):
            data = data.data(pending.context.info)
        return Answer(pending, is_target=pending.context.id in self._targets, data=data)

    def _check(self, waiting: list[Pending], checkpoint_id: str) -> None:
        known = {pending.context.id: pending for pending in waiting}
        for name in self._targets or ():
            if name in known:
                continue
            if any(name in _enclosing(pending.context) for pending in waiting):
                what = "contains an interrupt, but is not one itself"
            else:
                what = (
                    "is not pending: it was answered, never asked, or the run has paused again, "
                    "which gives each interrupt a new id"
                )
            msg = (
                f"checkpoint {checkpoint_id!r}: {name!r} {what}. It waits for "
                f"{', '.join(map(repr, known)) or 'nothing'}."
            )
            raise ResumeError(msg)
        for pending in waiting:
            problem = self._problem_with(pending)
            if problem is not None:
                msg = f"checkpoint {checkpoint_id!r}, interrupt {pending.context.id!r}: {problem}"
                raise ResumeError(msg)

    def _problem_with(self, pending: Pending) -> str | None:
        context = pending.context
        verdict = None if self._targets is None else self._targets.get(context.id)
        if isinstance(verdict, Verdict) and (problem := verdict.problem_with(context)) is not None:
            return problem
        check = getattr(context.info, "check_answer", None)
        answer = self._answer(pending)
        if answer.is_target and context.deadline is not None:
            late = context.deadline <= datetime.now(UTC)
            if late and not same_bytes(answer.data, context.default):
                return (
                    f"its deadline was {context.deadline.isoformat()}, so it is answered with its "
                    "default, in a process that is attending(). Nothing was called."
                )
        if not answer.is_target or not callable(check):
            return None
        problem = check(answer.data)
        if problem is None and self._targets is None and not self._names_save:
            return (
                f"data= cannot approve {context.info!r:.200}, because it does not name the "
                "call that was shown. Use approve(interrupt) or deny(interrupt)."
            )
        return problem if problem is None or isinstance(problem, str) else str(problem)


def _enclosing(context: InterruptContext) -> set[str]:
    ids: set[str] = set()
    above = context.parent
    while above is not None:
        ids.add(above.id)
        above = above.parent
    return ids
