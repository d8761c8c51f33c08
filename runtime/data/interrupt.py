"""The place and the reason of an interrupt, and its answer.

An address is structural: it names the agents in the tree and the tool call, so it is the same each
time the run gets there. Nothing here refers to a running actor.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from .value import Value

__all__ = ["Address", "AddressStep", "Answer", "InterruptContext", "Pending"]


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
