"""What one agent's handoffs have in common.

Owns: `HandoffRules`, worked out once for an agent in its place of a tree. It must never hold anything of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .handoff import Handoff

__all__ = ["HandoffRules"]


@dataclass(frozen=True, slots=True)
class HandoffRules:
    """The handoffs that an agent may follow, and how."""

    handoffs: Mapping[str, Handoff]
    """By the names of their tools."""
    nests: bool
    """Whether what came before is folded into one message, where a handoff does not say so itself."""
    output_key: str | None
    """Under which session value a handoff's result is kept, too."""
