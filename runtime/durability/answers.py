"""Answers to a run that was interrupted: who gets what.

Owns: the targets and the data of one resume, and how they reach the agents and tool calls that wait. Those that get nothing wait on. Whatever is
wrong with the answers is a ResumeError before anything has run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..codec.packing import pack
from ..data.interrupt import Answer, InterruptContext, Pending
from ..errors import CheckpointError, ResumeError, UsageError

if TYPE_CHECKING:
    from ..agent.invocation import Invocation

__all__ = ["Answers"]


class Answers:
    """What one resume says."""

    __slots__ = ("_data", "_targets")

    def __init__(self, targets: Mapping[str, Any] | None, data: Any) -> None:
        if targets is not None and (not isinstance(targets, Mapping) or not all(isinstance(key, str) for key in targets)):
            msg = f"resume(targets={targets!r}): give a mapping of interrupt ids to data, for example {{result.interrupts[0].id: True}}."
            raise UsageError(msg)
        if targets is not None and data is not None:
            raise UsageError("resume(targets=..., data=...): give one of them: data goes to every interrupt, targets to those that are named.")
        for name, value in (*(() if targets is None else targets.items()), *((("data", data),) if data is not None else ())):
            if value is None or value is True or value is False:
                continue  # as most answers are
            try:
                pack(value)
            except CheckpointError as error:
                msg = f"resume: the answer {name!r} cannot be kept: {error}"
                raise CheckpointError(msg) from error
        self._targets = None if targets is None else dict(targets)
        self._data = data

    def give(self, invocations: Iterable[Invocation], checkpoint_id: str) -> None:
        """Give each agent and tool call that waits its answer. Raises ResumeError, and has given nothing then."""
        waiting = [(invocation, pending) for invocation in invocations for pending in (invocation.pending or {}).values()]
        self._check([pending for _, pending in waiting], checkpoint_id)
        for invocation, pending in waiting:
            answer = self._answer(pending)
            invocation.answers = {**(invocation.answers or {}), pending.call_id: answer}
            above: Invocation | None = invocation
            while above is not None:
                above.resumed = True
                above = above.assignment.parent
        for invocation, _ in waiting:
            invocation.pending = None

    def _answer(self, pending: Pending) -> Answer:
        if self._targets is None:
            return Answer(pending, is_target=True, data=self._data)
        known = self._targets
        return Answer(pending, is_target=pending.context.id in known, data=known.get(pending.context.id))

    def _check(self, waiting: list[Pending], checkpoint_id: str) -> None:
        known = {pending.context.id: pending for pending in waiting}
        for name in self._targets or ():
            if name in known:
                continue
            what = "encloses an interrupt, and is none itself" if any(name in _enclosing(pending.context) for pending in waiting) else "is no interrupt of it"
            msg = f"checkpoint {checkpoint_id!r}: {name!r} {what}. It waits for {', '.join(map(repr, known)) or 'nothing'}."
            raise ResumeError(msg)
        for pending in waiting:
            answer = self._answer(pending)
            check = getattr(pending.context.info, "check_answer", None)
            if answer.is_target and callable(check):
                problem = check(answer.data)
                if problem is not None:
                    msg = f"checkpoint {checkpoint_id!r}, interrupt {pending.context.id!r}: {problem}"
                    raise ResumeError(msg)


def _enclosing(context: InterruptContext) -> set[str]:
    ids: set[str] = set()
    above = context.parent
    while above is not None:
        ids.add(above.id)
        above = above.parent
    return ids
