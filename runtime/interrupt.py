"""Where a run was interrupted, and by what.

Owns: addresses, and the contexts that say which agent or tool waits for what. An address is structural: it names the places in the tree of
agents and the tool call in them, so it is the same each time that the run comes there. It must never hold anything of a running actor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

__all__ = ["Address", "AddressStep", "InterruptContext"]


@dataclass(frozen=True, slots=True)
class AddressStep:
    """One step of an address: an agent, or a tool that it calls."""

    kind: Literal["agent", "tool"]
    name: str
    call_id: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.call_id is None else f"{self.kind}:{self.name}({self.call_id})"


Address: TypeAlias = tuple[AddressStep, ...]


@dataclass(frozen=True, slots=True)
class InterruptContext:
    """One thing that a run waits for. `id` names it in `resume(targets=...)`; `parent` leads to what encloses it."""

    id: str
    address: Address
    info: Any = None
    is_root_cause: bool = True
    parent: InterruptContext | None = None
