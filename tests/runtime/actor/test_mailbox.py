"""The mailbox by itself, in one thread: lanes, bounds, lines, closing, and what the one who puts is
told. Threads and random orders: the other two files.
"""

import threading

import pytest

from offbook.runtime import MailboxSettings, UsageError
from offbook.runtime.actor.envelope import Envelope, Notice, QueueTicket
from offbook.runtime.actor.mailbox import Admission, Full, Mailbox


def bounded(capacity: int, overflow: str = "reject") -> Mailbox:
    return Mailbox(MailboxSettings(capacity, overflow))


def filled(mailbox: Mailbox, *messages: object) -> Mailbox:
    for message in messages:
        mailbox.put(Envelope(message))
    return mailbox


def messages(mailbox: Mailbox) -> list[object]:
    taken = []
    while (envelope := mailbox.take()) is not None:
        taken.append(envelope.message)
    return taken


class Waiter:
    """Somebody in the line, who notes how often he was notified and whether he was in then."""

    def __init__(self, mailbox: Mailbox, message: object) -> None:
        self.notified: list[bool] = []
        self.ticket = QueueTicket(
            Envelope(message), lambda: self.notified.append(self.ticket.admitted)
        )
        self.answer = mailbox.put_or_wait(self.ticket)


# --- settings ---


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_that_takes_nothing_is_a_usage_error(capacity):
    with pytest.raises(UsageError, match=f"capacity must be 1 or more.*got {capacity}"):
        MailboxSettings(capacity)


def test_an_unknown_overflow_is_a_usage_error_that_names_the_known_ones():
    with pytest.raises(UsageError, match=r"'reject', 'drop_oldest' or 'block'"):
        MailboxSettings(1, "throw_away")


def test_settings_without_a_capacity_make_an_unbounded_mailbox():
    mailbox = Mailbox(MailboxSettings())
    filled(mailbox, *range(5_000))
    assert mailbox.capacity is None
    assert not mailbox.blocks
    assert len(mailbox) == 5_000


# --- lanes ---


def test_each_lane_is_first_in_first_out_and_control_comes_first():
    mailbox = filled(Mailbox(), "w1", "w2")
    mailbox.put_control(Notice("c1"))
    mailbox.put(Envelope("w3"))
    mailbox.put_control(Notice("c2"))
    assert len(mailbox) == 5
    assert messages(mailbox) == ["c1", "c2", "w1", "w2", "w3"]
    assert mailbox.empty()


def test_take_control_leaves_the_work_lane_alone():
    mailbox = filled(Mailbox(), "w")
    assert mailbox.take_control() is None
    mailbox.put_control(Notice("c"))
    assert mailbox.take_control().message == "c"
    assert mailbox.take_control() is None
    assert messages(mailbox) == ["w"]


def test_a_notice_keeps_its_place_between_the_messages_of_the_work_lane():
    mailbox = Mailbox()
    mailbox.put(Envelope("w1"))
    mailbox.put(Notice("n"))
    mailbox.put(Envelope("w2"))
    assert messages(mailbox) == ["w1", "n", "w2"]


# --- who has to be woken ---


def test_the_first_put_wakes_and_the_next_ones_do_not_until_a_taker_has_found_nothing():
    mailbox = Mailbox()
    assert mailbox.put(Envelope(1)) is Admission.WAKE
    assert mailbox.put(Envelope(2)) is Admission.QUEUED
    assert mailbox.put_control(Notice(3)) is Admission.QUEUED
    assert [mailbox.take().message for _ in range(3)] == [3, 1, 2]
    assert mailbox.put(Envelope(4)) is Admission.QUEUED, "the taker has not found it empty yet"
    assert messages(mailbox) == [4]
    assert mailbox.put_control(Notice(5)) is Admission.WAKE


def test_an_engaged_mailbox_wakes_nobody_until_its_owner_has_come_and_found_nothing():
    mailbox = Mailbox(engaged=True)
    assert not mailbox.is_idle
    assert mailbox.put(Envelope(1)) is Admission.QUEUED
    assert mailbox.come_back(), "something is there already: the owner has to take it"
    assert mailbox.put(Envelope(2)) is Admission.QUEUED
    assert [mailbox.take().message for _ in range(2)] == [1, 2]
    assert not mailbox.come_back()
    assert mailbox.is_idle
    assert mailbox.put(Envelope(3)) is Admission.WAKE
    assert not mailbox.is_idle


def test_control_for_an_owner_that_is_away_says_attend_and_work_says_queued():
    mailbox = filled(Mailbox(), "first")
    mailbox.take()
    assert not mailbox.leave()
    assert mailbox.put(Envelope("work")) is Admission.QUEUED
    assert mailbox.put_control(Notice("c1")) is Admission.ATTEND
    assert mailbox.put_control(Notice("c2")) is Admission.ATTEND
    assert mailbox.take_control().message == "c1"
    assert mailbox.come_back()
    assert mailbox.put_control(Notice("c3")) is Admission.QUEUED
    assert messages(mailbox) == ["c2", "c3", "work"]


