"""The thread in which a client blocks: what it takes at once, whom it answers, and what becomes of
a batch that fails.
"""

import asyncio
import threading

import pytest

from offbook.runtime import StoreError, UsageError
from offbook.runtime.stores.store_thread import Operation, Worker
from offbook.runtime.stores.troubles import Trouble


class Lost(Exception):
    """The connection."""


class Bad(Exception):
    """One of the operations."""


class Broken(Exception):
    """All of it."""


class Desk:
    """A backend that does batches one at a time, each when it is told to; what a batch does is
    written down.
    """

    patience = 5.0

    def __init__(self, *, held=False):
        self.done = []
        self.numbers = []
        self.trouble = []
        self.closed = 0
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0 if held else 10_000)

    def perform(self, batch, number):
        self.begun.release()
        assert self.go.acquire(timeout=20)
        self.numbers.append(number)
        if self.trouble:
            error = self.trouble.pop(0)
            if error is not None:
                raise error
        if any(operation.name == "bad" for operation in batch):
            raise Bad("no good")
        for operation in batch:
            operation.result = operation.key
        self.done.append([operation.key for operation in batch])

    def judge(self, error):
        return {Lost: Trouble.WAITED_FOR, Bad: Trouble.OPERATION}.get(type(error), Trouble.REFUSED)

    def explain(self, error, operation):
        return StoreError(f"{operation.name} {operation.key}: {error}")

    def close(self):
        self.closed += 1


@pytest.fixture
def worker_of():
    made = []

    def make(desk):
        made.append(Worker("Desk", desk))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


def ask(worker, key, name="set", size=0):
    return asyncio.create_task(worker.do(Operation(name, key, size=size)))


