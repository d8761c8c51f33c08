"""`run.cancel(mode)` in trees of agents: between the children of workflows, before a transfer's
target starts, in a Parallel.
"""

import pytest

from offbook.actors import DeterministicTransfer, Loop, Parallel, Sequential
from offbook.runtime import Exit, ToolCalls, TransferToAgent
from tests.doubles.cancelling import (
    BACK,
    MODES,
    SAFE,
    TO_B,
    CancelledRun,
    Door,
    Player,
    after,
    chat,
    quick,
    to,
)

# --- between children ---


@pytest.mark.parametrize("mode", SAFE)
@pytest.mark.parametrize("kind", ["sequential", "loop"])
def test_the_next_child_is_not_begun(run, kind, mode):
    async def main():
        door = Door()
        subs = [Player("A", door, "a"), Player("B", "b")]
        flow = (
            Sequential(name="S", sub_agents=subs)
            if kind == "sequential"
            else Loop(name="S", sub_agents=subs, max_iterations=1)
        )
        async with CancelledRun(flow) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == ["A a", "S RunCancelled"]
            assert await stage.go_on() == ["B b"]
            assert door.reached == 1

    run(main())


@pytest.mark.parametrize("kind", ["sequential", "loop"])
def test_immediate_cuts_the_child_short_that_plays(run, kind):
    async def main():
        door = Door()
        subs = [Player("A", "a"), Player("B", "b1", door, "b2"), Player("C", "c")]
        flow = (
            Sequential(name="S", sub_agents=subs)
            if kind == "sequential"
            else Loop(name="S", sub_agents=subs, max_iterations=1)
        )
        async with CancelledRun(flow) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A a", "B b1", "S RunCancelled"]
            door.open()
            assert await stage.go_on() == ["B b2", "C c"]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_between_the_rounds_of_a_loop_it_ends_and_the_round_is_known_when_it_goes_on(run, mode):
    async def main():
        door = Door()
        model = [after(door, "first"), "second", "third"]
        agent = chat("A", *model)
        async with CancelledRun(Loop(name="L", sub_agents=[agent], max_iterations=3)) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == ["A first", "L RunCancelled"]
            assert await stage.go_on() == ["A second", "A third"]
            assert len(agent.model.requests) == 3

    run(main())


@pytest.mark.parametrize("mode", SAFE)
@pytest.mark.parametrize("exits", [False, True])
def test_behind_the_last_child_there_is_nothing_to_cancel(run, mode, exits):
    async def main():
        door = Door()
        subs = (
            [Player("A", door, "a", Exit()), Player("B", "never")]
            if exits
            else [Player("A", door, "a")]
        )
        async with CancelledRun(Sequential(name="S", sub_agents=subs)) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is False
            assert await stage.end() == ["A a", *(["A exits"] if exits else [])]

    run(main())


# --- transfers ---


@pytest.mark.parametrize("mode", MODES)
def test_the_target_of_a_transfer_is_not_begun_and_takes_over_when_the_run_goes_on(run, mode):
    async def main():
        door = Door()
        agent = Player("A", TransferToAgent("B"), door, sub_agents=[Player("B", "b")])
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == ["A -> B", "A RunCancelled"]
            assert await stage.go_on() == ["B b"]
            assert door.reached == 1

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_when_a_transfer_is_under_way_the_run_ends_before_its_target(run, mode):
    async def main():
        door, b = Door(), chat("B", "b")
        a = chat("A", after(door, to("B")), sub_agents=[b])
        async with CancelledRun(Sequential(name="S", sub_agents=[a, Player("C", "c")])) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            shown = (
                [*TO_B, "S RunCancelled"] if mode == "after_tools" else [TO_B[0], "S RunCancelled"]
            )
            assert await stage.end() == shown
            assert await stage.go_on() == [*TO_B[len(shown) - 1 :], "B b", "C c"]
            assert [len(agent.model.requests) for agent in (a, b)] == [1, 1]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_a_deterministic_transfer_is_announced_and_followed_when_the_run_goes_on(run, mode):
    async def main():
        door = Door()
        b = DeterministicTransfer(Player("B", door, "b"), to=["A"])
        a = chat("A", to("B"), "a", sub_agents=[b])
        async with CancelledRun(a) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == [*TO_B, "B b", *BACK, "A RunCancelled"]
            assert await stage.go_on() == ["A a"]

    run(main())


