"""The interface between a turn and the agent or custom functions that run the task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .asks import End
    from .turn import Turn

__all__ = ["Player"]


class Player(Protocol):
    """An object that runs a task."""

    def check(self, turn: Turn) -> None:
        """Refuse the message of this turn, if the task does not accept it."""

    async def play(self, turn: Turn) -> End:
        """Run the turn, and return its result."""

    def cancel(self) -> None:
        """End the turn as soon as possible: `play` then returns."""
