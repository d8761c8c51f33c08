"""What works on a task: an agent, or functions of the user's own.

Owns: the protocol between a turn and whatever plays it. It must never know which of them it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .asks import End
    from .turn import Turn

__all__ = ["Player"]


class Player(Protocol):
    """What works on a task."""

    async def play(self, turn: Turn) -> End:
        """Work on it, and say how that has ended."""

    def cancel(self) -> None:
        """End it as soon as possible: `play` returns then."""
