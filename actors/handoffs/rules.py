"""The settings shared by one agent's handoffs.

They are computed once for an agent in its place of a tree, and hold nothing of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .handoff import Handoff

__all__ = ["HandoffRules"]


@dataclass(frozen=True, slots=True)
class HandoffRules:
    """The handoffs that an agent may follow, and their settings."""

    handoffs: Mapping[str, Handoff]
    """The handoffs by the names of their tools."""
    nests: bool
    """Whether earlier messages are folded into one, if the handoff does not specify it."""
    output_key: str | None
    """The session key that also stores a handoff's result."""
