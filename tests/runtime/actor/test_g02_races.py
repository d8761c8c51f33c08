"""G2: every ask ends, also when it races a stop, a crash, or the end of the system: very often,
from threads, on the loop, from other loops.
"""

import asyncio
import itertools
import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorFuture,
    ActorRef,
    ActorSystem,
    AskTimeout,
    Backoff,
    MailboxFull,
    MailboxSettings,
    Restart,
    Stop,
    ThreadActor,
)

WATCHDOG = 20.0


@pytest.fixture(autouse=True)
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def the_log_does_not_take_the_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="offbook")


class Sync(Actor):
    def on_receive(self, message: object) -> object:
        if message == "crash":
            raise SystemExit
        return message


class Async(Actor):
    async def on_receive(self, message: object) -> object:
        await asyncio.sleep(0)
        if message == "crash":
            raise SystemExit
        return message


class OnThread(Sync, ThreadActor):
    pass


class AsyncOnThread(Async, ThreadActor):
    pass


everybody = pytest.mark.parametrize("actor", [Sync, Async, OnThread, AsyncOnThread])


def ending(get: Callable[[], object], sent: object) -> str:
    """How an ask ended. An AskTimeout gets through: it is what must not be."""
    try:
        assert get() == sent
    except ActorDeadError:
        return "dead"
    except MailboxFull:
        return "full"
    return "reply"


def in_threads(functions: list[Callable[[], None]]) -> list[threading.Thread]:
    threads = [threading.Thread(daemon=True, target=function) for function in functions]
    for thread in threads:
        thread.start()
    return threads


# --- stop ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("actor", "races"), [(Sync, 13_000), (Async, 9_000), (OnThread, 4_500), (AsyncOnThread, 3_500)]
)
def test_g02_asks_race_a_stop_30_000_times_and_all_of_them_end(actor, races):
    """This thread asks until the actor takes no more, while another one stops it: so each race has
    asks on both sides of the stop.
    """
    asked: list[tuple[ActorFuture, int]] = []
    stops: list[ActorFuture] = []
    to_stop: SimpleQueue[ActorRef | None] = SimpleQueue()

    def stop() -> None:
        while (ref := to_stop.get()) is not None:
            stops.append(ref.stop(block=False))

    with ActorSystem.in_thread() as system:
        [stopper] = in_threads([stop])
        for race in range(races):
            ref = system.spawn(actor)
            if race % 2:
                asked.append((ref.ask(-1, block=False), -1))
            to_stop.put(ref)
            for number in itertools.count():
                alive = ref.is_alive()
                asked.append((ref.ask(number, block=False), number))
                if not alive:
                    break
                time.sleep(0)  # lets the stopper have a go
        to_stop.put(None)
        stopper.join(WATCHDOG)
        endings = Counter(
            ending(lambda future=future: future.get(timeout=WATCHDOG), sent)
            for future, sent in asked
        )
        assert [stopped.get(timeout=WATCHDOG) for stopped in stops] == [True] * races
    assert endings.total() == len(asked) > 1.5 * races
    assert endings["dead"] >= races


@everybody
def test_g02_blocked_threads_are_all_released_by_a_stop(actor):
    ended: list[str] = []
    with ActorSystem.in_thread() as system:
        for _ in range(50):
            ref = system.spawn(actor)
            started = threading.Barrier(4)

            def ask(ref: ActorRef = ref, started: threading.Barrier = started) -> None:
                started.wait(WATCHDOG)
                last = "reply"
                while last == "reply":
                    last = ending(lambda: ref.ask("asked", timeout=WATCHDOG), "asked")
                    ended.append(last)

            threads = in_threads([ask] * 3)
            started.wait(WATCHDOG)
            assert ref.stop(timeout=WATCHDOG) is True
            for thread in threads:
                thread.join(WATCHDOG)
                assert not thread.is_alive()
    assert ended.count("dead") == 150


@everybody
def test_g02_requests_race_a_stop_on_the_loop_in_every_order(run, actor):
    async def race(system: ActorSystem, before: int, turns: int | None, after: int) -> Counter[str]:
        ref = system.spawn(actor)
        requests = [asyncio.create_task(ref.request(number)) for number in range(before)]
        if turns is None:
            await asyncio.wait(requests[:1])
        else:
            for _ in range(turns):
                await asyncio.sleep(0)
        stopped = ref.stop()
        requests += [
            asyncio.create_task(ref.request(number)) for number in range(before, before + after)
        ]
        results = await asyncio.wait_for(
            asyncio.gather(*requests, return_exceptions=True), WATCHDOG
        )
        assert await stopped is True
        assert all(
            result == number or isinstance(result, ActorDeadError)
            for number, result in enumerate(results)
        ), results
        return Counter(
            "dead" if isinstance(result, ActorDeadError) else "reply" for result in results
        )

    async def main() -> None:
        async with ActorSystem() as system:
            endings: Counter[str] = Counter()
            for before, turns, after in itertools.product(range(1, 5), (*range(8), None), range(3)):
                endings += await race(system, before, turns, after)
            assert endings["dead"] >= sum(range(3)) * 4 * 9
            assert endings["reply"] >= 4 * 3

    run(main())


