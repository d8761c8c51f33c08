"""G8 without killing anybody: from what was in the store after each single write, another runner
goes on with the run, and nothing is lost or done again.
"""

import asyncio
from collections import Counter

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AgentEvent, Message, ResumeError, Runner, ScriptedModel, ToolCalls
from tests.doubles.snapshots import Snapshots, events_of, journal_of
from tests.programs.long_play import make_play


def said(events):
    """The messages of each agent, with who said them where; the results of tools in no order."""
    found = {}
    for event in events:
        message = event.message
        found.setdefault(event.agent_name, []).append(
            (event.run_path, message.role, message.text, message.tool_call_id)
        )
    return {
        name: (Counter(lines), [line for line in lines if line[1] != "tool"])
        for name, lines in found.items()
    }


async def recovered(agent, content):
    """The result of the one run that is recovered from there; None if there is none."""
    runs = await Runner(
        agent, store=Snapshots(content), durability="step", keep="unfinished"
    ).recover()
    assert len(runs) <= 1
    return await runs[0] if runs else None


def test_g08_from_every_write_a_run_goes_on_to_the_same_end(run):
    async def main():
        store = Snapshots()
        first = await Runner(
            make_play(len), store=store, durability="step", keep="unfinished"
        ).query("go")
        assert first.status == "completed"
        assert not store.content()
        went_on = 0
        for _what, content in store.taken:
            before = [event for event in events_of(content) if event.agent_name != "Digger"]
            begun = []
            result = await recovered(make_play(begun.append), content)
            if result is None:
                continue
            went_on += 1
            assert result.status == "completed"
            assert said([*before, *result.events]) == said(first.events)
            assert result.usage == first.usage
            assert result.session_values == first.session_values
            assert (
                result.events[-1].seq == len(first.events)
                if result.events
                else len(before) == len(first.events)
            )
            done = {event.message.tool_call_id for event in before if event.message.role == "tool"}
            assert done.isdisjoint(
                line.split()[2] for line in begun if line.startswith("begin tool")
            )
        assert went_on == len(store.taken) - 1, (
            "all but the last step, behind which it is not there any more"
        )

    run(main())


class Thinker(Agent):
    """Notes that it has said something before it says it, and thinks in between."""

    def __init__(self, thinking):
        super().__init__(name="Thinker")
        self.thinking = thinking

    async def run(self, asked, context):
        while context.state.get("said", 0) < 2:
            context.state["said"] = context.state.get("said", 0) + 1
            await self.thinking.wait()
            yield AgentEvent.say(f"thought {context.state['said']}")


@pytest.mark.parametrize("nested", [False, True])
def test_g08_what_an_agent_has_noted_for_its_next_step_is_recorded_with_that_step(run, nested):
    """And not with whatever somebody else has said meanwhile: else the step would be taken for
    done.
    """

    async def main():
        store, thinking = Snapshots(), asyncio.Event()

        class Speaker(Agent):
            async def run(self, asked, context):
                for number in range(3):
                    yield AgentEvent.say(f"spoke {number}")
                thinking.set()

        thinker = Thinker(thinking)
        agent = Parallel(
            name="P",
            sub_agents=[
                Sequential(name="S", sub_agents=[thinker]) if nested else thinker,
                Speaker(name="Speaker"),
            ],
        )
        first = await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        assert len(first.events) == 5
        for _what, content in store.taken[:-1]:
            before = events_of(content)
            result = await recovered(agent, content)
            texts = [
                event.message.text
                for event in [*before, *result.events]
                if event.agent_name == "Thinker"
            ]
            assert texts == ["thought 1", "thought 2"]

    run(main())


class Speaks(Agent):
    """Once."""

    async def run(self, asked, context):
        if not context.state.get("said"):
            context.state["said"] = True
            yield AgentEvent.say(f"{self.name} speaks")


@pytest.mark.parametrize("last", [Sequential, Parallel])
def test_g08_the_result_of_an_agent_tool_is_what_was_said_last_in_it_before_and_after(run, last):
    async def main():
        store = Snapshots()
        inner = last(
            name="Inner",
            sub_agents=[Speaks(name="A"), Sequential(name="B", sub_agents=[Speaks(name="C")])],
        )

        def reply(request):
            return (
                "done"
                if request.messages[-1].role == "tool"
                else ToolCalls("Inner", {"request": "?"})
            )

        agent = ChatModelAgent(
            name="Outer", model=ScriptedModel([reply] * 99), tools=[inner.as_tool()]
        )
        await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        for _what, content in store.taken[:-1]:
            result = await recovered(agent, content)
            texts = [
                event.message.text
                for event in [*events_of(content), *result.events]
                if event.agent_name == "Outer"
            ]
            assert texts == ["", "C speaks", "done"]

    run(main())


def test_g08_what_an_agent_does_once_is_not_done_again_when_it_is_recorded(run):
    made = []

    class Makes(Agent):
        async def run(self, asked, context):
            for name in ("one", "two"):

                async def make(name=name):
                    made.append(name)
                    return [name, len(made)]

                await context.step(name, make)
            results = [await context.step(name, None) for name in ("one", "two")]
            yield AgentEvent.say(f"made {results}")

    async def main():
        store, agent = Snapshots(), Makes(name="A")
        await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        assert made == ["one", "two"]
        found = []
        for _what, content in store.taken[:-1]:
            made.clear()
            await recovered(agent, content)
            found.append(tuple(made))
        assert found == [("one", "two"), ("two",), (), ()], (
            "from the beginning, behind each of the two, and behind the event"
        )

    run(main())


