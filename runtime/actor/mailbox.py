"""The queue of an actor: two lanes, optionally bounded, closed atomically.

The mailbox holds the waiting envelopes, and the senders that wait for room. It makes no calls while
it holds its lock, blocks no caller that did not ask to wait, and does not know about actors: each
put returns whether the owner must be woken.

The rules, all decided under the lock:

* An envelope that was put while the mailbox was open is taken once, or returned once to be answered
  (by `close_work`, `close`, or the `put` that drops it). Every later put is refused.
* The control lane overtakes the work lane. Each lane is first in, first out.
* `capacity` bounds the work lane. Control and notices (which report that an actor has ended) are
  exempt: there is one for each request or watch.
* A sender waits for room only while there is none: each envelope taken admits the first waiting
  sender, so no later sender overtakes it.
* *Engaged* means that the owner was told to take messages. It ends when the owner finds none.

Most messages arrive in sequence at an engaged owner with an unbounded mailbox. Then a put is an
append to `lane`, without the lock, and without an envelope if there is no asker. It cannot be lost:
the side that ends this mode (`lane` becomes None) looks into the deque afterwards, and the
appending side checks afterwards that the lane is still the same. If not, `settle` finds out, under
the lock, what happened to the item.
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
    """There is no room, and the caller cannot wait for room."""


class Admission(Enum):
    """The action required after a put."""

    QUEUED = "the owner takes it without being told"
    WAKE = "the owner is idle: wake it"
    ATTEND = "the owner is busy: point it to its control lane"


_QUEUED: Final = Admission.QUEUED
_WAKE: Final = Admission.WAKE
_ATTEND: Final = Admission.ATTEND


class State(Enum):
    """The state of a mailbox. It only moves forward."""

    OPEN = 0  # accepts everything
    SEALED = 1  # accepts control only; the rest of the work lane can still be taken
    CLOSED = 2  # like SEALED, and the work lane stays empty
    DEAD = 3  # accepts nothing, and stays empty


_OPEN: Final = State.OPEN
_SEALED: Final = State.SEALED
_CLOSED: Final = State.CLOSED
_DEAD: Final = State.DEAD


class Mailbox:
    """The mailbox of one actor.

    Any thread may call any method, except `take` and `wait_take`, which only the owner calls.
    """

    __slots__ = (
        "_away",
        "_bound",
        "_engaged",
        "_lock",
        "_state",
        "_taker",
        "_work",
        "control",
        "lane",
    )

    def __init__(
        self,
        settings: MailboxSettings | None = None,
        lock: threading.RLock | None = None,
        *,
        engaged: bool = False,
        away: bool = False,
    ) -> None:
        # Many mailboxes may share a lock: it is held only briefly, and nothing is called under it.
        # It is reentrant because a signal handler may put while its own thread is in the middle of
        # a put.
        self._lock = threading.RLock() if lock is None else lock
        # An empty deque takes 768 bytes, so a lane exists only while it has content.
        self._work: deque[Any] | None = None  # envelopes, and bare messages without one
        self.lane: deque[Any] | None = (
            # The work lane, while it is open and the owner is engaged; written under the lock.
            None
        )
        self.control: deque[Envelope] | None = None  # None: no control waits
        self._bound = (
            Bound(settings.capacity, settings.overflow)
            if settings is not None and settings.capacity is not None
            else None
        )
        self._state = _OPEN
        self._engaged = engaged
        self._away = away  # True while the owner does something that control may interrupt
        self._taker: threading.Condition | None = None  # a thread waits on it in `wait_take`

    def __len__(self) -> int:
        """Return the number of waiting envelopes in both lanes."""
        work, control = self._work, self.control
        return (len(work) if work else 0) + (len(control) if control else 0)

    def __repr__(self) -> str:
        return f"<Mailbox {self._state.name.lower()}, {len(self)} waiting>"

    @property
    def is_engaged(self) -> bool:
        """True if the owner was told to take, and has not found the mailbox empty since."""
        return self._engaged

    @property
    def is_idle(self) -> bool:
        """True if it is open, nothing waits, and the owner was not told to take."""
        return not self._engaged and self._state is _OPEN

    @property
    def is_open(self) -> bool:
        return self._state is _OPEN

    @property
    def capacity(self) -> int | None:
        return self._bound.capacity if self._bound is not None else None

    @property
    def blocks(self) -> bool:
        """True if senders that can wait for room must do so."""
        return self._bound is not None and self._bound.overflow == "block"

    # --- putting ---

    def put(self, envelope: Envelope) -> Admission | Envelope:
        """Put an envelope into the work lane.

        Returns the next action, or the envelope dropped for this one, which the caller must answer.
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
        """Put a message without an asker into the work lane, for a caller that found no `lane`."""
        with self._lock:
            if self._bound is None and self._state is _OPEN:
                return self._open_lane(message)
        return self.put(Envelope(message))

    def settle(self, lane: deque[Any]) -> Admission | list[Envelope]:
        """Settle an append to `lane` that may have come after the lane changed.

        Returns the next action, or the envelopes that the caller must answer.
        """
        with self._lock:
            if self._work is lane:
                return self._engage() if lane else _QUEUED
            late = emptied(lane)
            if self._state is not _OPEN:
                return late
            admissions = [self._open_lane(item) for item in late]
            return admissions[0] if admissions else _QUEUED

    def put_or_wait(self, ticket: QueueTicket) -> Admission | Envelope | None:
        """Put an envelope into the work lane, or queue for room.

        If it queues, it returns None, and `ticket.notify` is called when the wait is over.
        `ticket.admitted` then tells if the envelope is in; if not, the mailbox was closed.
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
        """Stop waiting for room.

        Returns False if it is too late: the envelope is in, or the mailbox is closed.
        """
        with self._lock:
            if self._bound is None or ticket not in self._bound.waiting:
                return False
            self._bound.waiting.remove(ticket)
            return True

    def put_control(self, envelope: Envelope, *, seal: bool = False) -> Admission:
        """Put an envelope into the control lane; `seal` closes the work lane to new messages."""
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
        """Put messages at the head of the work lane, keeping their order.

        Only the owner calls this, with messages that it took before.
        """
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
        """Take the next envelope, control first.

        None: there is nothing, and the next put returns `WAKE`.
        """
        if (
            self._bound is None
            and self.control is None
            and self._taker is None
            and (work := self._work)
        ):
            # Without the lock: others only append to the work lane, and only its owner, the caller,
            # takes from it, unless the lane is being closed.
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
                if not work:  # still empty: nothing arrived at the last moment
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
        """Take the next envelope, control first; block the calling thread while there is none.

        None: closed, or timed out.
        """
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
        """Take the next envelope, as in pykka: block until there is one.

        Raises `MailboxClosed` if there will never be one.
        """
        envelope = self.wait_take()
        if envelope is None:
            raise MailboxClosed
        return envelope

    def empty(self) -> bool:
        return not len(self)

    def leave(self) -> bool:
        """Note that the owner starts something that control may interrupt.

        Returns True if control already waits.
        """
        with self._lock:
            self._away = True
            return self.control is not None

    def come_back(self) -> bool:
        """Note that the owner can take again.

        Returns True if something waits; if not, the next put returns `WAKE`.
        """
        with self._lock:
            self._away = False
            self.lane = None
            self._engaged = bool(self._work or self.control)
            return self._engaged

    # --- closing ---

    def close_work(self) -> list[Envelope]:
        """Close the work lane.

        Returns its remaining envelopes, for the caller to answer. The control lane stays as it is.
        """
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
        """Close both lanes.

        Returns all remaining envelopes, control first, for the caller to answer.
        """
        with self._lock:
            if (
                self._work is None
                and self.control is None
                and self._bound is None
                and self._taker is None
            ):
                self._state = _DEAD  # most mailboxes, most of the time
                return []
        left = self.close_work()
        with self._lock:
            self._state = _DEAD
            control = list(self.control or ())
            self.control = None
        return control + left

    # --- helpers, all called with the lock held ---

    def _has_room(self, bound: Bound) -> bool:
        return self._work is None or len(self._work) - bound.notices < bound.capacity

    def _open_lane(self, item: object) -> Admission:
        """Append to an open, unbounded work lane. The next put may do so without the lock."""
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
        """Pass the room of `taken` on to the first waiting sender, and return its ticket."""
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