def test_leaving_tells_that_control_waits_already():
    mailbox = Mailbox(engaged=True)
    mailbox.put_control(Notice("c"))
    assert mailbox.leave()
    mailbox.take_control()
    assert not mailbox.leave()


# --- bounds ---


@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_a_full_mailbox_refuses_a_put_that_does_not_wait(overflow):
    mailbox = filled(bounded(2, overflow), 1, 2)
    with pytest.raises(Full):
        mailbox.put(Envelope(3))
    mailbox.take()
    assert mailbox.put(Envelope(4)) is Admission.QUEUED
    assert messages(mailbox) == [2, 4]


def test_drop_oldest_returns_the_plain_envelope_that_has_waited_longest():
    mailbox = bounded(2, "drop_oldest")
    mailbox.put(Notice("n"))
    filled(mailbox, 1, 2)
    first, second = mailbox.put(Envelope(3)), mailbox.put(Envelope(4))
    assert (first.message, second.message) == (1, 2)
    assert messages(mailbox) == ["n", 3, 4]


def test_control_and_notices_are_exempt_from_the_bound_and_take_no_room():
    mailbox = filled(bounded(1), "w")
    mailbox.put(Notice("n1"))
    mailbox.put_control(Notice("c"))
    with pytest.raises(Full):
        mailbox.put(Envelope("too many"))
    assert [mailbox.take().message for _ in range(2)] == ["c", "w"]
    mailbox.put(Envelope("fits"))
    with pytest.raises(Full):
        mailbox.put(Envelope("too many"))
    assert messages(mailbox) == ["n1", "fits"]
    mailbox.put(Envelope("fits again"))


# --- the line ---


@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_whoever_waits_gets_the_next_room_in_the_order_of_the_line(overflow):
    mailbox = filled(bounded(1, overflow), 0)
    waiters = [Waiter(mailbox, number) for number in (1, 2, 3)]
    assert [waiter.answer for waiter in waiters] == [None, None, None]
    for number, waiter in enumerate(waiters):
        assert waiter.notified == []
        assert mailbox.take().message == number
        assert waiter.notified == [True]
        with pytest.raises(Full):  # the room was handed over: nobody comes between
            mailbox.put(Envelope("late"))
    assert messages(mailbox) == [3]


@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_nobody_waits_while_there_is_room(overflow):
    mailbox = bounded(2, overflow)
    assert Waiter(mailbox, 1).answer is Admission.WAKE
    assert Waiter(mailbox, 2).answer is Admission.QUEUED
    assert Waiter(mailbox, 3).answer is None


def test_nobody_waits_in_a_mailbox_that_drops():
    mailbox = filled(bounded(1, "drop_oldest"), 1)
    assert Waiter(mailbox, 2).answer.message == 1
    assert messages(mailbox) == [2]


def test_nobody_waits_in_an_unbounded_mailbox():
    mailbox = Mailbox()
    assert Waiter(mailbox, 1).answer is Admission.WAKE
    assert not mailbox.give_up(QueueTicket(Envelope(2), lambda: None))


def test_who_gives_up_is_out_of_the_line_and_never_notified():
    mailbox = filled(bounded(1, "block"), 0)
    first, second = Waiter(mailbox, 1), Waiter(mailbox, 2)
    assert mailbox.give_up(first.ticket)
    assert not mailbox.give_up(first.ticket)
    assert mailbox.take().message == 0
    assert (first.notified, second.notified) == ([], [True])
    assert not mailbox.give_up(second.ticket), "too late: it is in"
    assert messages(mailbox) == [2]


def test_taking_a_notice_makes_no_room_for_anybody():
    mailbox = bounded(1, "block")
    mailbox.put(Notice("n"))
    mailbox.put(Envelope(0))
    waiter = Waiter(mailbox, 1)
    assert mailbox.take().message == "n"
    assert waiter.notified == []
    assert mailbox.take().message == 0
    assert waiter.notified == [True]


def test_a_notification_may_use_the_mailbox_from_another_thread():
    """It is called without the lock: what it waits for may need the lock itself."""
    mailbox = filled(bounded(1, "block"), 0)
    lengths: list[int] = []

    def look() -> None:
        other = threading.Thread(
            daemon=True,
            target=lambda: lengths.append(len(mailbox)) or mailbox.put_control(Notice("c")),
        )
        other.start()
        other.join(10)

    mailbox.put_or_wait(QueueTicket(Envelope(1), look))
    mailbox.take()
    assert lengths == [1]
    assert messages(mailbox) == ["c", 1]
