"""Tools that are not known when an agent is made: they are asked for when it plays.

Owns: what such a set is to an agent. It must never keep anything of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .tool import Tool

if TYPE_CHECKING:
    from ...runtime.actor.host import Host

__all__ = ["Toolset"]


class Toolset:
    """A set of tools that may change. It stands among an agent's `tools`."""

    asks_approval: bool = False
    """Whether some of them may have to be approved."""

    async def tools_in(self, system: Host) -> Sequence[Tool]:
        """The tools for an agent that plays in that system: the same sequence until it changes."""
        raise NotImplementedError
