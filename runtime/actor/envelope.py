"""The contents and the settings of a mailbox, as plain data.

These are envelopes, the ticket of a sender that waits for room, `MailboxSettings`, and the parts of
a bounded mailbox. None of them refers to a mailbox or an actor.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UsageError

__all__ = [
    "Bound",
    "Envelope",
    "MailboxSettings",
    "Notice",
    "Overflow",
    "QueueTicket",
    "Returned",
    "emptied",
    "in_envelope",
]

Overflow = Literal["reject", "drop_oldest", "block"]


@dataclass(frozen=True, slots=True)
class MailboxSettings:
    """The limit on waiting messages, and the policy for one too many.

    * `reject`: `tell`, `ask` and `request` raise `MailboxFull`;
    * `drop_oldest`: the oldest waiting message is dropped, and becomes a dead letter;
    * `block`: `send` and `request` wait for room, and so do `tell` and `ask` in a thread. On the
      loop's thread, `tell` and `ask` raise `MailboxFull`.

    With `reject`, too, `send` waits for room.
    """

    capacity: int | None = None
    overflow: Overflow = "reject"

    def __post_init__(self) -> None:
        if self.capacity is not None and self.capacity < 1:
            msg = (
                "MailboxSettings: capacity must be 1 or more, or None for no bound, got "
                f"{self.capacity}."
            )
            raise UsageError(msg)
        if self.overflow not in ("reject", "drop_oldest", "block"):
            msg = (
                "MailboxSettings: overflow must be 'reject', 'drop_oldest' or 'block', "
                f"got {self.overflow!r}."
            )
            raise UsageError(msg)


class Envelope:
    """A message, and the future for its reply.

    It replaces pykka's envelope, so that the lanes can distinguish messages and notices by class.
    """

    __slots__ = ("message", "reply_to")

    def __init__(self, message: object, reply_to: Any = None) -> None:
        self.message = message
        self.reply_to = reply_to

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, reply_to={self.reply_to!r})"


class Notice(Envelope):
    """An envelope that enters the work lane even if it is full."""

    __slots__ = ()


class Returned(Notice):
    """A stashed message that comes back. It had its place in the mailbox before."""

    __slots__ = ()


class QueueTicket:
    """A sender that waits for room.

    `notify` is called once, without the lock, from the thread that made room or closed the mailbox.
    """

    __slots__ = ("admitted", "envelope", "notify")

    def __init__(self, envelope: Envelope, notify: Callable[[], object]) -> None:
        self.envelope = envelope
        self.notify = notify
        self.admitted = False


class Bound:
    """The part that only a bounded mailbox has, so that other mailboxes stay small."""

    __slots__ = ("capacity", "notices", "overflow", "waiting")

    def __init__(self, capacity: int, overflow: Overflow) -> None:
        self.capacity = capacity
        self.overflow = overflow
        self.notices = 0  # number of notices in the work lane
        self.waiting: deque[QueueTicket] = deque()  # empty whenever there is room


def in_envelope(item: Any) -> Envelope:
    """Return an item of a work lane as an envelope: a message without an asker has none."""
    return item if issubclass(type(item), Envelope) else Envelope(item)


def emptied(lane: deque[Any]) -> list[Envelope]:
    """Empty a work lane that is no longer used, and return its envelopes.

    Items are removed one by one, because other threads do not take the lock: the owner may take
    one, and a sender append one.
    """
    found: list[Envelope] = []
    with contextlib.suppress(IndexError):
        while True:
            found.append(in_envelope(lane.popleft()))
    return found