# --- a Parallel ---


@pytest.mark.parametrize("mode", SAFE)
def test_in_a_parallel_all_come_to_a_safe_point_before_the_run_ends(run, mode):
    async def main():
        first, second = Door(), Door()
        a = chat("A", after(first, ToolCalls(quick={})), "a", tools=[quick])
        b = chat("B", after(second, "b"))
        async with CancelledRun(Parallel(name="P", sub_agents=[a, b])) as stage:
            await stage.play()
            await first.somebody()
            await second.somebody()
            handle = await stage.cancel(mode)
            first.open()
            await stage.shown(1 if mode == "after_model" else 2)
            assert stage.run.status == "running", "the other one is in a call of its model"
            second.open()
            assert await handle is True
            shown = ["A calls quick", "A quick: quick done"][: 1 if mode == "after_model" else 2]
            assert await stage.end() == [*shown, "B b", "P RunCancelled"]
            assert await stage.go_on() == [*["A quick: quick done"][: 2 - len(shown)], "A a"]
            assert [len(agent.model.requests) for agent in (a, b)] == [2, 1]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_in_a_parallel_it_does_not_matter_who_comes_last_to_a_safe_point(run, mode):
    async def main():
        first, second = Door(), Door()
        a, b = (
            chat("A", after(first, "a")),
            chat("B", after(second, ToolCalls(quick={})), "b", tools=[quick]),
        )
        async with CancelledRun(Parallel(name="P", sub_agents=[a, b])) as stage:
            await stage.play()
            await first.somebody()
            await second.somebody()
            handle = await stage.cancel(mode)
            second.open()
            await stage.shown(1)
            first.open()
            assert await handle is True
            assert (await stage.end())[-1] == "P RunCancelled"
            assert (await stage.go_on())[-1] == "B b"

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_those_that_wait_for_their_turn_in_a_parallel_are_not_begun(run, mode):
    async def main():
        door = Door()
        subs = [Player("A", door, "a"), Player("B", "b"), Player("C", "c")]
        async with CancelledRun(Parallel(name="P", sub_agents=subs, max_concurrency=1)) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is True
            assert await stage.end() == ["A a", "P RunCancelled"]
            assert await stage.go_on() == ["B b", "C c"]

    run(main())


def test_immediate_ends_all_of_a_parallel_and_who_has_finished_does_not_play_again(run):
    async def main():
        first, second = Door(), Door()
        a, b, c = (
            Player("A", "a1", first, "a2"),
            Player("B", "b"),
            chat("C", after(second, "never"), "c"),
        )
        async with CancelledRun(Parallel(name="P", sub_agents=[a, b, c])) as stage:
            await stage.play()
            await first.somebody()
            await second.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A a1", "B b", "P RunCancelled"]
            first.open()
            assert sorted(await stage.go_on()) == ["A a2", "C c"]

    run(main())


@pytest.mark.parametrize("mode", SAFE)
def test_if_all_others_have_ended_a_run_that_waits_for_something_is_interrupted_and_not_cancelled(
    run, mode
):
    async def main():
        door = Door()
        async with CancelledRun(
            Parallel(name="P", sub_agents=[Player("A", "ask"), Player("B", door, "b")])
        ) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode)
            door.open()
            assert await handle is False
            assert await stage.end() == ["B b", "P waits for A?"]
            assert await stage.go_on(data="yes") == ["A heard yes"]

    run(main())


def test_what_waits_for_something_waits_on_when_the_run_is_cancelled_beside_it(run):
    async def main():
        door = Door()
        async with CancelledRun(
            Parallel(name="P", sub_agents=[Player("A", "ask"), Player("B", door, "b")])
        ) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["P RunCancelled"]
            contexts = (await stage.run).error.contexts
            assert [(context.info, context.address[-1].name) for context in contexts] == [
                ("A?", "A"),
                ("cancelled", "B"),
            ]
            door.open()
            assert await stage.go_on(targets={}) == ["B b", "P waits for A?"]
            (context,) = (await stage.run).interrupts
            assert context.address == contexts[0].address
            assert await stage.go_on(targets={context.id: "yes"}) == ["A heard yes"]

    run(main())
