"""The package's own actors, whose mailbox is made when somebody looks for it: what holds for all
actors holds for these.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest

from offbook.runtime import ActorDeadError, ActorSystem
from offbook.runtime.actor.actor import InnerActor
from offbook.runtime.actor.direct import hand, stop_actor
from offbook.runtime.actor.envelope import Envelope
from offbook.runtime.system.spawning import spawn_at_work, spawn_inner


@pytest.fixture
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Echo(InnerActor):
    def on_receive(self, message):
        return message


class Waits(InnerActor):
    def __init__(self, cell, ends):
        super().__init__(cell)
        self.ends = ends

    async def on_receive(self, message):
        if message == "begin":
            await self.ends
            return None
        return message


class TellsItsEnd(Echo):
    def __init__(self, cell, told):
        super().__init__(cell)
        self.told = told

    def on_ended(self):
        self.told.append("ended")


def test_an_actor_that_is_only_sent_to_directly_has_no_mailbox(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawn_inner(system, Echo, ())
            assert hand(cell, 1) == 1
            assert system.stats().actors == 1
            assert len(system.tree().children) == 1
            stop_actor(cell)
            assert cell.box is None

    run(main())


def test_who_asks_it_by_its_ref_gives_it_a_mailbox_and_is_answered(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawn_inner(system, Echo, ())
            assert await cell.own_ref().ask(1, block=False) == 1
            assert cell.box is not None
            assert hand(cell, 2) == 2

    run(main())


def test_g01_messages_are_handled_in_the_order_sent_when_the_mailbox_comes_with_the_first(run):
    async def main():
        async with ActorSystem() as system:
            seen = []

            class Notes(InnerActor):
                def on_receive(self, message):
                    seen.append(message)

            ref = spawn_inner(system, Notes, ()).own_ref()
            for number in range(100):
                ref.tell(number)
            await ref.request("last")
            assert seen == [*range(100), "last"]

    run(main())


def test_g02_what_is_put_while_it_is_at_work_is_answered_at_its_end(run):
    async def main():
        async with ActorSystem() as system:
            parent, ends = spawn_inner(system, Echo, ()), asyncio.get_running_loop().create_future()
            cell = spawn_at_work(system, Waits, (ends,), "waits", parent, Envelope("begin"))
            asking = asyncio.ensure_future(cell.own_ref().request("and this?"))
            await asyncio.sleep(0)
            ends.set_result(None)
            with pytest.raises(ActorDeadError):
                await asking

    run(main())


def test_g02_an_ask_of_one_that_has_ended_is_refused(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawn_inner(system, Echo, ())
            ref = cell.own_ref()
            stop_actor(cell)
            assert not ref.is_alive()
            with pytest.raises(ActorDeadError):
                await ref.request(1)

    run(main())


@pytest.mark.usefixtures("threads_switch_often")
def test_g02_asks_from_threads_that_race_its_end_are_all_answered(run):
    async def main():
        async with ActorSystem() as system:
            for _ in range(150):
                cell, ready, answers = spawn_inner(system, Echo, ()), threading.Barrier(4), []
                ref = cell.own_ref()

                def ask(ref=ref, ready=ready, answers=answers):
                    ready.wait()
                    try:
                        answers.append(ref.ask("x", timeout=20))
                    except ActorDeadError:
                        answers.append("dead")

                threads = [threading.Thread(target=ask) for _ in range(3)]
                for thread in threads:
                    thread.start()
                ready.wait()
                stop_actor(cell)
                while any(thread.is_alive() for thread in threads):
                    await asyncio.sleep(0)
                assert len(answers) == 3
                assert set(answers) <= {"x", "dead"}

    run(main())


@pytest.mark.usefixtures("threads_switch_often")
def test_g02_asks_from_threads_that_race_the_end_of_its_handler_are_all_answered(run):
    async def main():
        async with ActorSystem() as system:
            parent = spawn_inner(system, Echo, ())
            for number in range(150):
                ends, ready, answers = (
                    asyncio.get_running_loop().create_future(),
                    threading.Barrier(4),
                    [],
                )
                ref = spawn_at_work(
                    system, Waits, (ends,), f"waits-{number}", parent, Envelope("begin")
                ).own_ref()
                await asyncio.sleep(0)

                def ask(ref=ref, ready=ready, answers=answers):
                    ready.wait()
                    with pytest.raises(ActorDeadError):
                        ref.ask("x", timeout=20)
                    answers.append("dead")

                threads = [threading.Thread(target=ask) for _ in range(3)]
                for thread in threads:
                    thread.start()
                ready.wait()
                ends.set_result(None)
                while any(thread.is_alive() for thread in threads):
                    await asyncio.sleep(0)
                assert answers == ["dead"] * 3
            assert not parent.children

    run(main())


def test_g03_a_stop_overtakes_what_waits_for_one_that_is_at_work(run):
    async def main():
        async with ActorSystem() as system:
            parent, ends = spawn_inner(system, Echo, ()), asyncio.get_running_loop().create_future()
            ref = spawn_at_work(
                system, Waits, (ends,), "waits", parent, Envelope("begin")
            ).own_ref()
            await asyncio.sleep(0)
            asking = asyncio.ensure_future(ref.request("later"))
            await asyncio.sleep(0)
            stopping = ref.stop()
            ref.cancel()
            assert await stopping is True
            with pytest.raises(ActorDeadError):
                await asking

    run(main())


def test_a_stopped_one_tells_its_own_end_before_those_who_wait_for_it_hear_of_it(run):
    async def main():
        async with ActorSystem() as system:
            told = []
            cell = spawn_inner(system, TellsItsEnd, (told,))
            cell.when_ended(lambda _ended: told.append("heard"))
            stop_actor(cell)
            assert told == ["ended", "heard"]

    run(main())
