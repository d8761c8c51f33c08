"""What an agent has done before it was interrupted or cut short stands, whatever it does at the
same time or afterwards: examples beside the random ones.
"""

import asyncio

import pytest

from offbook.actors import (
    Agent,
    GuardrailFunctionOutput,
    Parallel,
    Sequential,
    ToolContext,
    output_guardrail,
    tool,
)
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Backoff,
    Exit,
    MemoryStore,
    Restart,
    Runner,
    ToolCalls,
    TransferToAgent,
)
from tests.doubles.cancelling import (
    TO_B,
    CancelledRun,
    Door,
    Player,
    chat,
    line_of,
    to,
    turns,
    waiting,
)


@tool
async def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('well?')}"


async def both(stage, **options):
    """What is shown before the interrupt, and behind it."""
    await stage.play()
    return await stage.end(), await stage.go_on(**options)


# --- beside a transfer ---


def test_an_agent_that_asks_behind_its_transfer_is_answered_before_the_other_one_takes_over(run):
    async def main():
        async with CancelledRun(
            Player("A", TransferToAgent("B"), "ask", "a", sub_agents=[Player("B", "b")])
        ) as stage:
            before, behind = await both(stage, data="yes")
            assert before == ["A -> B", "A waits for A?"]
            assert behind == ["A heard yes", "A a", "B b"]

    run(main())


def test_an_agent_that_casts_another_one_behind_its_transfer_goes_on_with_that_before_the_transfer(
    run,
):
    class Casts(Agent):
        async def run(self, input, context):
            if not context.state.get("told"):
                context.state["told"] = True
                yield AgentEvent.of(action=TransferToAgent("B"))
            await context.cast(self.sub_agents[1])

    async def main():
        async with CancelledRun(
            Casts(name="A", sub_agents=[Player("B", "b"), Player("C", "ask")])
        ) as stage:
            before, behind = await both(stage, data="yes")
            assert before == ["A -> B", "C waits for C?"]
            assert behind == ["C heard yes", "B b"]

    run(main())


def test_a_tool_that_waits_beside_one_that_hands_over_gets_its_answer_first(run):
    @tool
    async def leave(context: ToolContext) -> str:
        context.send_action(TransferToAgent("B"))
        return "gone"

    async def main():
        agent = chat(
            "A",
            ToolCalls(("leave", {}), ("ask", {})),
            tools=[leave, ask],
            sub_agents=[Player("B", "b")],
        )
        async with CancelledRun(agent) as stage:
            before, behind = await both(stage, data="yes")
            assert before == ["A calls leave calls ask", "A leave: gone -> B", "A waits for well?"]
            assert behind == ["A ask: heard yes", "B b"]

    run(main())


# --- at once ---


@pytest.mark.parametrize("end", ["error", "exit"])
@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_one_of_a_parallel_that_waits_for_something_comes_to_its_end_although_a_sibling_has_failed_or_exited(
    run, durability, end
):
    class Ends(Agent):
        async def run(self, input, context):
            if end == "error":
                raise ValueError("broken")
            yield AgentEvent.of(action=Exit())

    async def main():
        last = Player("C", "never")
        tree = Sequential(
            name="S",
            sub_agents=[
                Parallel(name="P", sub_agents=[Ends(name="A"), Player("B", "ask", "b")]),
                last,
            ],
        )
        async with CancelledRun(tree, durability=durability) as stage:
            before, behind = await both(stage, data="yes")
            assert before == ["A ValueError" if end == "error" else "A exits", "P waits for B?"]
            assert behind == ["B heard yes", "B b"]
            result = await stage.run
            assert (result.status, str(result.error)) == (
                ("failed", "broken") if end == "error" else ("completed", "None")
            )

    run(main())


@pytest.mark.parametrize("order", [("ask", "b"), ("b", "ask")])
def test_an_agent_that_casts_two_at_once_waits_for_what_one_of_them_waits_for(run, order):
    class Gathers(Agent):
        async def run(self, input, context):
            outcomes = await asyncio.gather(*(context.cast(agent) for agent in self.sub_agents))
            if all(outcome.finished for outcome in outcomes):
                yield AgentEvent.say("both")

    async def main():
        agent = Gathers(name="A", sub_agents=[Player("B", order[0]), Player("C", order[1])])
        async with CancelledRun(agent) as stage:
            before, behind = await both(stage, data="yes")
            who = "BC"[order.index("ask")]
            assert before == [f"{'CB'[order.index('ask')]} b", f"{who} waits for {who}?"]
            assert behind == [f"{who} heard yes", "A both"]

    run(main())


