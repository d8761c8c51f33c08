"""The client of each loop is closed on it: when its model is closed, when the model is gone, and at
the latest when the loop ends.
"""

import asyncio
import gc

import pytest

from offbook.runtime.models.wire.loop_clients import LoopClients


class Recorded:
    """A client that says when it was closed, and lets the loop take some turns while it is being
    closed.
    """

    def __init__(self):
        self.closed_on = None
        self.loop = asyncio.get_running_loop()

    def is_closed(self):
        return self.closed_on is not None

    async def close(self):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert self.closed_on is None, "it is closed once"
        self.closed_on = asyncio.get_running_loop()


@pytest.fixture
def made():
    return []


@pytest.fixture
def clients(made):
    def make():
        made.append(Recorded())
        return made[-1]

    return lambda: LoopClients(make)


@pytest.mark.parametrize("turns", range(8))
def test_a_client_is_closed_however_shortly_before_the_end_of_its_loop_it_is_let_go(
    clients, made, turns
):
    async def main():
        there = clients()
        await there.get()
        del there
        for _ in range(turns):
            await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()
    assert [one.closed_on is one.loop for one in made] == [True]


def test_a_client_is_closed_when_its_holder_is_gone_and_the_loop_goes_on(run, clients, made, until):
    async def main():
        there = clients()
        await there.get()
        del there
        await until(lambda: made[0].is_closed())
        for _ in range(5):
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1, "nothing is left to be closed"

    run(main())


def test_a_client_of_a_holder_in_a_circle_is_not_collected_before_it_is_closed(run, until):
    """Of garbage in a circle, Python runs all finalizers: those of the client, too, which would say
    that it is not closed.
    """
    said = []

    class Careful(Recorded):
        def __del__(self):
            said.append("closed" if self.is_closed() else "not closed")

    async def main():
        there = LoopClients(Careful)
        await there.get()
        circle = [there]
        circle.append(circle)
        del there, circle
        gc.collect()
        await until(lambda: gc.collect() or said)

    run(main())
    assert said == ["closed"]


def test_a_client_is_closed_by_its_loop_at_its_end_and_another_loop_has_its_own(clients, made):
    there = clients()

    async def main():
        assert await there.get() is await there.get()

    for _ in range(3):
        asyncio.run(main())
    assert [one.closed_on is one.loop for one in made] == [True] * 3
    assert not there._held


def test_a_client_that_was_closed_is_made_anew(run, clients, made):
    async def main():
        there = clients()
        await there.get()
        await there.aclose()
        await there.get()
        await there.aclose()

    run(main())
    assert [one.is_closed() for one in made] == [True, True]


def test_a_client_may_be_let_go_in_another_thread(run, clients, made, until):
    async def main():
        there = [clients()]
        await there[0].get()
        await asyncio.to_thread(there.clear)
        await until(lambda: made[0].is_closed())

    run(main())
