"""The end of a mailbox: sealed, closed, dead, and what becomes of whoever is in it or in the line.

And the taker that blocks a thread.
"""

import threading
from collections import deque
from collections.abc import Callable
from functools import partial

import pytest

from offbook.runtime import MailboxSettings
from offbook.runtime.actor.envelope import Envelope, Notice, QueueTicket
from offbook.runtime.actor.mailbox import Admission, Mailbox, MailboxClosed

WATCHDOG = 10.0


def holding(*messages: object, settings: MailboxSettings | None = None) -> Mailbox:
    mailbox = Mailbox(settings)
    for message in messages:
        mailbox.put(Envelope(message))
    return mailbox


def messages_of(envelopes: list[Envelope]) -> list[object]:
    return [envelope.message for envelope in envelopes]


# What ends the taking of work, each with what it leaves of ["w1", "w2"] for a taker.
ENDINGS: dict[str, tuple[Callable[[Mailbox], object], list[object]]] = {
    "seal": (lambda mailbox: mailbox.seal(), ["w1", "w2"]),
    "put_control with seal": (
        lambda mailbox: mailbox.put_control(Notice("c"), seal=True),
        ["c", "w1", "w2"],
    ),
    "put_last": (lambda mailbox: mailbox.put_last(Notice("last")), ["w1", "w2", "last"]),
    "close_work": (lambda mailbox: mailbox.close_work(), []),
    "close": (lambda mailbox: mailbox.close(), []),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_after_the_end_nothing_is_admitted_to_the_work_lane(ending):
    end, left = ENDINGS[ending]
    mailbox = holding("w1", "w2")
    assert mailbox.is_open
    end(mailbox)
    assert not mailbox.is_open
    for put in (
        lambda: mailbox.put(Envelope("late")),
        lambda: mailbox.put(Notice("late")),
        lambda: mailbox.put_or_wait(QueueTicket(Envelope("late"), lambda: None)),
        lambda: mailbox.put_last(Notice("late")),
    ):
        with pytest.raises(MailboxClosed):
            put()
    taken = []
    while (envelope := mailbox.take()) is not None:
        taken.append(envelope.message)
    assert taken == left


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_end_dismisses_everybody_in_the_line_once(ending):
    mailbox = holding("w1", "w2", settings=MailboxSettings(2, "block"))
    heard: list[tuple[int, bool]] = []

    def stand(number: int) -> QueueTicket:
        ticket = QueueTicket(Envelope(number), lambda: heard.append((number, ticket.admitted)))
        mailbox.put_or_wait(ticket)
        return ticket

    tickets = [stand(number) for number in range(3)]
    ENDINGS[ending][0](mailbox)
    assert heard == [(0, False), (1, False), (2, False)]
    while mailbox.take() is not None:
        pass
    mailbox.close()
    assert len(heard) == 3
    assert not any(mailbox.give_up(ticket) for ticket in tickets)


@pytest.mark.parametrize("ending", [name for name in ENDINGS if name != "close"])
def test_control_is_taken_until_the_mailbox_is_dead(ending):
    mailbox = holding("w1", "w2")
    ENDINGS[ending][0](mailbox)
    mailbox.put_control(Notice("c2"))
    assert "c2" in messages_of(mailbox.close())
    with pytest.raises(MailboxClosed):
        mailbox.put_control(Notice("c3"))


def test_close_work_returns_the_work_once_and_leaves_control():
    mailbox = holding("w1", "w2")
    mailbox.put_control(Notice("c"))
    assert messages_of(mailbox.close_work()) == ["w1", "w2"]
    assert mailbox.close_work() == []
    assert len(mailbox) == 1
    assert mailbox.take().message == "c"


def test_close_returns_everything_once_control_first():
    mailbox = holding("w1", "w2")
    mailbox.put_control(Notice("c1"))
    mailbox.put_control(Notice("c2"))
    assert messages_of(mailbox.close()) == ["c1", "c2", "w1", "w2"]
    assert mailbox.close() == []
    assert len(mailbox) == 0


def test_closing_a_sealed_mailbox_returns_what_was_not_taken():
    mailbox = holding("w1", "w2")
    mailbox.put_last(Notice("last"))
    mailbox.take()
    mailbox.seal()  # it is already
    assert messages_of(mailbox.close_work()) == ["w2", "last"]


def test_a_second_end_never_reopens():
    mailbox = holding("w")
    mailbox.close()
    mailbox.seal()
    mailbox.close_work()
    with pytest.raises(MailboxClosed):
        mailbox.put_control(Notice("c"), seal=True)
    assert repr(mailbox) == "<Mailbox dead, 0 waiting>"


def test_put_last_wakes_an_idle_owner_and_exceeds_the_bound():
    idle = Mailbox()
    assert idle.put_last(Notice("last")) is Admission.WAKE
    full = holding("w", settings=MailboxSettings(1))
    assert full.put_last(Notice("last")) is Admission.QUEUED
    assert len(full) == 2


# --- the taker that blocks ---


def in_thread(function: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    results: list[object] = []
    thread = threading.Thread(daemon=True, target=lambda: results.append(function()))
    thread.start()
    return thread, results


def until_it_waits(mailbox: Mailbox) -> None:
    """Until the thread is in `wait_take`: it waits on the condition, which it must have entered
    with the lock.
    """
    deadline = threading.Event()
    for _ in range(10_000):
        with mailbox._lock:
            if mailbox._taker is not None and mailbox._taker._waiters:
                return
        deadline.wait(0.001)
    pytest.fail("the taker never came to wait")


@pytest.mark.parametrize(
    ("put", "message"),
    [
        (lambda mailbox: mailbox.put(Envelope("w")), "w"),
        (lambda mailbox: mailbox.put(Notice("n")), "n"),
        (lambda mailbox: mailbox.put_control(Notice("c")), "c"),
        (lambda mailbox: mailbox.put_last(Notice("last")), "last"),
    ],
)
def test_whatever_is_put_wakes_the_blocked_taker(put, message):
    mailbox = Mailbox()
    thread, results = in_thread(mailbox.wait_take)
    until_it_waits(mailbox)
    assert put(mailbox) is Admission.WAKE
    thread.join(WATCHDOG)
    assert [envelope.message for envelope in results] == [message]


def test_a_sealed_mailbox_keeps_the_taker_waiting_for_control():
    mailbox = Mailbox()
    thread, results = in_thread(mailbox.wait_take)
    until_it_waits(mailbox)
    mailbox.seal()
    mailbox.put_control(Notice("c"))
    thread.join(WATCHDOG)
    assert [envelope.message for envelope in results] == ["c"]


@pytest.mark.parametrize("close", [Mailbox.close_work, Mailbox.close])
def test_closing_ends_the_waiting_of_the_blocked_taker(close):
    mailbox = Mailbox()
    thread, results = in_thread(mailbox.wait_take)
    until_it_waits(mailbox)
    assert close(mailbox) == []
    thread.join(WATCHDOG)
    assert results == [None]
    assert mailbox.wait_take() is None, "and nobody waits there any more"


def test_waiting_to_take_ends_with_the_time():
    mailbox = Mailbox()
    assert mailbox.wait_take(timeout=0.001) is None
    mailbox.put(Envelope("w"))
    assert mailbox.wait_take(timeout=0).message == "w"


def test_get_is_pykkas_blocking_take_and_raises_when_nothing_will_ever_come():
    mailbox = holding("w")
    assert mailbox.get().message == "w"
    assert mailbox.empty()
    mailbox.close()
    with pytest.raises(MailboxClosed):
        mailbox.get()


class Disturbed(deque):
    """A lane to which a sender appends, or from which the owner takes, in the moment in which its
    first envelope is looked at: neither waits for the lock.
    """

    def __init__(self, items=(), *, disturb=lambda lane: lane.append("late")):
        super().__init__(items)
        self.disturb = disturb

    def __iter__(self):
        for item in super().__iter__():
            yield item
            self.disturbed()

    def popleft(self):
        item = super().popleft()
        self.disturbed()
        return item

    def disturbed(self):
        disturb, self.disturb = self.disturb, lambda lane: None
        disturb(self)


def test_a_message_that_is_appended_while_the_lane_is_closed_is_returned_once(monkeypatch):
    monkeypatch.setattr("offbook.runtime.actor.mailbox.deque", Disturbed)
    mailbox = Mailbox()
    mailbox.put_bare("first")
    lane = mailbox.lane
    left = mailbox.close_work() + mailbox.settle(lane)
    assert [envelope.message for envelope in left] == ["first", "late"]


def test_what_the_owner_takes_while_the_lane_is_closed_is_not_returned_too(monkeypatch):
    taken = []
    monkeypatch.setattr(
        "offbook.runtime.actor.mailbox.deque",
        partial(Disturbed, disturb=lambda lane: taken.append(lane.popleft())),
    )
    mailbox = Mailbox()
    mailbox.put_bare("first")
    mailbox.put_bare("second")
    left = mailbox.close_work()
    assert [envelope.message for envelope in left] + taken == ["first", "second"]


def test_an_owner_whose_lane_is_emptied_while_it_takes_finds_nothing(monkeypatch):
    class Emptied(deque):
        def popleft(self):
            self.clear()  # as by who closes it
            return super().popleft()

    monkeypatch.setattr("offbook.runtime.actor.mailbox.deque", Emptied)
    mailbox = Mailbox()
    mailbox.put_bare("first")
    assert mailbox.take() is None
