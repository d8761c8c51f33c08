"""Where a run was interrupted, and by what.

Owns: addresses, the contexts that say which agent or tool waits for what, and the answers that come. An address is structural: it names the places in
the tree of agents and the tool call in them, so it is the same each time that the run comes there. It must never hold anything of a running actor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..quick_init import quick

__all__ = ["Address", "AddressStep", "Answer", "InterruptContext", "Pending"]


@quick
@dataclass(frozen=True, slots=True)
class AddressStep:
    """One step of an address: an agent, or a tool that it calls."""

    kind: Literal["agent", "tool"]
    name: str
    call_id: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.call_id is None else f"{self.kind}:{self.name}({self.call_id})"


Address: TypeAlias = tuple[AddressStep, ...]


@quick
@dataclass(frozen=True, slots=True)
class InterruptContext:
    """One thing that a run waits for. `id` names it in `resume(targets=...)`; `parent` leads to what encloses it."""

    id: str
    address: Address
    info: Any = None
    is_root_cause: bool = True
    parent: InterruptContext | None = None


@quick
@dataclass(frozen=True, slots=True)
class Pending:
    """What a run has to know to go on from an interrupt."""

    context: InterruptContext
    call_id: str | None = None  # of the tool call that waits; None if the agent itself does
    state: object = None  # what was given to be found again
    approval: bool = False  # whether the call waits to be approved, before it is made
    earlier: tuple[tuple[bool, object], ...] = ()  # what the call was told at the interrupts before this one: (approval, data) of each


@quick
@dataclass(frozen=True, slots=True)
class Answer:
    """What became of something that a run waited for."""

    pending: Pending
    is_target: bool  # whether it goes on; else it goes on waiting
    data: object = None
