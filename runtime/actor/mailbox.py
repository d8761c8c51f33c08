"""The one queue of an actor: two lanes, bounded if the user wants it, closed atomically.

Owns: the envelopes that wait for the actor, and the senders that wait for room. It must never call out while it holds its lock, never block a caller that
did not ask to wait, and never know about actors: each put returns whether the owner has to be woken.

The rules, all of them decided under the lock:

* An envelope that was put while the mailbox was open is taken once, or returned once to be answered (by `close_work`, `close`, or the `put` that drops it).
  Every later put is refused.
* The control lane overtakes the work lane. Each lane is first in, first out.
* `capacity` bounds the work lane. Control and notices (which report that an actor has ended) are exempt: there is one for each request or watch.
* A sender waits for room only while there is none: each envelope taken admits the first waiting sender, so no later sender overtakes it.
* *Engaged* means that the owner has been told to take. It ends when the owner finds nothing.

Most messages come one after the other to an owner that is engaged, into a mailbox without a bound. Then a put is an append to `lane`, without the lock, and
without an envelope if there is no asker. It cannot be lost: the side that ends that way (`lane` becomes None) looks into the deque after that, and the side
that appends looks after it whether the lane is still the same; if not, `settle`, under the lock, finds out what has become of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from .envelope import Bound, Envelope, MailboxSettings, Notice, QueueTicket, emptied, in_envelope

__all__ = ["Admission", "Full", "Mailbox", "MailboxClosed"]


class MailboxClosed(Exception):
    """The mailbox accepts nothing more."""


class Full(Exception):
    """There is no room, and the caller cannot wait for it."""


class Admission(Enum):
    """What to do after a put."""

    QUEUED = "the owner takes it without being told"
    WAKE = "the owner is idle: wake it"
    ATTEND = "the owner is busy: point it to its control lane"


_QUEUED: Final = Admission.QUEUED
_WAKE: Final = Admission.WAKE
_ATTEND: Final = Admission.ATTEND


class State(Enum):
    """Moves forward only."""

    OPEN = 0  # accepts everything
    SEALED = 1  # accepts control only; the rest of the work lane can still be taken
    CLOSED = 2  # like SEALED, and the work lane is empty for good
    DEAD = 3  # accepts nothing, and is empty for good


_OPEN: Final = State.OPEN
_SEALED: Final = State.SEALED
_CLOSED: Final = State.CLOSED
_DEAD: Final = State.DEAD


class Mailbox:
    """The mailbox of one actor. Any method may be called from any thread, but `take` and `wait_take` by its owner only."""

    __slots__ = ("_away", "_bound", "_engaged", "_lock", "_state", "_taker", "_work", "control", "lane")

    def __init__(self, settings: MailboxSettings | None = None, lock: threading.RLock | None = None, engaged: bool = False) -> None:  # noqa: FBT001, FBT002 -- for speed
        # A lock may be shared by many mailboxes: it is held for a moment only, and nothing is called under it. It is reentrant because a
        # signal handler may put while its own thread is in the middle of a put.
        self._lock = threading.RLock() if lock is None else lock
        # Empty deques are 768 bytes each: a lane exists only while there is something in it.
        self._work: deque[Any] | None = None  # envelopes, and bare messages that have none
        self.lane: deque[Any] | None = None  # the work lane, while it is open to all and the owner is engaged; written under the lock
        self.control: deque[Envelope] | None = None  # None: no control waits
        self._bound = Bound(settings.capacity, settings.overflow) if settings is not None and settings.capacity is not None else None
        self._state = _OPEN
        self._engaged = engaged
        self._away = False  # the owner does something that control may interrupt
        self._taker: threading.Condition | None = None  # a thread waits on it in `wait_take`

    def __len__(self) -> int:
        """How many envelopes wait in both lanes."""
        work, control = self._work, self.control
        return (len(work) if work else 0) + (len(control) if control else 0)

    def __repr__(self) -> str:
        return f"<Mailbox {self._state.name.lower()}, {len(self)} waiting>"

    @property
    def is_engaged(self) -> bool:
        """Whether the owner has been told to take, and has not found the mailbox empty since."""
        return self._engaged

    @property
    def is_idle(self) -> bool:
        """Whether it is open, nothing waits, and the owner has not been told to take."""
        return not self._engaged and self._state is _OPEN

    @property
    def is_open(self) -> bool:
        return self._state is _OPEN

    @property
    def capacity(self) -> int | None:
        return self._bound.capacity if self._bound is not None else None

    @property
    def blocks(self) -> bool:
        """Whether senders that can wait for room are to do so."""
        return self._bound is not None and self._bound.overflow == "block"

    # --- putting ---

    def put(self, envelope: Envelope) -> Admission | Envelope:
        """Put into the work lane. Returns what to do next; or the envelope that was dropped for this one, which the caller has to answer.

        Raises `MailboxClosed`, or `Full` if there is no room.
        """
        with self._lock:
            if self._state is not _OPEN:
                raise MailboxClosed
            bound = self._bound
            if bound is None:
                return self._open_lane(envelope)
            dropped: Envelope | None = None
            if type(envelope) is not Envelope:
                bound.notices += 1
            elif not self._has_room(bound):
                if bound.overflow != "drop_oldest":
                    raise Full
                dropped = self._drop_oldest()
            admission = self._append(envelope)
            return admission if dropped is None else dropped

    def put_bare(self, message: object) -> Admission | Envelope:
        """Put a message for which there is no asker into the work lane: `put`, for a caller that has found no `lane`."""
        with self._lock:
            if self._bound is None and self._state is _OPEN:
                return self._open_lane(message)
        return self.put(Envelope(message))

    def settle(self, lane: deque[Any]) -> Admission | list[Envelope]:
        """Something was appended to `lane`, which was not the lane any more after that. Returns what to do next, or what the caller has to answer."""
        with self._lock:
            if self._work is lane:
                return self._engage() if lane else _QUEUED
            late = emptied(lane)
            if self._state is not _OPEN:
                return late
            admissions = [self._open_lane(item) for item in late]
            return admissions[0] if admissions else _QUEUED

    def put_or_wait(self, ticket: QueueTicket) -> Admission | Envelope | None:
        """Put into the work lane, or queue for room: then it returns None, and `ticket.notify` is called when the wait is over.

        After that, `ticket.admitted` tells whether the envelope is in; if not, the mailbox was closed.
        """
        with self._lock:
            if self._state is not _OPEN:
                raise MailboxClosed
            bound = self._bound
            if bound is None or self._has_room(bound) or bound.overflow == "drop_oldest":
                return self.put(ticket.envelope)
            bound.waiting.append(ticket)
            return None

    def give_up(self, ticket: QueueTicket) -> bool:
        """Stop waiting for room. Returns False if it is too late: the envelope is in, or the mailbox is closed."""
        with self._lock:
            if self._bound is None or ticket not in self._bound.waiting:
                return False
            self._bound.waiting.remove(ticket)
            return True

    def put_control(self, envelope: Envelope, *, seal: bool = False) -> Admission:
        """Put into the control lane; with `seal`, the work lane accepts nothing from now on."""
        waiting: deque[QueueTicket] | None = None
        with self._lock:
            if self._state is _DEAD:
                raise MailboxClosed
            if seal and self._state is _OPEN:
                self._state, self.lane = _SEALED, None
                waiting = self._dismiss_waiting()
            if self.control is None:
                self.control = deque()
            self.control.append(envelope)
            admission = _ATTEND if self._away else self._engage()
        _notify_all(waiting)
        return admission

    def seal(self) -> None:
        """Accept nothing more into the work lane. Its envelopes can still be taken."""
        with self._lock:
            if self._state is not _OPEN:
                return
            self._state, self.lane = _SEALED, None
            waiting = self._dismiss_waiting()
        _notify_all(waiting)

    def put_last(self, envelope: Notice) -> Admission:
        """Put the last envelope into the work lane, which accepts nothing after it."""
        with self._lock:
            if self._state is not _OPEN:
                raise MailboxClosed
            self._state, self.lane = _SEALED, None
            waiting = self._dismiss_waiting()
            if self._bound is not None:
                self._bound.notices += 1
            admission = self._append(envelope)
        _notify_all(waiting)
        return admission

    def put_back(self, envelopes: Sequence[Notice]) -> Admission:
        """Put messages at the head of the work lane, the first one before the others. By the owner only, which has taken them before."""
        with self._lock:
            if self._state not in (_OPEN, _SEALED):
                raise MailboxClosed
            if self._work is None:
                self._work = deque()
            self._work.extendleft(reversed(envelopes))
            if self._bound is not None:
                self._bound.notices += len(envelopes)
            return self._engage()

    # --- taking ---

    def take(self) -> Envelope | None:
        """Take the next envelope, control first. None: there is nothing, and the next put will say `WAKE`."""
        if self._bound is None and self.control is None and self._taker is None and (work := self._work):
            # Without the lock: others only append to the work lane, and only the owner, which calls this, takes from it; or it is being closed.
            try:
                return in_envelope(work.popleft())
            except IndexError:
                pass
        ticket: QueueTicket | None = None
        with self._lock:
            if self.control is not None:
                return self._take_control()
            work = self._work
            if not work:
                self.lane = None
                if not work:  # still: nothing came at the last moment
                    self._work = None
                    self._engaged = False
                    return None
            envelope = in_envelope(work.popleft())
            if self._bound is not None:
                ticket = self._pass_on(self._bound, envelope)
        if ticket is not None:
            ticket.notify()
        return envelope

    def take_control(self) -> Envelope | None:
        """Take the next envelope of the control lane only."""
        with self._lock:
            return self._take_control() if self.control is not None else None

    def wait_take(self, timeout: float | None = None) -> Envelope | None:
        """Take the next envelope, control first; block the calling thread while there is none. None: closed, or timed out."""
        with self._lock:
            if self._taker is None:
                self._taker = threading.Condition(self._lock)
            self.lane = None
            while not self.control and not self._work:
                self._engaged = False
                if self._state in (_CLOSED, _DEAD) or not self._taker.wait(timeout):
                    return None
            self._engaged = True
        return self.take()

    def get(self) -> Envelope:
        """Take the next envelope, as in pykka: blocks until there is one. Raises `MailboxClosed` if there will never be one."""
        envelope = self.wait_take()
        if envelope is None:
            raise MailboxClosed
        return envelope

    def empty(self) -> bool:
        return not len(self)

    def leave(self) -> bool:
        """The owner begins something that control may interrupt. Returns whether control already waits."""
        with self._lock:
            self._away = True
            return self.control is not None

    def come_back(self) -> bool:
        """The owner is back, and can take. Returns whether there is something to take; if not, the next put will say `WAKE`."""
        with self._lock:
            self._away = False
            self.lane = None
            self._engaged = bool(self._work or self.control)
            return self._engaged

    # --- closing ---

    def close_work(self) -> list[Envelope]:
        """Close the work lane. Returns what was left in it, for the caller to answer. The control lane stays as it is."""
        with self._lock:
            if self._state in (_CLOSED, _DEAD):
                return []
            self._state, self.lane = _CLOSED, None
            waiting = self._dismiss_waiting()
            work, self._work = self._work, None
            left = emptied(work) if work else []
            if self._taker is not None:
                self._taker.notify_all()
        _notify_all(waiting)
        return left

    def close(self) -> list[Envelope]:
        """Close both lanes. Returns all that was left, control first, for the caller to answer."""
        with self._lock:
            if self._work is None and self.control is None and self._bound is None and self._taker is None:
                self._state = _DEAD  # most mailboxes, most of the time
                return []
        left = self.close_work()
        with self._lock:
            self._state = _DEAD
            control = list(self.control or ())
            self.control = None
        return control + left

    # --- parts of the above, all of them called with the lock held ---

    def _has_room(self, bound: Bound) -> bool:
        return self._work is None or len(self._work) - bound.notices < bound.capacity

    def _open_lane(self, item: object) -> Admission:
        """Append to an unbounded work lane that is open; the next one may do so without the lock."""
        if self._work is None:
            self._work = deque((item,))
        else:
            self._work.append(item)
        self.lane = self._work
        return _QUEUED if self._engaged else self._engage()

    def _append(self, envelope: Envelope) -> Admission:
        if self._work is None:
            self._work = deque()
        self._work.append(envelope)
        return self._engage()

    def _engage(self) -> Admission:
        if self._engaged:
            return _QUEUED
        self._engaged = True
        if self._taker is not None:
            self._taker.notify()
        return _WAKE

    def _drop_oldest(self) -> Envelope | None:
        work = self._work or ()
        for index, envelope in enumerate(work):
            if type(envelope) is Envelope:
                del self._work[index]  # type: ignore[union-attr]  # not None: it was just iterated
                return envelope
        return None

    def _take_control(self) -> Envelope | None:
        control = self.control
        if control is None:
            return None
        envelope = control.popleft()
        if not control:
            self.control = None
        return envelope

    def _pass_on(self, bound: Bound, taken: Envelope) -> QueueTicket | None:
        """Give the room of `taken` to the sender that waits first, and return its ticket."""
        if type(taken) is not Envelope:
            bound.notices -= 1
            return None
        if not bound.waiting:
            return None
        ticket = bound.waiting.popleft()
        ticket.admitted = True
        self._append(ticket.envelope)
        return ticket

    def _dismiss_waiting(self) -> deque[QueueTicket] | None:
        if self._bound is None or not self._bound.waiting:
            return None
        waiting, self._bound.waiting = self._bound.waiting, deque()
        return waiting


def _notify_all(waiting: deque[QueueTicket] | None) -> None:
    for ticket in waiting or ():
        ticket.notify()
