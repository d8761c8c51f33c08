"""What an agent is given when it begins.

Owns: `AgentInput`, a frozen value, and in which forms messages may be given. How it is made up from the history is for `agent/` to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..quick_init import quick
from .chat import Message

__all__ = ["AgentInput", "as_messages"]


@quick
@dataclass(frozen=True, slots=True)
class AgentInput:
    """What an agent is given: the messages, oldest first, and whether its model is to stream."""

    messages: tuple[Message, ...] = ()
    streaming: bool = False


def as_messages(given: str | Message | Sequence[Message]) -> tuple[Message, ...]:
    """What was given as messages, as a tuple of them."""
    if type(given) is tuple and len(given) == 1 and type(given[0]) is Message:
        return given
    if isinstance(given, str):
        return (Message("user", given),)
    if isinstance(given, Message):
        return (given,)
    messages = tuple(given) if isinstance(given, Iterable) else (given,)
    for message in messages:
        if not isinstance(message, Message):
            msg = f"messages: {message!r} is no Message. Write Message.user('...'), or give a plain text."
            raise UsageError(msg)
    return messages
