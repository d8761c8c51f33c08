"""The future by itself: set once, read in any thread or awaited on any loop, never blocking the
loop that is to bring the value.
"""

import asyncio
import threading
import time

import pykka
import pytest

from offbook.runtime import ActorFuture, AskTimeout, UsageError

WATCHDOG = 10.0


class Oops(Exception):
    pass


def resolved(value: object = None, error: BaseException | None = None) -> ActorFuture:
    future: ActorFuture = ActorFuture()
    assert future.resolve(value, error=error)
    return future


def later(future: ActorFuture, value: object) -> threading.Thread:
    """Set the future from another thread, when somebody waits for it."""

    def set_it() -> None:
        while not future._callbacks:
            time.sleep(0)  # gives way to the thread that is to wait; no time has to pass
        future.set(value)

    thread = threading.Thread(daemon=True, target=set_it)
    thread.start()
    return thread


# --- setting ---


def test_a_value_is_set_once_and_read_as_often_as_one_likes():
    future = ActorFuture()
    assert not future.done()
    future.set("first")
    assert future.done()
    with pytest.raises(UsageError, match="already has its value"):
        future.set("second")
    with pytest.raises(UsageError, match="already has its value"):
        future.set_exception(Oops())
    assert [future.get(), future.get(timeout=0)] == ["first", "first"]


def test_settling_tells_whether_it_was_the_first():
    future = ActorFuture()
    assert future.resolve(error=Oops("first"))
    assert not future.resolve("second")
    with pytest.raises(Oops, match="first"):
        future.get()


def test_of_many_threads_that_settle_one_wins_and_everybody_reads_its_value():
    for _ in range(50):
        future = ActorFuture()
        start = threading.Barrier(5)
        won: list[int] = []
        read: list[int] = []

        def resolve(number: int, future=future, start=start, won=won) -> None:
            start.wait(WATCHDOG)
            if future.resolve(number):
                won.append(number)

        threads = [
            threading.Thread(daemon=True, target=resolve, args=(number,)) for number in range(3)
        ]
        threads += [
            threading.Thread(
                daemon=True,
                target=lambda future=future, start=start, read=read: (
                    start.wait(WATCHDOG),
                    read.append(future.get()),
                ),
            )
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WATCHDOG)
        assert len(won) == 1
        assert read == won * 2


@pytest.mark.parametrize("how", ["itself", "exc_info", "the one being handled"])
def test_an_exception_is_given_as_itself_or_as_exc_info_or_is_the_one_being_handled(how):
    future = ActorFuture()
    try:
        raise Oops
    except Oops as error:
        if how == "itself":
            future.set_exception(error)
        elif how == "exc_info":
            future.set_exception((type(error), error, error.__traceback__))
        else:
            future.set_exception()
    with pytest.raises(Oops):
        future.get()


def test_no_exception_at_all_is_a_usage_error():
    future = ActorFuture()
    with pytest.raises(UsageError, match="Pass the exception"):
        future.set_exception()
    assert not future.done()


def test_the_traceback_does_not_grow_with_each_reading():
    future = ActorFuture()
    try:
        raise Oops
    except Oops as error:
        future.set_exception(error)

    def depth() -> int:
        with pytest.raises(Oops) as caught:
            future.get()
        return len(caught.traceback)

    assert len({depth() for _ in range(3)}) == 1


# --- getting in threads ---


def test_get_blocks_a_thread_until_the_value_is_there():
    future = ActorFuture(loop_thread=-1)
    thread = later(future, 42)
    assert future.get(timeout=WATCHDOG) == 42
    thread.join(WATCHDOG)


def test_get_gives_up_after_the_timeout_and_the_value_can_still_come():
    future = ActorFuture()
    for timeout in (0, 0.001):
        with pytest.raises(AskTimeout, match=f"{timeout} seconds") as caught:
            future.get(timeout=timeout)
        assert isinstance(caught.value, pykka.Timeout)
        assert isinstance(caught.value, TimeoutError)
    assert future._callbacks == [], "who gave up is not waiting any more"
    future.set(1)
    assert future.get() == 1


def test_get_on_the_loops_own_thread_is_a_usage_error_that_says_what_to_write():
    future = ActorFuture(loop_thread=threading.get_ident())
    with pytest.raises(UsageError, match=r"await"):
        future.get(timeout=WATCHDOG)
    with pytest.raises(UsageError, match=r"await"):
        future.map(str).get()
    future.set(1)
    assert future.get() == 1


# --- awaiting ---


