"""A link between a client and a host: whatever is lost, late or sent twice on the way, each request
is taken once and in order, and each has its reply.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.runtime import CheckpointError
from offbook.runtime.cluster.link_order import Inbox, Outbox, Reply, read_replies


class Wire:
    """Both ends, and what is between them."""

    def __init__(self):
        self.outbox, self.inbox = Outbox(), Inbox()
        self.links = 0
        self.going, self.coming = [], []  # batches on their way
        self.taken, self.replied = [], {}
        self.open()

    def open(self):
        self.links += 1
        self.link = f"link {self.links}"
        self.coming.clear()
        self.inbox.open(self.link)
        self.outbox.reopen()

    def send(self, most):
        batch = self.outbox.take_batch(most)
        if batch is not None:
            self.going.append((self.link, *batch))

    def arrive(self, position):
        if self.going:
            for request in self.inbox.take(*self.going.pop(position % len(self.going))):
                self.taken.append(request.kind)
                self.inbox.answer(Reply(request.id, "ok", request.body))

    def answer(self, most):
        if self.inbox.has_replies:
            self.coming.append((self.link, self.inbox.take_replies(most, 7)))

    def hear(self):
        if self.coming:
            _link, batch = self.coming.pop(0)
            number, replies = read_replies(batch)
            assert number == 7
            for request, reply in self.outbox.receive(replies):
                assert request.kind not in self.replied
                self.replied[request.kind] = reply.body


STEPS = st.one_of(
    st.tuples(st.just("post"), st.integers(1, 5)),
    st.tuples(st.just("send"), st.integers(1, 4)),
    st.tuples(st.just("arrive"), st.integers(0, 9)),
    st.tuples(st.just("lose"), st.integers(0, 9)),
    st.tuples(st.just("twice"), st.integers(0, 9)),
    st.tuples(st.just("answer"), st.integers(1, 4)),
    st.tuples(st.just("hear"), st.just(0)),
    st.tuples(st.just("open"), st.just(0)),
)


@given(st.lists(STEPS, max_size=60))
@settings(max_examples=100, deadline=None)
def test_g14_each_request_is_taken_once_in_order_and_has_its_reply(steps):
    wire, posted = Wire(), 0
    for step, number in steps:
        if step == "post":
            for _ in range(number):
                wire.outbox.post(f"{posted}", {}, str(posted).encode())
                posted += 1
        elif step == "lose" and wire.going:
            wire.going.pop(number % len(wire.going))
        elif step == "twice" and wire.going:
            wire.going.append(wire.going[number % len(wire.going)])
        elif step in ("send", "arrive", "answer"):
            getattr(wire, step)(number)
        elif step in ("hear", "open"):
            getattr(wire, step)()
    wire.open()  # whatever was lost: a new link
    while wire.outbox.pending:
        wire.send(3)
        wire.arrive(0)
        wire.answer(3)
        wire.hear()
    assert wire.taken == [f"{number}" for number in range(posted)]
    assert wire.replied == {f"{number}": str(number).encode() for number in range(posted)}


def test_a_host_keeps_an_answer_until_the_client_says_that_it_has_it():
    wire = Wire()
    wire.outbox.post("a", {})
    wire.send(1)
    wire.arrive(0)
    wire.answer(1)
    assert list(wire.inbox.answers) == [1]
    wire.hear()
    wire.send(1)  # nothing but what it has received
    wire.arrive(0)
    assert wire.inbox.answers == {}


def test_a_batch_that_is_missing_is_a_gap_until_it_comes():
    wire = Wire()
    for kind in "ab":
        wire.outbox.post(kind, {})
        wire.send(1)
    wire.arrive(1)
    assert wire.taken == []
    assert wire.inbox.has_gap
    wire.arrive(0)
    assert wire.taken == ["a", "b"]
    assert not wire.inbox.has_gap


def test_a_link_on_which_too_much_waits_for_one_batch_cannot_go_on():
    inbox = Inbox()
    inbox.open("link")
    with pytest.raises(CheckpointError, match="wait for one that is missing"):
        for number in range(1, 2_000):
            inbox.take("link", number, b"")


@pytest.mark.parametrize("damage", [b"", b"no batch", b"\x93\x01\x00\x90"])
def test_a_damaged_batch_is_told(damage):
    with pytest.raises(CheckpointError):
        read_replies(damage)
    inbox = Inbox()
    inbox.open("link")
    with pytest.raises(CheckpointError):
        inbox.take("link", 0, damage)
