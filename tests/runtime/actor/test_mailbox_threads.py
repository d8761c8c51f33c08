"""The mailbox among threads: producers put, wait and give up, a consumer takes, a closer closes.

Nothing is lost, doubled, late, or out of order.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from offbook.runtime import MailboxSettings
from offbook.runtime.actor.envelope import Envelope, Notice, QueueTicket
from offbook.runtime.actor.mailbox import Admission, Full, Mailbox, MailboxClosed

WATCHDOG = 20.0
ROUNDS = 25
PRODUCERS = 4
PUTS = 60


@pytest.fixture(autouse=True)
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Control(Notice):
    """To be told from the notices of the work lane."""

    __slots__ = ()


KINDS = {
    "put": Envelope,
    "bare": Envelope,
    "wait": Envelope,
    "impatient": Envelope,
    "notice": Notice,
    "control": Control,
}


class Round:
    """One mailbox, its threads, and what they saw."""

    def __init__(self, settings: MailboxSettings | None, seed: int) -> None:
        self.mailbox = Mailbox(settings)
        self.capacity = settings.capacity if settings else None
        self.seed = seed
        # What the `WAKE`s of all puts say to the consumer that does not block; False: the end.
        self.wakes: SimpleQueue[bool] = SimpleQueue()
        self.enough = threading.Event()  # set when so much has been put that the closer may close
        # Set when nothing may be admitted to the work lane any more.
        self.work_ended = threading.Event()
        self.all_ended = threading.Event()
        self.admitted: list[Envelope] = []  # `list.append` is atomic
        self.dropped: list[Envelope] = []
        self.taken: list[Envelope] = []
        self.left: list[Envelope] = []
        self.problems: list[BaseException | str] = []

    def fail(self, text: str) -> None:
        self.problems.append(f"seed {self.seed}: {text}")

    def thread(self, function: Callable[..., None], *args: object) -> threading.Thread:
        def run() -> None:
            try:
                function(*args)
            except BaseException as error:
                self.problems.append(error)

        thread = threading.Thread(daemon=True, target=run)
        thread.start()
        return thread

    # --- producers ---

    def produce(self, sender: int) -> None:
        chance = random.Random(f"{self.seed}-{sender}")
        for number in range(PUTS):
            if number == PUTS // 2:
                self.enough.set()
            kind = chance.choice(list(KINDS))
            envelope = KINDS[kind]((sender, number))
            ended = self.all_ended if kind == "control" else self.work_ended
            ended_before = ended.is_set()
            try:
                went_in = self.put(kind, envelope, chance)
            except MailboxClosed:
                went_in = False
            if went_in:
                self.admitted.append(envelope)
                if ended_before:
                    self.fail(f"{kind} {envelope} was admitted after the close")
            self.check_bound()

    def put(self, kind: str, envelope: Envelope, chance: random.Random) -> bool:
        if kind == "control":
            self.heed(self.mailbox.put_control(envelope))
            return True
        if kind in ("put", "notice", "bare"):
            try:
                self.heed(
                    self.tell(envelope.message) if kind == "bare" else self.mailbox.put(envelope)
                )
            except Full:
                return False
            return True
        told: list[bool] = []
        event = threading.Event()
        ticket = QueueTicket(envelope, lambda: (told.append(ticket.admitted), event.set()))
        answer = self.mailbox.put_or_wait(ticket)
        if answer is not None:
            self.heed(answer)
            return True
        if (
            kind == "impatient"
            and not event.wait(chance.choice([0, 0, 1e-6, 1e-4]))
            and self.mailbox.give_up(ticket)
        ):
            if told:
                self.fail(f"{envelope} gave up in time, and was notified")
            return False
        if not event.wait(WATCHDOG):
            self.fail(f"{envelope} was never notified")
        if len(told) != 1 or told[0] is not ticket.admitted:
            self.fail(f"{envelope} was told {told}, and is admitted={ticket.admitted}")
        return ticket.admitted

    def tell(self, message: object) -> Admission | Envelope | list[Envelope]:
        """As `ActorRef.tell` does it."""
        lane = self.mailbox.lane
        if lane is None:
            return self.mailbox.put_bare(message)
        lane.append(message)
        return Admission.QUEUED if self.mailbox.lane is lane else self.mailbox.settle(lane)

    def heed(self, answer: Admission | Envelope | list[Envelope]) -> None:
        if answer is Admission.WAKE:
            self.wakes.put(True)
        elif isinstance(answer, Envelope):
            self.dropped.append(answer)
        elif isinstance(answer, list):
            self.left += answer

    def check_bound(self) -> None:
        if self.capacity is None:
            return
        with self.mailbox._lock:
            plain = sum(type(envelope) is Envelope for envelope in self.mailbox._work or ())
        if plain > self.capacity:
            self.fail(f"{plain} plain envelopes in a mailbox for {self.capacity}")

    # --- the consumer, of either kind ---

    def consume_blocking(self) -> None:
        while (envelope := self.mailbox.wait_take()) is not None:
            self.taken.append(envelope)

    def consume_when_woken(self) -> None:
        while self.wakes.get():
            while (envelope := self.mailbox.take()) is not None:
                self.taken.append(envelope)
                if not self.wakes.empty() and not self.all_ended.is_set():
                    self.fail("somebody was told to wake a consumer that is at it")

    # --- the closer ---

    def close(self, way: str) -> None:
        self.enough.wait(WATCHDOG)
        if way == "seal":
            self.mailbox.seal()
        elif way == "put_last":
            last = Notice(("closer", 0))
            self.heed(self.mailbox.put_last(last))
            self.admitted.append(last)
        elif way == "put_control":
            stop = Control(("closer", 0))
            self.heed(self.mailbox.put_control(stop, seal=True))
            self.admitted.append(stop)
        elif way == "close":
            self.left += self.mailbox.close()
            self.all_ended.set()
        else:
            self.left += self.mailbox.close_work()
        self.work_ended.set()


def in_order(envelopes: list[Envelope]) -> bool:
    last: dict[object, int] = {}
    for envelope in envelopes:
        sender, number = envelope.message
        if number <= last.get(sender, -1):
            return False
        last[sender] = number
    return True


def play(settings: MailboxSettings | None, consumer: str, way: str, seed: int) -> Round:
    played = Round(settings, seed)
    consuming = played.thread(
        played.consume_blocking if consumer == "blocks" else played.consume_when_woken
    )
    others = [played.thread(played.produce, sender) for sender in range(PRODUCERS)]
    others.append(played.thread(played.close, way))
    for thread in others:
        thread.join(WATCHDOG)
    played.all_ended.set()
    finished = played.mailbox.close()
    played.wakes.put(False)
    consuming.join(WATCHDOG)
    assert not any(thread.is_alive() for thread in [consuming, *others]), (
        f"seed {seed}: a thread hangs"
    )
    played.left += finished
    return played


@pytest.mark.slow
@pytest.mark.parametrize("way", ["close_work", "close", "seal", "put_last", "put_control"])
@pytest.mark.parametrize("consumer", ["blocks", "is woken"])
@pytest.mark.parametrize(
    "settings",
    [None, *(MailboxSettings(2, overflow) for overflow in ("reject", "drop_oldest", "block"))],
    ids=str,
)
def test_every_envelope_put_is_taken_or_returned_exactly_once(settings, consumer, way):
    for seed in range(ROUNDS):
        played = play(settings, consumer, way, seed)
        assert played.problems == []
        ended = [envelope.message for envelope in (*played.taken, *played.dropped, *played.left)]
        assert len(ended) == len(set(ended)), f"seed {seed}: a message came twice"
        assert set(ended) == {envelope.message for envelope in played.admitted}, (
            f"seed {seed}: what went in is not what came out"
        )
        lanes = [
            [
                envelope
                for envelope in [*played.taken, *played.left]
                if (type(envelope) is Control) is control
            ]
            for control in (True, False)
        ]
        assert all(in_order(lane) for lane in lanes), (
            f"seed {seed}: a sender was overtaken by itself"
        )