# --- cut short between an event and what comes behind it ---


async def cut_at(agent, count):
    """The result of a run that was cut short while its consumer had yet to take an event, and
    resumed.
    """
    store = MemoryStore()
    async with ActorSystem() as system:
        runner = Runner(agent, system=system, store=store, event_buffer=1)
        one = runner.query("q")
        events = aiter(one)
        shown = [line_of(await anext(events)) for _ in range(count)]
        await turns(20)
        assert await one.cancel() is True
        shown += [line async for line in _lines(events)]
        resumed = runner.resume(one.checkpoint_id)
        shown += [line async for line in _lines(resumed)]
        return shown, await resumed


async def _lines(events):
    async for event in events:
        yield line_of(event)


def test_what_an_agent_leaves_behind_when_it_exits_is_kept_with_its_exit(run):
    async def main():
        agent = chat(
            "A", ToolCalls(exit={"final_result": "bye"}), exit_tool=True, output_key="last"
        )
        shown, result = await cut_at(agent, 1)
        assert shown == ["A calls exit", "A exit: bye exits", "A RunCancelled"]
        assert result.session_values == {"last": "bye"}

    run(main())


def test_what_an_agent_leaves_behind_when_it_hands_over_is_kept_with_its_transfer(run):
    async def main():
        agent = chat("A", to("B"), sub_agents=[Player("B", "b")], output_key="last")
        shown, result = await cut_at(agent, 1)
        assert shown == [*TO_B, "A RunCancelled", "B b"]
        assert result.session_values == {"last": "successfully transferred to agent [B]"}

    run(main())


def test_of_two_exits_in_one_reply_one_ends_the_run_behind_all_other_calls(run):
    async def main():
        door = Door()
        calls = ToolCalls(
            ("exit", {"final_result": "1"}), ("exit", {"final_result": "2"}), ("slow", {})
        )
        async with CancelledRun(chat("A", calls, tools=[waiting(door)], exit_tool=True)) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == [
                "A calls exit calls exit calls slow",
                "A exit: 2",
                "A RunCancelled",
            ]
            door.open()
            assert await stage.go_on() == ["A slow: slow done", "A exit: 1 exits"]

    run(main())


def test_a_result_that_is_being_looked_at_is_not_lost(run):
    door, slow = Door(), Door()
    slow.open()

    @output_guardrail
    async def look(context, agent, output):
        await door.wait()
        return GuardrailFunctionOutput()

    async def main():
        agent = chat(
            "A",
            ToolCalls(slow={}),
            tools=[waiting(slow, return_directly=True)],
            output_guardrails=[look],
        )
        async with CancelledRun(agent) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A calls slow", "A RunCancelled"]
            door.open()
            assert await stage.go_on() == ["A slow: slow done"]
            assert (door.reached, slow.reached) == (2, 1)

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_call_whose_failure_is_its_agents_is_not_made_again_for_those_that_were_cut_short_beside_it(
    run, at_once, durability
):
    begun = []

    @tool
    async def fail(number: int) -> str:
        begun.append(number)
        raise ValueError(f"broken {number}")

    async def main():
        door = Door()
        calls = ToolCalls(("fail", {"number": 1}), ("fail", {"number": 2}), ("slow", {}))
        agent = chat(
            "A",
            calls,
            tools=[fail, waiting(door)],
            on_tool_error="raise",
            parallel_tool_calls=at_once,
        )
        async with CancelledRun(agent, durability=durability) as stage:
            await stage.play()
            await door.somebody()
            assert await stage.run.cancel() is True
            assert await stage.end() == ["A calls fail calls fail calls slow", "A RunCancelled"]
            door.open()
            assert await stage.go_on() == ["A slow: slow done", "A ToolError"]
            assert str((await stage.run).error) == "tool fail failed: ValueError: broken 1"
            assert begun == [1, 2]

    run(main())


def test_an_agent_that_is_started_again_makes_the_call_again_that_has_failed(run):
    begun = []

    @tool
    async def fail() -> str:
        begun.append("fail")
        if len(begun) == 1:
            raise ValueError("broken")
        return "mended"

    async def main():
        restart = Restart(max_restarts=3, backoff=Backoff(initial=0, maximum=0))
        async with CancelledRun(
            chat(
                "A",
                ToolCalls(fail={}),
                "a",
                tools=[fail],
                on_tool_error="raise",
                on_failure=restart,
            )
        ) as stage:
            await stage.play()
            assert await stage.end() == ["A calls fail", "A fail: mended", "A a"]

    run(main())
