"""A model that is not asked more often than its provider allows."""

import asyncio
import random
import threading
from contextlib import suppress

import pytest

from offbook.runtime.data.chat import Message, Usage
from offbook.runtime.errors import UsageError
from offbook.runtime.models import LimitedModel, ModelSettings, ScriptedModel
from offbook.runtime.testing import ManualClock


class Held:
    """Answers when it is let, and knows how many calls it has at once."""

    def __init__(self, usage=None):
        self.gate = asyncio.Event()
        self.usage = usage
        self.asked = []
        self.now = self.most = 0

    async def generate(self, request):
        self.asked.append(request.messages[0].text)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        return Message.assistant("x", usage=self.usage)


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def test_no_more_than_allowed_are_under_way_and_the_first_come_is_first(run, ask):
    async def main():
        held = Held()
        model = LimitedModel(held, max_concurrency=2)
        tasks = [asyncio.create_task(model.generate(ask(str(number)))) for number in range(6)]
        await settle()
        assert (held.asked, model.active, model.waiting) == (["0", "1"], 2, 4)
        held.gate.set()
        await asyncio.gather(*tasks)
        assert held.asked == list("012345")
        assert (held.most, model.active, model.waiting) == (2, 0, 0)

    run(main())


def test_a_waiter_that_is_cancelled_gives_its_place_up(run, ask):
    async def main():
        held = Held()
        model = LimitedModel(held, max_concurrency=1)
        tasks = [asyncio.create_task(model.generate(ask(str(number)))) for number in range(4)]
        await settle()
        tasks[1].cancel()
        tasks[0].cancel()
        await settle()
        assert (held.asked, model.active, model.waiting) == (["0", "2"], 1, 1)
        held.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert held.asked == ["0", "2", "3"]
        assert (model.active, model.waiting) == (0, 0)

    run(main())


def test_requests_are_spread_over_the_minute(run, ask):
    async def main():
        clock = ManualClock()
        inner = ScriptedModel(["x"] * 5)
        model = LimitedModel(inner, requests_per_minute=2, clock=clock)
        tasks = [asyncio.create_task(model.generate(ask())) for _ in range(5)]
        for used in (2, 3, 4, 5):
            await settle()
            assert len(inner.requests) == used
            clock.advance(29)
            await settle()
            assert len(inner.requests) == used
            clock.advance(1)
        await asyncio.gather(*tasks)
        assert clock.pending == ()

    run(main())


def test_tokens_are_reckoned_before_and_settled_after(run, ask):
    async def main():
        clock = ManualClock()
        inner = ScriptedModel([Message.assistant("x", usage=Usage(40, 30, 0, 1))] * 3)
        model = LimitedModel(inner, tokens_per_minute=100, clock=clock)
        # Reckoned 100, cost 70: 30 are left.
        await model.generate(ask("x" * 40, settings=ModelSettings(max_tokens=90)))
        task = asyncio.create_task(model.generate(ask("x" * 160)))  # reckoned 40: 10 are missing
        await settle()
        assert len(inner.requests) == 1
        clock.advance(6.01)
        await task  # cost 70 instead of 40: overdrawn by 30
        task = asyncio.create_task(model.generate(ask("")))
        await settle()
        assert len(inner.requests) == 2
        clock.advance(18)
        await task

    run(main())


def test_what_is_given_back_wakes_who_waits_for_it(run, ask):
    async def main():
        clock, held = ManualClock(), Held(Usage(1, 1, 0, 1))
        model = LimitedModel(held, tokens_per_minute=100, clock=clock)
        first = asyncio.create_task(model.generate(ask("", settings=ModelSettings(max_tokens=100))))
        await settle()
        second = asyncio.create_task(model.generate(ask("", settings=ModelSettings(max_tokens=50))))
        await settle()
        assert len(held.asked) == 1
        held.gate.set()
        await asyncio.gather(first, second)  # without the clock having moved

    run(main())


def test_a_call_that_costs_more_than_there_ever_is_waits_for_a_full_account(run, ask):
    async def main():
        clock = ManualClock()
        model = LimitedModel(ScriptedModel(["a", "b"]), tokens_per_minute=10, clock=clock)
        await model.generate(ask("x" * 400))
        task = asyncio.create_task(model.generate(ask("x" * 400)))
        await settle()
        assert not task.done()
        clock.advance(600)
        assert (await task).text == "b"

    run(main())


def test_a_stream_holds_its_place_until_it_ends_or_is_closed(run, ask, collect):
    async def main():
        model = LimitedModel(ScriptedModel(["a b", "c", "d"]), max_concurrency=1)
        stream = model.stream(ask())
        await anext(stream)
        other = asyncio.create_task(model.generate(ask()))
        await settle()
        assert (model.active, model.waiting) == (1, 1)
        await stream.aclose()
        assert (await other).text == "c"
        assert (await collect(model.stream(ask())))[-1].text == "d"
        assert model.active == 0

    run(main())


def test_a_failed_call_gives_its_place_back(run, ask):
    async def main():
        model = LimitedModel(ScriptedModel([ValueError(), "fine"]), max_concurrency=1)
        with pytest.raises(ValueError):
            await model.generate(ask())
        assert (await model.generate(ask())).text == "fine"

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_cancelling_at_any_moment_leaks_nothing(run, ask, seed):
    chance = random.Random(seed)

    class Slow:
        async def generate(self, request):
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            return Message.assistant("x")

    async def main():
        model = LimitedModel(Slow(), max_concurrency=3)
        tasks = [asyncio.create_task(model.generate(ask())) for _ in range(40)]
        for _ in range(30):
            await asyncio.sleep(0)
            chance.choice(tasks).cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (model.active, model.waiting) == (0, 0)

    run(main())


def test_one_limit_holds_for_the_loops_of_all_threads(ask):
    lock, now, most = threading.Lock(), [0], [0]

    class Counting:
        async def generate(self, request):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            try:
                await asyncio.sleep(0.001)
            finally:
                with lock:
                    now[0] -= 1
            return Message.assistant("x")

    model = LimitedModel(Counting(), max_concurrency=2)

    async def many():
        with suppress(TimeoutError):
            async with asyncio.timeout(0.002):
                await model.generate(ask())
        await asyncio.gather(*(model.generate(ask()) for _ in range(10)))

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert most[0] <= 2
    assert (model.active, model.waiting) == (0, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"model": None},
        {"requests_per_minute": 0},
        {"tokens_per_minute": -1},
        {"max_concurrency": 0},
        {"max_concurrency": 0.5},
    ],
)
def test_bad_arguments_are_refused(options):
    with pytest.raises(UsageError):
        LimitedModel(**{"model": ScriptedModel(), **options})
