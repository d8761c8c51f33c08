"""The errors of understudy: one tree, split by who is at fault.

    UnderstudyError
    ├── UsageError               the caller's mistake; raised at once, before anything has happened
    ├── ActorDeadError           the actor has stopped, or stopped before it came to the message  (is pykka's, too)
    │   └── ActorFailed          it crashed on this very message; what becomes of it is its supervisor's business
    ├── AskTimeout               no reply in time; the message may still be handled  (is pykka's Timeout and TimeoutError, too)
    ├── HandlerCancelled         the handler was cancelled on request; its actor lives on
    ├── MailboxFull              a bounded mailbox had no room, or dropped the message for a newer one
    └── SystemDraining           the system takes no new work: it is about to stop

Each says what was wrong, where, and what to do; `actor` and `message` hold what it belongs to.
This file must never import another one of the package.
"""

from __future__ import annotations

from typing import Any

import pykka

__all__ = [
    "ActorDeadError",
    "ActorFailed",
    "AskTimeout",
    "HandlerCancelled",
    "MailboxFull",
    "SystemDraining",
    "UnderstudyError",
    "UsageError",
    "forget_frames",
]


class UnderstudyError(Exception):
    """The root of all errors that this package raises on purpose."""

    def __init__(self, text: str = "", *, actor: str | None = None, message: Any = None) -> None:
        super().__init__(text)
        self.actor = actor
        """The path of the actor that it belongs to, as in `ActorNode.path`."""
        self.message = message
        """The message that it belongs to, if there is one."""


class UsageError(UnderstudyError):
    """The caller's mistake. Nothing has happened yet."""


class ActorDeadError(UnderstudyError, pykka.ActorDeadError):
    """The actor has stopped, or stopped before it came to the message."""


class ActorFailed(ActorDeadError):
    """The actor crashed on this very message, with something that is no ordinary exception.

    What it crashed with has gone to its supervisor, and to nobody else: it is not the asker's to be cancelled or interrupted by.
    """


class AskTimeout(UnderstudyError, pykka.Timeout, TimeoutError):
    """No reply came in time. The message has been sent all the same, and may still be handled."""


class HandlerCancelled(UnderstudyError):
    """The handler was cancelled by `ActorRef.cancel()` before it had a reply."""


class MailboxFull(UnderstudyError):
    """A bounded mailbox had no room for the message, or gave its place to a newer one."""


class SystemDraining(UnderstudyError):
    """The system takes no new work, because it is about to stop."""


def forget_frames(error: BaseException) -> None:
    """Take the tracebacks from an error and from those that have led to it: their frames keep whatever was in use when it was raised."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        next_one = stack.pop()
        if next_one is not None and id(next_one) not in seen:
            seen.add(id(next_one))
            next_one.__traceback__ = None
            stack.extend((next_one.__cause__, next_one.__context__))