@everybody
def test_g02_requests_from_another_loop_race_a_stop(actor):
    with ActorSystem.in_thread() as system:

        async def main() -> Counter[str]:
            endings: Counter[str] = Counter()
            for race in range(300):
                ref = system.spawn(actor)
                requests = [
                    asyncio.create_task(ref.request(number, timeout=WATCHDOG))
                    for number in range(3)
                ]
                for _ in range(race % 4):
                    await asyncio.sleep(0)
                stopped = ref.stop(block=False)
                for number, result in enumerate(
                    await asyncio.gather(*requests, return_exceptions=True)
                ):
                    assert result == number or isinstance(result, ActorDeadError), result
                    endings["dead" if isinstance(result, ActorDeadError) else "reply"] += 1
                assert await stopped is True
            return endings

        endings = asyncio.run(main())
        assert endings.total() == 900
        assert endings["dead"] > 0


@everybody
@pytest.mark.parametrize("overflow", ["block", "reject", "drop_oldest"])
def test_g02_askers_of_a_bounded_mailbox_race_a_stop(actor, overflow):
    ended: list[str] = []
    with ActorSystem.in_thread() as system:
        for _ in range(40):
            ref = system.spawn(actor, mailbox=MailboxSettings(1, overflow))
            started = threading.Barrier(5)

            def ask(ref: ActorRef = ref, started: threading.Barrier = started) -> None:
                started.wait(WATCHDOG)
                last = ""
                while last != "dead":
                    last = ending(lambda: ref.ask("asked", timeout=WATCHDOG), "asked")
                    ended.append(last)

            threads = in_threads([ask] * 4)
            started.wait(WATCHDOG)
            assert ref.stop(timeout=WATCHDOG) is True
            for thread in threads:
                thread.join(WATCHDOG)
                assert not thread.is_alive()
    assert ended.count("dead") == 160
    assert overflow != "block" or "full" not in ended


# --- crash ---


@everybody
@pytest.mark.parametrize(
    "directive",
    [Stop(), Restart(max_restarts=1_000_000, backoff=Backoff(initial=0))],
    ids=["Stop", "Restart"],
)
def test_g02_asks_race_a_crash(actor, directive):
    asked: list[tuple[ActorFuture, int]] = []
    with ActorSystem.in_thread() as system:
        ref = system.spawn(actor, supervision=directive)
        for race in range(300):
            if not ref.is_alive():
                ref = system.spawn(actor, supervision=directive)
            for number in range(race % 4):
                asked.append((ref.ask(number, block=False), number))
            [crasher] = in_threads([lambda ref=ref: ref.ask("crash", block=False)])
            for number in range(4):
                asked.append((ref.ask(number, block=False), number))
            crasher.join(WATCHDOG)
        endings = Counter(
            ending(lambda future=future: future.get(timeout=WATCHDOG), sent)
            for future, sent in asked
        )
    assert endings.total() == len(asked)
    assert endings["reply"] > 0
    assert (endings["dead"] == 0) is isinstance(directive, Restart)


# --- the end of the system ---


@everybody
def test_g02_asks_race_the_end_of_the_system(actor):
    ended: list[str] = []
    for _ in range(30):
        with ActorSystem.in_thread() as system:
            refs = [system.spawn(actor) for _ in range(3)]
            started = threading.Barrier(4)

            def ask(ref: ActorRef, started: threading.Barrier = started) -> None:
                started.wait(WATCHDOG)
                last = "reply"
                while last == "reply":
                    last = ending(lambda: ref.ask("asked", timeout=WATCHDOG), "asked")
                    ended.append(last)

            threads = in_threads([lambda ref=ref: ask(ref) for ref in refs])
            started.wait(WATCHDOG)
        for thread in threads:
            thread.join(WATCHDOG)
            assert not thread.is_alive()
    assert ended.count("dead") == 90


def test_g02_the_watchdog_of_these_tests_bites(gate):
    """An ask that does not end would be seen as an AskTimeout."""

    class Held(Actor):
        def on_receive(self, message: object) -> object:
            return gate.wait()

    with ActorSystem.in_thread() as system:
        future = system.spawn(Held).ask("held", block=False)
        with pytest.raises(AskTimeout):
            ending(lambda: future.get(timeout=0.001), None)
        gate.open()
        assert ending(lambda: future.get(timeout=WATCHDOG), None) == "reply"
