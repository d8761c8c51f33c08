"""A model of the batches between a store's thread and its server: whatever is lost, late, locked or
refused, nothing is written twice, and what is told is true.
"""

import asyncio
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.runtime import StoreError
from offbook.runtime.stores import store_thread
from offbook.runtime.stores.store_thread import Operation, SteppedOperation, Worker
from offbook.runtime.stores.troubles import Trouble


class Lost(Exception):
    """The connection."""


class Own(Exception):
    """One operation's own error, or a lock that could not be had in time."""


class Refused(Exception):
    """For all of them."""


class Server:
    """A backend and its server: it remembers the last number and what it answered, as the real ones
    do.
    """

    patience = 0.02

    def __init__(self, attempts):
        self.attempts = list(attempts)
        self.written = []
        self.answered = (0, [])
        self.pending = None  # a transaction whose client has gone, and which has not ended yet
        self.batches = []

    def perform(self, batch, number):
        names = [operation.name for operation in batch]
        self.batches.append(names)
        how = self.attempts.pop(0) if self.attempts else "well"
        if how == "lost before":
            raise Lost
        if how == "late":
            if self.pending is None:
                self.pending = (
                    [operation.key for operation in batch if operation.name == "append"],
                    number,
                )
            raise Lost
        if how == "locked":
            raise Own
        if how == "refused":
            raise Refused
        self.end_pending()
        if self.answered[0] < number:
            if any(operation.name == "bad" for operation in batch):
                raise Own
            self.write([operation.key for operation in batch if operation.name == "append"], number)
        assert self.answered[0] == number, "a number that is over came again"
        for operation in batch:
            operation.result = operation.key
            operation_is_done(operation)
        if how == "lost after":
            raise Lost

    def end_pending(self):
        if self.pending is not None:
            (keys, number), self.pending = self.pending, None
            if self.answered[0] < number:
                self.write(keys, number)

    def write(self, keys, number):
        self.written += keys
        self.answered = (number, keys)

    def judge(self, error):
        return {Lost: Trouble.WAITED_FOR, Own: Trouble.OPERATION}.get(type(error), Trouble.REFUSED)

    def explain(self, error, operation):
        return StoreError(
            f"{operation.name}: "
            f"{type(error).__name__}{' (it may have been done)' if type(error) is Lost else ''}."
        )

    def close(self):
        pass


def operation_is_done(operation):
    if isinstance(operation, SteppedOperation):
        operation.is_done = True


def kind_of(name):
    return SteppedOperation if name == "prune" else Operation


KINDS = st.sampled_from(
    ["append", "append", "append", "bad", "keys", "orphans", "prune", "keep_alive", "get"]
)
ATTEMPTS = st.lists(
    st.sampled_from(["well", "lost before", "lost after", "late", "locked", "refused"]), max_size=12
)


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(store_thread, "_FIRST_DELAY", 0.0)
    monkeypatch.setattr(store_thread, "_LONGEST_DELAY", 0.0)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cycles=st.lists(st.lists(KINDS, min_size=1, max_size=6), min_size=1, max_size=4),
    attempts=ATTEMPTS,
)
def test_nothing_is_written_twice_and_what_is_told_is_true(at_once, cycles, attempts):
    server = Server(attempts)
    worker = Worker("Model", server)

    async def main():
        told = {}
        for number, cycle in enumerate(cycles):
            operations = [
                kind_of(name)(name, b"%d.%d" % (number, place)) for place, name in enumerate(cycle)
            ]
            answers = await asyncio.gather(*map(worker.do, operations), return_exceptions=True)
            told |= {
                operation.key: answer
                for operation, answer in zip(operations, answers, strict=True)
                if operation.name == "append"
            }
        await worker.aclose()
        return told

    told = asyncio.run(main())
    in_time = set(server.written)
    server.end_pending()
    assert len(server.written) == len(set(server.written))
    for key, answer in told.items():
        if isinstance(answer, bytes):
            assert key in in_time
        elif "may have been done" not in str(answer):
            assert key not in server.written
    for names in server.batches:
        assert len(names) == 1 or not {"keys", "orphans", "prune"} & set(names)


class Steps(Server):
    """A prune takes three steps; each waits until it is told to end."""

    def __init__(self):
        super().__init__(())
        self.begun, self.go = threading.Semaphore(0), threading.Semaphore(0)

    def perform(self, batch, number):
        super().perform(batch, number)
        self.begun.release()
        assert self.go.acquire(timeout=20)
        for operation in batch:
            if operation.name == "prune":
                operation.progress = operation.result = (operation.progress or 0) + 1
                operation.is_done = operation.progress == 3


def test_owners_are_prolonged_and_others_are_answered_between_two_steps_of_a_prune(run):
    server = Steps()
    worker = Worker("Model", server)

    async def main():
        prune = asyncio.create_task(worker.do(SteppedOperation("prune")))
        await asyncio.to_thread(server.begun.acquire)
        others = [
            asyncio.create_task(worker.do(Operation(*call, size=size)))
            for *call, size in (("append", b"large", 2 << 20), ("keep_alive", b"me", 0))
        ]
        await asyncio.sleep(0)
        server.go.release(20)
        assert await asyncio.gather(prune, *others) == [3, b"large", b"me"]
        assert server.batches == [["prune"], ["keep_alive"], ["prune"], ["append"], ["prune"]]
        await worker.aclose()

    run(main())


def test_closing_ends_a_prune_behind_its_present_step(run):
    server = Steps()
    worker = Worker("Model", server)

    async def main():
        prune = asyncio.create_task(worker.do(SteppedOperation("prune")))
        await asyncio.to_thread(server.begun.acquire)
        closing = asyncio.create_task(worker.aclose())
        await asyncio.sleep(0)
        server.go.release(20)
        assert await prune == 1
        await closing
        assert server.batches == [["prune"]]

    run(main())
