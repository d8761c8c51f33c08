"""A mailbox is created on first use: messages that race its creation are handled or answered, in
every phase of the actor.
"""

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem
from offbook.runtime.actor import cell as cells
from offbook.runtime.actor.actor import InnerActor
from offbook.runtime.actor.direct import hand, send_now, stop_actor
from offbook.runtime.actor.mailbox import Mailbox


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


def spawned(system, actor_class=Echo, *args, name=None, parent=None):
    return system.spawn_own(actor_class, args, name, parent)


def spawned_at_work(system, ends, name, parent):
    """An actor that has begun with its only handler, and ends with it."""
    cell = spawned(system, Waits, ends, name=name, parent=parent)
    cell.until_childless = True
    send_now(cell, "begin")
    return cell


def test_an_actor_that_is_only_sent_to_directly_has_no_mailbox(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawned(system)
            assert hand(cell, 1) == 1
            assert system.stats().actors == 1
            assert len(system.tree().children) == 1
            stop_actor(cell)
            assert cell.box is None

    run(main())


def test_who_asks_it_by_its_ref_gives_it_a_mailbox_and_is_answered(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawned(system)
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

            ref = spawned(system, Notes).own_ref()
            for number in range(100):
                ref.tell(number)
            await ref.request("last")
            assert seen == [*range(100), "last"]

    run(main())


def test_g02_what_is_put_while_it_is_at_work_is_answered_at_its_end(run):
    async def main():
        async with ActorSystem() as system:
            parent, ends = spawned(system), asyncio.get_running_loop().create_future()
            cell = spawned_at_work(system, ends, "waits", parent)
            asking = asyncio.ensure_future(cell.own_ref().request("and this?"))
            await asyncio.sleep(0)
            ends.set_result(None)
            with pytest.raises(ActorDeadError):
                await asking

    run(main())


def test_g02_an_ask_of_one_that_has_ended_is_refused(run):
    async def main():
        async with ActorSystem() as system:
            cell = spawned(system)
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
                cell, ready, answers = spawned(system), threading.Barrier(4), []
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
            parent = spawned(system)
            for number in range(150):
                ends, ready, answers = (
                    asyncio.get_running_loop().create_future(),
                    threading.Barrier(4),
                    [],
                )
                ref = spawned_at_work(system, ends, f"waits-{number}", parent).own_ref()
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
            parent, ends = spawned(system), asyncio.get_running_loop().create_future()
            ref = spawned_at_work(system, ends, "waits", parent).own_ref()
            await asyncio.sleep(0)
            asking = asyncio.ensure_future(ref.request("later"))
            await asyncio.sleep(0)
            stopping = ref.stop()
            ref.cancel()
            assert await stopping is True
            with pytest.raises(ActorDeadError):
                await asking

    run(main())


@pytest.mark.usefixtures("threads_switch_often")
@pytest.mark.parametrize("start", ["none", "sync", "async"])
def test_g02_asks_from_threads_that_race_its_start_are_all_answered(run, start):
    """Its ref leaves its `__init__`, so the mailbox may be created in every phase of its start."""

    class Early(Actor):
        def __init__(self, ready, answers):
            super().__init__()
            ref = self.actor_ref

            def ask():
                ready.wait()
                answers.append(ref.ask("x", timeout=20))

            self.threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in self.threads:
                thread.start()
            ready.wait()

        def on_receive(self, message):
            return message

    class EarlySync(Early):
        def on_start(self):
            pass

    class EarlyAsync(Early):
        async def on_start(self):
            await asyncio.sleep(0)

    kind = {"none": Early, "sync": EarlySync, "async": EarlyAsync}[start]

    async def main():
        async with ActorSystem() as system:
            for _ in range(100):
                ready, answers = threading.Barrier(4), []
                ref = system.spawn(kind, ready, answers)
                while len(answers) < 3:
                    await asyncio.sleep(0)
                assert answers == ["x"] * 3
                await ref.stop()

    run(main())


@pytest.mark.usefixtures("threads_switch_often")
def test_g02_and_g03_threads_race_the_begin_and_the_end_of_each_handler(run):
    """The mailbox is created while a handler begins or ends: work and control both arrive."""

    class Turns(Actor):
        async def on_receive(self, message):
            await asyncio.sleep(0)
            return message

    async def main():
        async with ActorSystem() as system:
            for _ in range(100):
                cell = spawned(system, Turns)
                ready, answers = threading.Barrier(4), []
                ref = cell.own_ref()

                def ask(ref=ref, ready=ready, answers=answers):
                    ready.wait()
                    answers.append(ref.ask("x", timeout=20))

                threads = [threading.Thread(target=ask) for _ in range(3)]
                for thread in threads:
                    thread.start()
                ready.wait()
                send_now(cell, "begin")
                while len(answers) < 3:
                    await asyncio.sleep(0)
                assert answers == ["x"] * 3
                stopping = threading.Thread(target=ref.stop)
                stopping.start()
                if cell.is_idle():
                    send_now(cell, "again")
                await asyncio.wait_for(ref.wait_stopped(), 20)
                while stopping.is_alive():
                    await asyncio.sleep(0)

    run(main())


def test_g02_a_signal_handler_that_tells_while_the_mailbox_is_created_loses_nothing(
    run, monkeypatch
):
    async def main():
        async with ActorSystem() as system:
            seen = []

            class Notes(InnerActor):
                def on_receive(self, message):
                    seen.append(message)

            ref = spawned(system, Notes).own_ref()

            def interrupted(*args, **options):
                monkeypatch.undo()
                ref.tell("of the handler")
                return Mailbox(*args, **options)

            monkeypatch.setattr(cells, "Mailbox", interrupted)
            ref.tell("interrupted")
            await ref.request("last")
            assert seen == ["of the handler", "interrupted", "last"]

    run(main())


def test_those_who_wait_for_its_end_are_told_in_the_order_in_which_they_came(run):
    async def main():
        async with ActorSystem() as system:
            told = []
            cell = spawned(system)
            cell.when_ended(lambda _ended: told.append("first"))
            cell.when_ended(lambda _ended: told.append("second"))
            stop_actor(cell)
            assert told == ["first", "second"]

    run(main())