def test_g08_a_run_that_had_said_all_ends_with_what_it_had_said(run):
    """It was lost between its last event and its end."""

    async def main():
        store = Snapshots()
        # Which is put there between the two.
        agent = ChatModelAgent(name="A", model=ScriptedModel(["the answer"]), output_key="answer")
        first = await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        content = next(content for _what, content in store.taken if events_of(content))
        result = await recovered(agent, content)
        assert result.status == first.status == "completed"
        assert result.events == ()
        assert result.final_message == Message.assistant("the answer")
        assert result.final_output == "the answer"

    run(main())


@pytest.mark.parametrize(
    "value",
    [[2**70], {"half": "\ud800"}, {"deep": [[[(1, {2})]]]}, "\ud800", 2**70, {1: {None: (1,)}}],
    ids=repr,
)
def test_g08_whatever_can_be_kept_may_be_a_session_value(run, value):
    async def main():
        store = Snapshots()
        agent = Thinker([])
        first = await Runner(agent, store=store, durability="step", keep="unfinished").query(
            "go", session_values={"value": value}
        )
        assert first.session_values == {"value": value}
        content = next(content for _what, content in store.taken if events_of(content))
        assert (await recovered(agent, content)).session_values == {"value": value}

    run(main())


def test_g08_the_answer_of_a_model_and_the_end_of_its_run_are_one_step(run):
    """From each step the run goes on, or it has ended with all that it has said: no process finds
    one that only has to be ended.
    """

    async def main():
        store = Snapshots()
        agent = ChatModelAgent(name="A", model=ScriptedModel(["the answer"] * 2))
        first = await Runner(agent, store=store, durability="step").query("go")
        (_, begun), (_, ended) = store.taken
        assert not events_of(begun)
        assert [event.message.text for event in events_of(ended)] == ["the answer"]
        assert await recovered(agent, ended) is None
        again = await Runner(agent, store=Snapshots(ended), durability="step").attach(
            first.events[0].run_id
        )
        assert (again.status, again.final_message, again.final_output) == (
            "completed",
            first.final_message,
            "the answer",
        )
        assert again.events == first.events
        assert (await recovered(agent, begun)).final_output == "the answer"

    run(main())


def test_g08_a_step_is_as_long_as_what_is_new_in_it(run):
    """Behind a hundred messages a record is no longer than behind two."""

    async def main():
        store = Snapshots()
        lines = [ToolCalls("look", {"text": "x"}) for _ in range(99)]

        def look(text: str) -> str:
            return text

        agent = ChatModelAgent(
            name="A", model=ScriptedModel([*lines, "end"]), tools=[look], max_iterations=100
        )
        await Runner(agent, store=store, durability="step", keep="unfinished").query("go")
        changes = [
            len(journal_of(content)) for _what, content in store.taken if journal_of(content)
        ]
        assert len(changes) > 190
        last = [content for _what, content in store.taken if events_of(content)][-1]
        (journal,) = [records for key, (_value, records) in last.items() if ":journal:" in key]
        sizes = [len(record) for record in journal]
        assert max(sizes[10:]) <= 1.1 * max(sizes[1:5])

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_run_that_was_cancelled_goes_on_from_its_last_step_as_one_that_was_killed_does(
    run, durability
):
    """What it had noted for the next one is not taken for that."""

    async def main():
        thinking, begun = asyncio.Event(), asyncio.Event()

        class Thinks(Thinker):
            async def run(self, asked, context):
                begun.set()
                async for event in super().run(asked, context):
                    yield event

        runner = Runner(Thinks(thinking), store=Snapshots(), durability=durability)
        running = runner.query("go", checkpoint_id="c")
        await begun.wait()
        assert await running.cancel()
        thinking.set()
        result = await runner.resume("c")
        assert [event.message.text for event in result.events] == ["thought 1", "thought 2"]

    run(main())


@tool(name="ask")
async def ask(context: ToolContext) -> str:
    return f"told {context.interrupt('sure?')}"


async def answered(agent, content, durability):
    """The results of what goes on from there: answered, if it still can be, and else recovered."""
    runner = Runner(agent, store=Snapshots(content), durability=durability)
    try:
        return [await runner.resume("c", data="yes")]
    except ResumeError:
        return [await one for one in await runner.recover()]


def test_g08_a_run_whose_steps_are_kept_from_an_answer_on_goes_on_from_each_of_them(run):
    async def main():
        store, agent = Snapshots(), make_play(len, ask=ask)
        await Runner(agent, store=store, durability="interrupt").query("go", checkpoint_id="c")
        start = len(store.taken)
        whole = await Runner(agent, store=store, durability="step", keep="unfinished").resume(
            "c", data="yes"
        )
        assert whole.status == "completed"
        for _what, content in store.taken[start:-1]:
            (result,) = await answered(agent, content, "step")
            before = [event for event in events_of(content) if event.agent_name != "Digger"]
            assert said([*before, *result.events]) == said(whole.events)
            assert result.usage == whole.usage

    run(main())


def test_g08_a_run_whose_steps_are_no_more_kept_from_an_answer_on_is_answered_once(run):
    async def main():
        store, agent = Snapshots(), make_play(len, ask=ask)
        await Runner(agent, store=store, durability="step", keep="unfinished").query(
            "go", checkpoint_id="c"
        )
        start = len(store.taken)
        whole = await Runner(agent, store=store, durability="interrupt").resume("c", data="yes")
        assert whole.status == "completed"
        for what, content in store.taken[start - 1 :]:
            for durability in ("interrupt", "step"):
                results = await answered(agent, content, durability)
                is_answered = any(key.startswith("offbook:answered:") for key in content)
                assert len(results) == (0 if is_answered else 1), what
                assert [said(result.events) for result in results] == [said(whole.events)] * len(
                    results
                )

    run(main())
