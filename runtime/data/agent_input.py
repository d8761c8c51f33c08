"""The input of an agent, and the forms in which callers may pass messages.

`agent/` builds the input from the history.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import UsageError
from .chat import Message
from .value import Value

__all__ = ["AgentInput", "as_messages"]


class AgentInput(Value, frozen=True, gc=False):
    """The input of an agent: the messages, oldest first, and True if its model must stream."""

    messages: tuple[Message, ...] = ()
    streaming: bool = False


def as_messages(given: str | Message | Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages as a tuple."""
    if type(given) is tuple and len(given) == 1 and type(given[0]) is Message:
        return given
    if isinstance(given, str):
        return (Message("user", given),)
    if isinstance(given, Message):
        return (given,)
    messages = tuple(given) if isinstance(given, Iterable) else (given,)
    for message in messages:
        if not isinstance(message, Message):
            msg = (
                f"messages must contain Messages, got {message!r}. Write "
                "Message.user('...'), or pass a string."
            )
            raise UsageError(msg)
    return messages
