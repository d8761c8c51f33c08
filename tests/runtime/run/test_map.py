"""`runner.map`: one agent over many inputs."""

import asyncio
import gc

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    ActorSystem,
    MapProgress,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    SQLiteStore,
    UsageError,
)


class Echo:
    """A model that answers with what it was asked, and counts how many it answers at once."""

    def __init__(self):
        self.asked, self.now, self.most = [], 0, 0
        self.fails = set()

    async def generate(self, request):
        text = request.messages[-1].text
        self.asked.append(text)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        if text in self.fails:
            raise ValueError(text)
        return Message.assistant(f"<{text}>")


class Gated(Echo):
    """One that waits for its gate with each text that begins with `slow`."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()

    async def generate(self, request):
        if request.messages[-1].text.startswith("slow"):
            self.asked.append(request.messages[-1].text)
            await self.gate.wait()
        return await super().generate(request)


def runner(model, **options):
    return Runner(ChatModelAgent(name="A", model=model), **options)


def texts(numbers):
    return [f"document {number}" for number in numbers]


def test_each_input_has_its_result(run):
    async def main():
        model = Echo()
        found = [result async for result in runner(model).map(texts(range(200)), concurrency=7)]
        return found, model.most

    found, most = run(main())
    assert sorted((result.index, result.input, result.text) for result in found) == sorted(
        (number, f"document {number}", f"<document {number}>") for number in range(200)
    )
    assert most <= 7


def test_code_without_a_loop_iterates_with_for():
    found = list(
        runner(Echo()).map((f"{number}" for number in range(20)), concurrency=3, order="input")
    )
    assert [result.text for result in found] == [f"<{number}>" for number in range(20)]


def test_results_come_as_runs_end_or_in_the_order_of_the_inputs(run):
    async def main(order):
        model, seen = Gated(), []
        async for result in runner(model).map(["slow", "a", "b"], concurrency=3, order=order):
            seen.append(result.input)
            model.gate.set()
            if order == "input":
                break
        return seen

    async def opened():
        model = Gated()
        model.gate.set()
        return [
            result.input async for result in runner(model).map(["slow", "a", "b"], order="input")
        ]

    assert run(main("completion"))[-1] == "slow"
    assert run(opened()) == ["slow", "a", "b"]


@pytest.mark.parametrize("kind", ["list", "generator"])
def test_no_more_inputs_are_read_than_are_worked_on(run, kind):
    async def main():
        model, read = Gated(), []

        def inputs():
            for number in range(1_000):
                read.append(number)
                yield "slow" if number == 0 else f"{number}"

        given = inputs() if kind == "generator" else ["slow", *map(str, range(1, 1_000))]
        results = runner(model).map(given, concurrency=5, order="input")
        iteration = aiter(results)
        first = asyncio.ensure_future(anext(iteration))
        while len(model.asked) < 20:
            await asyncio.sleep(0)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(model.asked) <= 20
        assert len(read) <= 20
        model.gate.set()
        assert (await first).index == 0
        return 1 + len([None async for _ in iteration])

    assert run(main()) == 1_000


def test_inputs_may_come_as_they_are_made_and_be_anything(run):
    async def numbers():
        for number in range(5):
            await asyncio.sleep(0)
            yield {"id": number}

    async def main():
        asked = runner(Echo()).map(
            numbers(), ask=lambda document: f"number {document['id']}", order="input"
        )
        return [result.text async for result in asked]

    assert run(main()) == [f"<number {number}>" for number in range(5)]


def test_a_run_that_fails_is_a_result_like_others(run):
    async def main():
        model = Echo()
        model.fails = {"2"}
        return [result async for result in runner(model).map(["1", "2", 3, "4"], order="input")]

    one, two, three, four = run(main())
    assert one.ok
    assert four.ok
    assert two.result.status is RunStatus.FAILED
    assert three.result is None
    assert isinstance(three.error, UsageError)
    with pytest.raises(UsageError, match="must contain Messages, got 3"):
        _ = three.text


@pytest.mark.parametrize("bad", ["2", 2])
def test_a_run_that_fails_may_end_all(run, bad):
    async def main():
        model = Echo()
        model.fails = {"2"}
        async with ActorSystem() as system:
            with pytest.raises(Exception, match="2"):
                async for _ in runner(model, system=system).map(
                    ["1", bad, *texts(range(100))], concurrency=1, on_error="raise"
                ):
                    pass
            return model.asked

    assert len(run(main())) <= 2


def test_leaving_the_iteration_cancels_what_is_under_way(run):
    async def main():
        model = Gated()
        async with ActorSystem() as system:
            iteration = aiter(
                runner(model, system=system).map(["a", "slow 1", "slow 2"], concurrency=3)
            )
            assert (await anext(iteration)).input == "a"
            await iteration.aclose()
            return model.asked, system.tree().children

    asked, left = run(main())
    assert sorted(asked) == ["a", "slow 1", "slow 2"]
    assert not left


def test_a_second_call_does_only_what_is_left(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            model = Echo()
            one = runner(model, store=store, durability="step", keep="all")
            iteration = aiter(one.map(texts(range(20)), key=str, concurrency=4))
            first = [await anext(iteration) for _ in range(6)]
            await iteration.aclose()
            again = Echo()
            second = [
                result
                async for result in runner(again, store=store, durability="step", keep="all").map(
                    texts(range(20)), key=str, concurrency=4
                )
            ]
            return first, second, again.asked

    first, second, asked = run(main())
    done = {result.input for result in first}
    assert {result.text for result in second} == {f"<{text}>" for text in texts(range(20))}
    assert not done & set(asked)


def test_a_result_has_the_error_and_the_output_of_its_run(run):
    async def main():
        model = Echo()
        model.fails = {"bad"}
        return [
            result
            async for result in runner(model).map(["good", "bad"], order="input", progress=False)
        ]

    good, bad = run(main())
    assert (good.error, good.final_output, good.text) == (None, "<good>", "<good>")
    assert isinstance(bad.error, ValueError)
    assert bad.result.error is bad.error
    for read in (lambda: bad.final_output, lambda: bad.text):
        with pytest.raises(ValueError, match="bad"):
            read()


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_what_has_failed_is_begun_again_if_that_is_wanted(run, store_of, durability):
    async def play(store, model, **options):
        made = runner(model, store=store, durability=durability)
        return [
            result.ok
            async for result in made.map(
                texts(range(3)), key=str, order="input", progress=False, **options
            )
        ]

    async def main():
        model, mended = Echo(), Echo()
        model.fails = {"document 1"}
        async with store_of("memory") as store:
            first = await play(store, model)
            again = await play(store, mended)
            assert mended.asked == []
            retried = await play(store, mended, retry_failed=True)
            at_rest = await play(store, mended, retry_failed=True)
        return first, again, retried, at_rest, mended.asked

    first, again, retried, at_rest, asked = run(main())
    assert first == again == [True, False, True]
    assert retried == at_rest == [True, True, True]
    assert asked == ["document 1"]


def test_one_that_fails_at_its_first_try_is_not_tried_twice(run):
    async def main():
        model = Echo()
        model.fails = {"document 1"}
        made = runner(model, store=MemoryStore())
        found = [
            result.ok
            async for result in made.map(
                texts(range(2)), key=str, retry_failed=True, order="input", progress=False
            )
        ]
        return found, model.asked

    found, asked = run(main())
    assert found == [True, False]
    assert asked.count("document 1") == 1


def test_keys_need_a_store_and_say_so_once_and_not_for_each_input():
    with pytest.raises(UsageError, match=r"key needs a store, .* Pass the Runner one"):
        runner(Echo()).map(texts(range(20)), key=str)


def test_progress_is_told_to_a_function(run):
    async def main(inputs):
        model, told = Echo(), []
        model.fails = {"document 1"}
        _ = [
            result
            async for result in runner(model).map(inputs, progress=told.append, concurrency=1)
        ]
        return told

    assert run(main(texts(range(3)))) == [
        MapProgress(1, 0, 3),
        MapProgress(2, 1, 3),
        MapProgress(3, 1, 3),
    ]
    assert run(main(iter(texts(range(1))))) == [MapProgress(1, 0, None)]


def test_memory_stays_flat_over_many_inputs(run):
    async def main():
        one, most, seen = runner(Echo()), 0, 0
        async for _ in one.map((f"{number}" for number in range(3_000)), concurrency=10):
            seen += 1
            if seen % 500 == 0:
                gc.collect()
                most = max(
                    most,
                    sum(
                        type(thing).__name__ in ("Run", "RunProgress", "RunResult")
                        for thing in gc.get_objects()
                    ),
                )
        return most, seen

    most, seen = run(main())
    assert seen == 3_000
    assert most <= 200


def test_it_is_iterated_over_once(run):
    async def main():
        results = runner(ScriptedModel(["x"])).map(["a"])
        _ = [result async for result in results]
        with pytest.raises(UsageError, match="once"):
            _ = [result async for result in results]

    run(main())


@pytest.mark.parametrize(
    ("inputs", "options", "what"),
    [
        ("one text", {}, "inputs must be a list"),
        (3, {}, "inputs must be a list"),
        ({"a": 1}, {}, "inputs must be a list"),
        (["a"], {"concurrency": 0}, "concurrency"),
        (["a"], {"on_error": "ignore"}, "on_error"),
        (["a"], {"order": "any"}, "order"),
        (["a"], {"key": "id"}, "key"),
        (["a"], {"ask": "id"}, "ask"),
        (["a"], {"progress": 3}, "progress"),
        (["a"], {"run_id": "x"}, "key="),
        (["a"], {"store": MemoryStore()}, "store"),
    ],
)
def test_what_is_wrong_is_said_before_the_first_run(inputs, options, what):
    with pytest.raises((UsageError, TypeError), match=what):
        list(runner(Echo()).map(inputs, **options))
