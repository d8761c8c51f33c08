"""Tools that are not known when an agent is made. They are listed when it runs.

A toolset stores nothing of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .tool import Tool

if TYPE_CHECKING:
    from ...runtime.actor.host import Host

__all__ = ["Toolset"]


class Toolset:
    """A set of tools that may change. It is an element of an agent's `tools`."""

    asks_approval: bool = False
    """Whether some of the tools may need approval."""

    async def tools_in(self, system: Host) -> Sequence[Tool]:
        """Return the tools for an agent that runs in that system.

        It must return the same sequence object until the tools change.
        """
        raise NotImplementedError
