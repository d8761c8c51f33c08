"""The place and the reason of an interrupt, and its answer.

An address is structural: it names the agents in the tree and the tool call, so it is the same each
time the run gets there. Nothing here refers to a running actor.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import UsageError
from .value import Value

__all__ = [
    "Address",
    "AddressStep",
    "Answer",
    "Due",
    "InterruptContext",
    "Pending",
    "due_of",
    "point_in_time",
]


class Due(NamedTuple):
    """The time until which an answer is awaited, and the answer after that."""

    at: datetime
    default: Any

    @classmethod
    def of(
        cls, call: str, deadline: timedelta | datetime | None, default: object = None
    ) -> Due | None:
        """Return the deadline of an interrupt. Raises `UsageError` if it is not valid."""
        if deadline is None:
            if default is not None:
                msg = f"{call}: default needs a deadline, after which it is the answer. Pass both."
                raise UsageError(msg)
            return None
        return cls(point_in_time(call, "deadline", deadline), default)


def point_in_time(call: str, name: str, given: object) -> datetime:
    """Return a point in time, which may be passed as the time from now."""
    if isinstance(given, timedelta):
        return datetime.now(UTC) + given
    if isinstance(given, datetime) and given.tzinfo is not None:
        return given
    if isinstance(given, datetime):
        msg = (
            f"{call}: {name} must be a datetime with a time zone, got {given!r}. Write "
            "datetime.now(UTC) + ..., or pass a timedelta."
        )
        raise UsageError(msg)
    msg = f"{call}: {name} must be a timedelta, or a datetime with a time zone, got {given!r:.80}."
    raise UsageError(msg)


class AddressStep(Value, frozen=True, gc=False):
    """One step of an address: an agent, or a tool that it calls."""

    kind: Literal["agent", "tool"]
    name: str
    call_id: str | None = None

    def __str__(self) -> str:
        return (
            f"{self.kind}:{self.name}"
            if self.call_id is None
            else f"{self.kind}:{self.name}({self.call_id})"
        )


Address: TypeAlias = tuple[AddressStep, ...]


class InterruptContext(Value, frozen=True):
    """One thing that a run waits for.

    `id` identifies it in `resume(targets=...)`; `parent` is the context that encloses it.
    """

    id: str
    address: Address
    info: Any = None
    is_root_cause: bool = True
    parent: InterruptContext | None = None
    deadline: datetime | None = None
    """The time at which it is answered with `default`, if nobody has answered it until then."""
    default: Any = None


def due_of(context: InterruptContext) -> Due | None:
    """Return the deadline of an interrupt that keeps waiting."""
    return None if context.deadline is None else Due(context.deadline, context.default)


class Pending(Value, frozen=True):
    """The data that a run needs to resume from an interrupt."""

    context: InterruptContext
    call_id: str | None = None  # the waiting tool call; None for the agent itself
    state: object = None  # state passed to the interrupt
    approval: bool = False  # True if the call waits for approval before it is made
    # The answers to the call's earlier interrupts: (approval, data, digest of the question) of
    # each.
    earlier: tuple[tuple[Any, ...], ...] = ()


class Answer(Value, frozen=True):
    """The answer to an interrupt."""

    pending: Pending
    is_target: bool  # True if it resumes; otherwise it keeps waiting
    data: object = None
