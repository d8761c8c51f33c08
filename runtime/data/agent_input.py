"""What an agent is given when it begins.

Owns: `AgentInput`, a frozen value. How it is made up from the history is for `agent/` to say.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..quick_init import quick
from .chat import Message

__all__ = ["AgentInput"]


@quick
@dataclass(frozen=True, slots=True)
class AgentInput:
    """What an agent is given: the messages, oldest first, and whether its model is to stream."""

    messages: tuple[Message, ...] = ()
    streaming: bool = False
