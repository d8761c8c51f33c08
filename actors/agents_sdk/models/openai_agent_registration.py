"""What OpenAI is told of a program.

Owns: the settings for it. It must never send them: nothing is told here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OpenAIAgentRegistrationConfig"]


@dataclass(frozen=True)
class OpenAIAgentRegistrationConfig:
    """By which name OpenAI knows the program."""

    harness_id: str | None = None