def test_it_can_be_awaited_before_and_after_it_is_set(run):
    async def main() -> None:
        future = ActorFuture(threading.get_ident())
        asyncio.get_running_loop().call_soon(future.set, "value")
        assert await future == "value"
        assert await future == "value"

    run(main())


def test_awaiting_raises_what_was_set(run):
    async def main() -> None:
        future = ActorFuture()
        asyncio.get_running_loop().call_soon(future.set_exception, Oops())
        with pytest.raises(Oops):
            await future

    run(main())


def test_many_tasks_and_threads_may_wait_for_one_future(run):
    async def main() -> None:
        future = ActorFuture(threading.get_ident())
        loop = asyncio.get_running_loop()
        tasks = [asyncio.create_task(_awaited(future)) for _ in range(3)]
        reads = [loop.run_in_executor(None, future.get) for _ in range(3)]
        while len(future._callbacks) < 6:
            await asyncio.sleep(0)
            assert not any(waiting.done() for waiting in (*tasks, *reads))
        future.set(7)
        assert await asyncio.gather(*tasks, *reads) == [7] * 6

    run(main())


def test_a_value_set_in_another_thread_wakes_the_loop_that_waits(run):
    async def main() -> None:
        for number in range(100):
            future = ActorFuture(threading.get_ident())
            thread = later(future, number)
            assert await future == number
            thread.join(WATCHDOG)

    run(main())


def test_a_value_that_comes_just_as_somebody_begins_to_wait_is_not_missed(run):
    """It comes when the waiter has seen that there is none, and makes what it is going to wait
    on.
    """

    async def main() -> None:
        future, loop = ActorFuture(), asyncio.get_running_loop()
        create_future = loop.create_future
        loop.create_future = lambda: (future.resolve("just now"), create_future())[1]
        waiting = asyncio.create_task(_awaited(future))
        await asyncio.sleep(0)
        assert future.done()
        del loop.create_future
        assert await asyncio.wait_for(waiting, WATCHDOG) == "just now"

    run(main())


def test_it_can_be_awaited_on_another_loop_than_the_one_that_brings_it(run):
    future = ActorFuture()
    results: list[object] = []
    other = threading.Thread(
        daemon=True, target=lambda: results.append(asyncio.run(_awaited(future)))
    )
    other.start()

    async def main() -> None:
        while not future._callbacks:
            await asyncio.sleep(0)
        future.set("brought")

    run(main())
    other.join(WATCHDOG)
    assert results == ["brought"]


def waiting_on(loop: asyncio.AbstractEventLoop, future: ActorFuture) -> None:
    """Leave a task of that loop waiting for the future."""
    task = loop.create_task(_awaited(future))
    loop.run_until_complete(asyncio.sleep(0))
    task._log_destroy_pending = False  # it is meant to be


@pytest.mark.parametrize("where", ["the loop's thread", "another thread"])
def test_the_value_may_come_after_the_loop_that_waited_was_closed(where):
    future, loop = ActorFuture(), asyncio.new_event_loop()
    waiting_on(loop, future)
    loop.close()
    if where == "another thread":
        setter = threading.Thread(daemon=True, target=future.set, args=("late",))
        setter.start()
        setter.join(WATCHDOG)
    else:
        future.set("late")
    assert future.get() == "late"


def test_a_loop_that_closes_at_that_very_moment_takes_nothing_from_who_waits_elsewhere():
    class ClosesInBetween(asyncio.SelectorEventLoop):
        def call_soon_threadsafe(self, *args: object, **kwargs: object) -> object:
            self.close()
            return super().call_soon_threadsafe(*args, **kwargs)

    future, loop = ActorFuture(), ClosesInBetween()
    waiting_on(loop, future)
    told: list[bool] = []
    assert future._add_callback(lambda: told.append(True))
    won: list[bool] = []
    setter = threading.Thread(daemon=True, target=lambda: won.append(future.resolve("value")))
    setter.start()
    setter.join(WATCHDOG)
    assert (won, told) == ([True], [True])


def test_who_is_cancelled_while_waiting_leaves_nothing_and_takes_nothing_from_others(run):
    async def main() -> None:
        future = ActorFuture()
        impatient, patient = (
            asyncio.create_task(_awaited(future)),
            asyncio.create_task(_awaited(future)),
        )
        await asyncio.sleep(0)
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        assert len(future._callbacks) == 1
        future.set("for the patient")
        assert await patient == "for the patient"

    run(main())


def test_waiting_can_be_limited_with_asyncios_timeout(run):
    async def main() -> None:
        future = ActorFuture()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_awaited(future), 0.001)
        assert future._callbacks == []

    run(main())


async def _awaited(future: ActorFuture) -> object:
    return await future
