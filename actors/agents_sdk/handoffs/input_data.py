"""What a filter of a handoff is given, and gives back.

Owns: `HandoffInputData`. It must never change what was given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from ..run_context import RunContextWrapper

__all__ = ["HandoffHistoryMapper", "HandoffInputData", "HandoffInputFilter"]


@dataclass(frozen=True)
class HandoffInputData:
    """What the agent that takes over would be given: return it changed, by `clone(...)`."""

    input_history: str | tuple[Any, ...]
    """What the run was asked."""
    pre_handoff_items: tuple[Any, ...] = ()
    """What was said and done before the reply that hands over."""
    new_items: tuple[Any, ...] = ()
    """That reply, and the results of its calls; the handoff among them."""
    run_context: RunContextWrapper[Any] | None = None
    input_items: tuple[Any, ...] | None = None
    """What the model is given in the place of `new_items`, which are still recorded."""
    owned: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    """Which of the history's items are items of this run, as they are: `nest_handoff_history` has put them there."""

    def clone(self, **changes: Any) -> Self:
        """A copy with these changes."""
        return dataclasses.replace(self, **changes)


HandoffInputFilter: TypeAlias = Callable[[HandoffInputData], Any]
HandoffHistoryMapper: TypeAlias = Callable[[list[Any]], list[Any]]