def test_what_waits_is_done_at_once_and_in_order(run, worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def main():
        first = ask(worker, b"first")
        await asyncio.to_thread(desk.begun.acquire)
        others = [ask(worker, b"%d" % number) for number in range(100)]
        await asyncio.sleep(0)
        desk.go.release(2)
        assert await asyncio.gather(first, *others) == [
            b"first",
            *(b"%d" % number for number in range(100)),
        ]
        assert desk.done == [[b"first"], [b"%d" % number for number in range(100)]]

    run(main())


def test_what_is_asked_in_one_cycle_of_a_loop_is_one_batch(run, worker_of):
    desk = Desk()
    worker = worker_of(desk)

    async def main():
        for _ in range(20):
            await asyncio.gather(
                *(worker.do(Operation("set", b"%d" % number)) for number in range(50))
            )
        assert desk.done == [[b"%d" % number for number in range(50)]] * 20

    run(main())


def test_closing_in_the_cycle_in_which_it_was_asked_comes_after_it(run, worker_of):
    desk = Desk()
    worker = worker_of(desk)

    async def main():
        asked = asyncio.create_task(worker.do(Operation("set", b"a")))
        # Behind the task's step, and before what that has put off.
        asyncio.get_running_loop().call_soon(worker.close)
        assert await asked == b"a"
        assert (desk.done, desk.closed) == ([[b"a"]], 1)

    run(main())


def test_what_a_loop_has_asked_in_its_last_cycle_holds_up_no_other(worker_of):
    desk = Desk()
    worker = worker_of(desk)
    left = worker.do(Operation("set", b"left"))

    async def leave():
        left.send(None)

    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    loop.run_until_complete(leave())
    loop.close()
    left.close()
    assert asyncio.run(worker.do(Operation("set", b"next"))) == b"next"
    assert desk.done == [[b"next"]]
    assert worker._asked == {}


def test_a_batch_is_not_larger_than_a_transaction_should_be(run, worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def main():
        first = ask(worker, b"first")
        await asyncio.to_thread(desk.begun.acquire)
        others = [ask(worker, b"%d" % number) for number in range(1500)] + [
            ask(worker, b"large", size=5 << 20) for _ in range(4)
        ]
        await asyncio.sleep(0)
        desk.go.release(100)
        await asyncio.gather(first, *others)
        assert [len(batch) for batch in desk.done] == [1, 1000, 502, 2]

    run(main())


def test_who_is_cancelled_before_it_began_has_taken_it_back(run, worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def main():
        first = ask(worker, b"first")
        await asyncio.to_thread(desk.begun.acquire)
        others = [ask(worker, b"%d" % number) for number in range(10)]
        await asyncio.sleep(0)
        first.cancel()
        for task in others[::2]:
            task.cancel()
        desk.go.release(10)
        ended = await asyncio.gather(first, *others, return_exceptions=True)
        assert [type(end) for end in ended] == [
            asyncio.CancelledError,
            *([asyncio.CancelledError, bytes] * 5),
        ]
        assert desk.done == [[b"first"], [b"1", b"3", b"5", b"7", b"9"]]

    run(main())


def test_a_lost_connection_lets_the_same_batch_come_again(run, worker_of):
    desk = Desk()
    desk.trouble = [Lost("once"), Lost("twice")]
    worker = worker_of(desk)

    async def main():
        assert await worker.do(Operation("set", b"a")) == b"a"
        assert await worker.do(Operation("set", b"b")) == b"b"
        assert len(desk.numbers) == 4
        assert len(set(desk.numbers[:3])) == 1
        assert desk.numbers[3] > desk.numbers[0]

    run(main())


def test_a_connection_that_stays_lost_is_told_to_each(run, worker_of):
    desk = Desk()
    desk.patience = 0.1
    desk.trouble = [Lost("gone")] * 1000
    worker = worker_of(desk)

    async def main():
        ended = await asyncio.gather(
            *(worker.do(Operation("set", b"%d" % number)) for number in range(5)),
            return_exceptions=True,
        )
        assert [str(error) for error in ended] == [
            f"set {b'%d' % number}: gone" for number in range(5)
        ]
        assert all(isinstance(error.__cause__, Lost) for error in ended)
        desk.trouble.clear()
        assert await worker.do(Operation("set", b"again")) == b"again"

    run(main())


def test_one_bad_operation_fails_alone(run, worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def main():
        first = ask(worker, b"first")
        await asyncio.to_thread(desk.begun.acquire)
        others = [
            ask(worker, b"%d" % number, "bad" if number == 2 else "set") for number in range(5)
        ]
        await asyncio.sleep(0)
        desk.go.release(100)
        ended = await asyncio.gather(first, *others, return_exceptions=True)
        assert [end for end in ended if not isinstance(end, StoreError)] == [
            b"first",
            b"0",
            b"1",
            b"3",
            b"4",
        ]
        assert str(ended[3]) == "bad b'2': no good"
        assert len(set(desk.numbers)) == len(desk.numbers)

    run(main())


def test_what_concerns_all_is_tried_once(run, worker_of):
    desk = Desk()
    desk.trouble = [Broken("all of it")]
    worker = worker_of(desk)

    async def main():
        with pytest.raises(StoreError, match="all of it"):
            await worker.do(Operation("set", b"a"))
        assert len(desk.numbers) == 1

    run(main())


def test_whatever_happens_in_the_thread_is_an_answer(run, worker_of):
    desk = Desk()
    desk.trouble = [SystemExit("not here"), KeyboardInterrupt()]
    worker = worker_of(desk)

    async def main():
        for _ in range(2):
            with pytest.raises(StoreError, match="which a store must not raise"):
                await worker.do(Operation("set", b"a"))
        assert await worker.do(Operation("set", b"b")) == b"b"

    run(main())


def test_closing_comes_after_all_that_was_asked(run, worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def main():
        asked = [ask(worker, b"%d" % number) for number in range(5)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(worker.aclose())
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="closed"):
            await worker.do(Operation("set", b"late"))
        desk.go.release(10)
        await closing
        assert await asyncio.gather(*asked) == [b"%d" % number for number in range(5)]
        assert desk.closed == 1
        await worker.aclose()
        worker.close()
        assert desk.closed == 1

    run(main())


def test_closing_what_has_no_thread_needs_none(worker_of):
    desk = Desk()
    before = threading.active_count()
    worker_of(desk).close()
    assert (desk.closed, threading.active_count()) == (1, before)


def test_who_waits_on_a_loop_that_is_gone_holds_up_nobody(worker_of):
    desk = Desk(held=True)
    worker = worker_of(desk)

    async def leave():
        ask(worker, b"left")
        await asyncio.to_thread(desk.begun.acquire)

    asyncio.run(leave())
    desk.go.release(10)
    assert asyncio.run(worker.do(Operation("set", b"next"))) == b"next"


def test_g24_a_process_that_may_start_no_thread_is_told_so(run, monkeypatch):
    def start(thread, really=threading.Thread.start):
        if "worker" in thread.name:
            raise RuntimeError("can't start new thread")
        really(thread)

    async def main():
        worker = Worker("Desk", Desk())
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            async with asyncio.timeout(20):
                answers = await asyncio.gather(
                    *(worker.do(Operation("get", key)) for key in (b"1", b"2")),
                    return_exceptions=True,
                )
            assert [type(answer) for answer in answers] == [StoreError] * 2
            assert "Desk.get: can't start new thread" in str(answers[0])
        assert await worker.do(Operation("get", b"3")) == b"3"
        await worker.aclose()

    run(main())
