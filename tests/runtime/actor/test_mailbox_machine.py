"""The mailbox against a plain model of it, in whatever order hypothesis thinks of: every method,
all overflow policies, one thread.
"""

from collections import deque
from types import SimpleNamespace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from offbook.runtime import MailboxSettings
from offbook.runtime.actor.envelope import Envelope, Notice, QueueTicket
from offbook.runtime.actor.mailbox import Admission, Full, Mailbox, MailboxClosed

SETTINGS = st.none() | st.builds(
    MailboxSettings,
    st.none() | st.integers(1, 3),
    st.sampled_from(["reject", "drop_oldest", "block"]),
)


class Bare(Envelope):
    """In the model: a message that came without an envelope.

    It equals the envelope that it gets when it is taken or returned.
    """

    __slots__ = ()
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return (
            type(other) in (Envelope, Bare)
            and other.message is self.message
            and other.reply_to is None
        )


def same(found: Envelope | None, expected: Envelope | None) -> bool:
    return found == expected if type(expected) is Bare else found is expected


PLAIN = (Envelope, Bare)

may_end = precondition(lambda self: self.number >= self.lifetime)


class MailboxMachine(RuleBasedStateMachine):
    """The model: two lists, a line, the state by name, and two flags.

    Each rule says what the model expects, does it there, and compares.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.state = "open"
        self.work: list[Envelope] = []
        self.control: list[Envelope] = []
        self.line: list[SimpleNamespace] = []
        self.tickets: list[SimpleNamespace] = []
        self.away = False

    @initialize(given=SETTINGS, engaged=st.booleans(), lifetime=st.integers(0, 40))
    def make(self, given: MailboxSettings | None, engaged: bool, lifetime: int) -> None:
        # How many envelopes are to be made before the mailbox may be ended, so that most stories
        # are not about the end.
        self.lifetime = lifetime
        self.mailbox = Mailbox(given, engaged=engaged)
        self.capacity = given.capacity if given else None
        self.overflow = given.overflow if given else "reject"
        self.engaged = engaged

    # --- what the model knows ---

    def fresh(self, kind: type[Envelope] = Envelope) -> Envelope:
        self.number += 1
        return kind(self.number)

    def plain(self) -> int:
        return sum(type(envelope) in PLAIN for envelope in self.work)

    def is_full(self) -> bool:
        return self.capacity is not None and self.plain() >= self.capacity

    def engage(self) -> Admission:
        if self.engaged:
            return Admission.QUEUED
        self.engaged = True
        return Admission.WAKE

    def append(self, envelope: Envelope) -> Admission:
        self.work.append(envelope)
        return self.engage()

    def oldest(self) -> Envelope:
        dropped = next(envelope for envelope in self.work if type(envelope) in PLAIN)
        self.work.remove(dropped)
        return dropped

    def dismiss(self) -> None:
        for waiter in self.line:
            waiter.expected = [False]
        self.line = []

    def admit_first_in_line(self, taken: Envelope) -> None:
        if type(taken) in PLAIN and self.line:
            waiter = self.line.pop(0)
            waiter.expected = [True]
            self.append(waiter.ticket.envelope)

    def end(self, state: str) -> None:
        """Move downwards only, and dismiss the line."""
        order = ["open", "sealed", "closed", "dead"]
        if order.index(state) > order.index(self.state):
            self.state = state
        self.dismiss()

    def attempt(self, call):
        try:
            return call()
        except (Full, MailboxClosed) as refusal:
            return type(refusal)

    # --- putting ---

    @rule()
    def put(self) -> None:
        envelope = self.fresh()
        answer = self.attempt(lambda: self.mailbox.put(envelope))
        if self.state != "open":
            assert answer is MailboxClosed
        elif not self.is_full():
            assert answer is self.append(envelope)
        elif self.overflow == "drop_oldest":
            assert same(answer, self.oldest())
            self.append(envelope)
        else:
            assert answer is Full

    @rule()
    def put_bare(self) -> None:
        """As a `tell` does it: into the lane, if there is one.

        What comes out is an envelope around the very message.
        """
        message = object()
        self.number += 1
        lane = self.mailbox.lane
        assert (lane is not None) <= (
            self.state == "open" and self.engaged and self.capacity is None
        ), "only then is an append enough"
        if lane is not None:
            lane.append(message)
            answer: object = Admission.QUEUED
        else:
            answer = self.attempt(lambda: self.mailbox.put_bare(message))
        if self.state != "open":
            assert answer is MailboxClosed
        elif not self.is_full():
            assert answer is self.append(Bare(message))
        elif self.overflow == "drop_oldest":
            assert same(answer, self.oldest())
            self.append(Bare(message))
        else:
            assert answer is Full

    @rule()
    def put_late(self) -> None:
        """A thread has found a lane and is slow to append: that has ended meanwhile, and may be
        another one's or not the mailbox's any more.
        """
        if self.capacity is not None:
            return
        message, stale = (
            object(),
            self.mailbox._work
            if self.mailbox.lane is None and self.mailbox._work is not None
            else deque(),
        )
        stale.append(message)
        answer = self.mailbox.settle(stale)
        self.number += 1
        if stale is self.mailbox._work:
            self.work.append(Bare(message))
            assert answer is self.engage()
        elif self.state == "open":
            assert answer is self.append(Bare(message))
        else:
            assert answer == [Bare(message)]

    @rule()
    def put_notice(self) -> None:
        envelope = self.fresh(Notice)
        answer = self.attempt(lambda: self.mailbox.put(envelope))
        assert answer is (self.append(envelope) if self.state == "open" else MailboxClosed)

    @rule()
    def put_or_wait(self) -> None:
        waiter = SimpleNamespace(heard=[], expected=[])
        waiter.ticket = QueueTicket(
            self.fresh(), lambda: waiter.heard.append(waiter.ticket.admitted)
        )
        self.tickets.append(waiter)
        answer = self.attempt(lambda: self.mailbox.put_or_wait(waiter.ticket))
        if self.state != "open":
            assert answer is MailboxClosed
        elif not self.is_full():
            assert answer is self.append(waiter.ticket.envelope)
        elif self.overflow == "drop_oldest":
            assert same(answer, self.oldest())
            self.append(waiter.ticket.envelope)
        else:
            assert answer is None
            self.line.append(waiter)

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from(self.line or self.tickets))
        assert self.mailbox.give_up(waiter.ticket) is (waiter in self.line)
        if waiter in self.line:
            self.line.remove(waiter)

    @rule()
    def put_control(self) -> None:
        self.put_into_control(seal=False)

    @may_end
    @rule()
    def put_control_and_seal(self) -> None:
        self.put_into_control(seal=True)

    def put_into_control(self, *, seal: bool) -> None:
        envelope = self.fresh(Notice)
        answer = self.attempt(lambda: self.mailbox.put_control(envelope, seal=seal))
        if self.state == "dead":
            assert answer is MailboxClosed
            return
        if seal:
            self.end("sealed")
        self.control.append(envelope)
        assert answer is (Admission.ATTEND if self.away else self.engage())

    @may_end
    @rule()
    def put_last(self) -> None:
        envelope = self.fresh(Notice)
        answer = self.attempt(lambda: self.mailbox.put_last(envelope))
        if self.state == "open":
            assert answer is self.append(envelope)
            self.end("sealed")
        else:
            assert answer is MailboxClosed

    @may_end
    @rule()
    def seal(self) -> None:
        self.mailbox.seal()
        self.end("sealed")

    # --- taking ---

    def expect_next(self) -> Envelope | None:
        if self.control:
            return self.control.pop(0)
        if not self.work:
            self.engaged = False
            return None
        envelope = self.work.pop(0)
        self.admit_first_in_line(envelope)
        return envelope

    @rule()
    def take(self) -> None:
        assert same(self.mailbox.take(), self.expect_next())

    @rule()
    def wait_take(self) -> None:
        taken = self.mailbox.wait_take(timeout=0)
        if self.control or self.work:
            self.engaged = True
        assert same(taken, self.expect_next())

    @rule()
    def take_control(self) -> None:
        assert self.mailbox.take_control() is (self.control.pop(0) if self.control else None)

    @rule()
    def leave(self) -> None:
        assert self.mailbox.leave() is bool(self.control)
        self.away = True

    @rule()
    def come_back(self) -> None:
        self.away = False
        self.engaged = bool(self.work or self.control)
        assert self.mailbox.come_back() is self.engaged

    # --- closing ---

    @may_end
    @rule()
    def close_work(self) -> None:
        left, self.work = self.work, []
        self.end("closed")
        assert self.mailbox.close_work() == left

    @may_end
    @rule()
    def close(self) -> None:
        left, self.control, self.work = self.control + self.work, [], []
        self.end("dead")
        assert self.mailbox.close() == left

    # --- always ---

    @invariant()
    def same_from_outside(self) -> None:
        assert len(self.mailbox) == len(self.work) + len(self.control)
        assert self.mailbox.empty() is (not self.work and not self.control)
        assert self.mailbox.is_open is (self.state == "open")
        assert self.mailbox.is_idle is (self.state == "open" and not self.engaged)
        assert self.mailbox.capacity == self.capacity

    @invariant()
    def within_its_bound(self) -> None:
        assert self.capacity is None or self.plain() <= self.capacity

    @invariant()
    def everybody_is_told_once_and_rightly(self) -> None:
        assert all(waiter.heard == waiter.expected for waiter in self.tickets)
        assert not self.line or self.is_full(), "somebody waits for room only while there is none"

    def teardown(self) -> None:
        """What is left is what the model has: nothing was lost or doubled on the way."""
        assert self.mailbox.close() == self.control + self.work


MailboxMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestMailboxMachine = MailboxMachine.TestCase
