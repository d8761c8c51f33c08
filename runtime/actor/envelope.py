"""What goes into a mailbox, and by which rules: plain data.

Owns: envelopes, the place in the line for one, and the settings of a mailbox.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UsageError

__all__ = ["Envelope", "MailboxSettings", "Notice", "Overflow", "QueueTicket"]

Overflow = Literal["reject", "drop_oldest", "block"]


@dataclass(frozen=True, slots=True)
class MailboxSettings:
    """How many messages may wait, and what happens to one too many.

    * `reject`: `tell` and `ask` get `MailboxFull`;
    * `drop_oldest`: the message that has waited longest is dropped, and becomes a dead letter;
    * `block`: whoever can wait, waits: `send` and `request`, and `tell` and `ask` in a thread. `tell` and `ask` on the loop's thread get `MailboxFull`.

    `send` waits for room whatever is said here.
    """

    capacity: int | None = None
    overflow: Overflow = "reject"

    def __post_init__(self) -> None:
        if self.capacity is not None and self.capacity < 1:
            msg = f"MailboxSettings: capacity={self.capacity} would take no message at all; give 1 or more, or None for no bound."
            raise UsageError(msg)
        if self.overflow not in ("reject", "drop_oldest", "block"):
            msg = f"MailboxSettings: overflow={self.overflow!r} is unknown; give 'reject', 'drop_oldest' or 'block'."
            raise UsageError(msg)


class Envelope:
    """A message, and where the reply goes. What pykka's own envelope is, made by us, so that the lanes can tell theirs apart."""

    __slots__ = ("message", "reply_to")

    def __init__(self, message: Any, reply_to: Any = None) -> None:
        self.message = message
        self.reply_to = reply_to

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, reply_to={self.reply_to!r})"


class Notice(Envelope):
    """An envelope that takes its place in the work lane whether or not there is room."""

    __slots__ = ()


class QueueTicket:
    """Somebody who waits for room. `notify` is called once, without the lock, from the thread that made room or closed."""

    __slots__ = ("admitted", "envelope", "notify")

    def __init__(self, envelope: Envelope, notify: Callable[[], object]) -> None:
        self.envelope = envelope
        self.notify = notify
        self.admitted = False
