"""Guardrails of the input and of the output of agents: when they run, and what becomes of a run
when one trips.
"""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import (
    ChatModelAgent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    input_guardrail,
    tool,
)
from offbook.runtime import (
    GuardrailTripped,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    Usage,
    UsageError,
)
from tests.doubles.handing import chat
from tests.doubles.waiting import Stage

PARALLEL = pytest.mark.parametrize("parallel", [True, False])


def finding(word, seen=None):
    """A guardrail that trips where the word stands."""

    def look(context, agent, value):
        if seen is not None:
            seen.append((agent.name, value))
        return GuardrailFunctionOutput({"found": word}, word in str(value))

    return look


async def finding_later(context, agent, value):
    await asyncio.sleep(0)
    return GuardrailFunctionOutput("later", "vile" in str(value))


# --- input ---


@PARALLEL
def test_one_that_passes_changes_nothing(parallel, lines):
    seen = []
    a = chat(
        "A",
        "hello",
        input_guardrails=[InputGuardrail(finding("vile", seen), run_in_parallel=parallel)],
    )
    assert lines(Runner(a).query("good").result()) == ['A [A] assistant "hello"']
    assert seen == [("A", "good")]


@PARALLEL
def test_one_that_trips_ends_the_run_with_what_it_has_found(parallel):
    a = chat("A", "hello", input_guardrails=[InputGuardrail(finding("vile"), "words", parallel)])
    result = Runner(a).query("vile").result()
    assert result.status is RunStatus.FAILED
    (event,) = result.events
    assert event.error is result.error
    assert isinstance(event.error, GuardrailTripped)
    assert (event.error.guardrail, event.error.output_info, event.error.agent, event.error.run) == (
        "words",
        {"found": "vile"},
        "A",
        event.run_id,
    )
    assert str(event.error) == "the input guardrail words stopped agent 'A': {'found': 'vile'}"
    assert len(a.model.requests) <= parallel


def test_a_blocking_one_is_over_before_the_model_is_asked(run):
    async def story():
        gate, order = asyncio.Event(), []

        @input_guardrail(run_in_parallel=False)
        async def slow(context, agent, value):
            await gate.wait()
            order.append("checked")
            return GuardrailFunctionOutput()

        a = chat("A", lambda request: order.append("asked") or "hello", input_guardrails=[slow])
        playing = Runner(a).query("q")
        for _ in range(20):
            await asyncio.sleep(0)
        gate.set()
        await playing
        assert order == ["checked", "asked"]

    run(story())


def test_a_parallel_one_that_trips_cancels_the_call_of_the_model(run):
    async def story():
        asked, cancelled = asyncio.Event(), []

        async def slow(request):
            asked.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        @input_guardrail
        async def late(context, agent, value):
            await asked.wait()
            return GuardrailFunctionOutput("no", tripwire_triggered=True)

        result = await Runner(chat("A", slow, input_guardrails=[late])).query("q")
        assert isinstance(result.error, GuardrailTripped)
        assert cancelled == [True]
        assert len(result.events) == 1

    run(story())


@pytest.mark.parametrize("streaming", [False, True])
def test_of_a_reply_that_was_there_first_nothing_is_recorded_or_shown(run, streaming):
    async def story():
        replied, spent = asyncio.Event(), Usage(5, 3, requests=1)

        class Quick:
            async def generate(self, request):
                replied.set()
                return Message.assistant("a secret", usage=spent)

            async def stream(self, request):
                async for item in ScriptedModel(
                    [Message.assistant("a secret", usage=spent)]
                ).stream(request):
                    replied.set()
                    yield item

        @input_guardrail
        async def late(context, agent, value):
            await replied.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            return GuardrailFunctionOutput("no", tripwire_triggered=True)

        store = MemoryStore()
        a = ChatModelAgent(name="A", model=Quick(), input_guardrails=[late])
        session = Runner(a, streaming=streaming, store=store).session("s")
        playing = session.query("q")
        events = [event async for event in playing]
        assert [type(event.error) for event in events] == [GuardrailTripped]
        assert all(message.role == "user" for message in await session.history())
        if not streaming:
            assert (await playing).usage == spent, "nobody is shown it, but it has cost something"

    run(story())


def test_what_streams_is_shown_when_it_has_passed(run):
    async def story():
        gate, asked = asyncio.Event(), asyncio.Event()

        @input_guardrail
        async def late(context, agent, value):
            await gate.wait()
            return GuardrailFunctionOutput()

        shown = []
        a = chat("A", lambda request: asked.set() or "one two", input_guardrails=[late])

        async def watch():
            shown.extend([event async for event in Runner(a, streaming=True).query("q")])

        watching = asyncio.ensure_future(watch())
        await asked.wait()
        for _ in range(50):
            await asyncio.sleep(0)
        assert shown == []
        gate.set()
        await watching
        assert [event.delta.content for event in shown if event.delta is not None] == [
            "one",
            " two",
        ]
        assert shown[-1].message.text == "one two"

    run(story())


def test_a_model_that_fails_ends_the_guardrail_too(run):
    ended = []

    @input_guardrail
    async def endless(context, agent, value):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def story():
        result = await Runner(chat("A", ValueError("no model"), input_guardrails=[endless])).query(
            "q"
        )
        assert isinstance(result.error, ValueError)
        assert ended == [True]

    run(story())


def test_several_run_at_once_and_the_first_that_trips_ends_the_others(run):
    async def story():
        met, ended = asyncio.Barrier(2), []

        async def meets(context, agent, value):
            await met.wait()
            return GuardrailFunctionOutput()

        assert (
            await Runner(chat("A", "hello", input_guardrails=[meets, meets])).query("q")
        ).final_output == "hello"

        async def waits(context, agent, value):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(True)

        for kind in ("input_guardrails", "output_guardrails"):
            result = await Runner(chat("A", "hello vile", **{kind: [waits, finding_later]})).query(
                "vile"
            )
            assert result.error.output_info == "later"
        assert ended == [True, True]

    run(story())


def test_a_conversation_is_given_as_messages_and_a_text_as_a_text():
    seen = []
    a = chat("A", "hello", "hello", input_guardrails=[finding("vile", seen)])
    Runner(a).query("q").result()
    messages = (Message.user("1"), Message.assistant("2"), Message.user("3"))
    Runner(a).run(messages).result()
    assert [value for _, value in seen] == ["q", messages]


@pytest.mark.parametrize("kind", ["input_guardrails", "output_guardrails"])
def test_one_that_raises_or_forgets_ends_the_run(kind):
    def raises(context, agent, value):
        raise KeyError("gone")

    def forgets(context, agent, value):
        """Returns nothing."""

    assert isinstance(
        Runner(chat("A", "hello", **{kind: [raises]})).query("q").result().error, KeyError
    )
    result = Runner(chat("A", "hello", **{kind: [forgets]})).query("q").result()
    assert isinstance(result.error, UsageError)
    assert (
        f"the {kind.partition('_')[0]} guardrail forgets must return a "
        "GuardrailFunctionOutput, got None" in str(result.error)
    )


def test_it_is_not_run_again_when_the_run_goes_on():
    seen = []

    @tool(needs_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    a = chat(
        "A",
        ToolCalls(pay={}),
        "done",
        tools=[pay],
        input_guardrails=[finding("vile", seen)],
        output_guardrails=[finding("vile", seen)],
    )
    stage = Stage(a)
    stage.start("good")
    assert seen == [("A", "good")]
    assert stage.go_on(data=True).final_output == "done"
    assert seen == [("A", "good"), ("A", "done")]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_run_that_is_kept_may_trip_on_anything(durability):
    def trips(context, agent, value):
        return GuardrailFunctionOutput(object(), tripwire_triggered=True)

    for options in ({"input_guardrails": [trips]}, {"output_guardrails": [trips]}):
        result = (
            Runner(chat("A", "hello", **options), store=MemoryStore(), durability=durability)
            .query("q")
            .result()
        )
        assert isinstance(result.error, GuardrailTripped)


# --- output ---


class Answer(BaseModel):
    text: str


def test_what_an_agent_ends_with_is_looked_at_before_it_is_recorded():
    a = chat("A", "a vile word", output_guardrails=[OutputGuardrail(finding("vile"))])
    result = Runner(a).query("q").result()
    assert isinstance(result.error, GuardrailTripped)
    assert [event.message for event in result.events] == [None]
    assert str(result.error).startswith("the output guardrail look stopped agent 'A'")


def test_an_answer_in_a_form_is_given_as_what_it_is():
    seen = []
    a = chat(
        "A",
        '{"text":"fine"}',
        '{"text":"vile"}',
        output_type=Answer,
        output_guardrails=[finding("vile", seen)],
    )
    assert Runner(a).query("q").result().final_output == Answer(text="fine")
    assert isinstance(Runner(a).query("q").result().error, GuardrailTripped)
    assert [value for _, value in seen] == [Answer(text="fine"), Answer(text="vile")]


def test_an_answer_of_nothing_is_one():
    seen = []
    a = chat("A", "null", output_type=Answer | None, output_guardrails=[finding("vile", seen)])
    Runner(a).query("q").result()
    assert seen == [("A", None)]


def test_a_result_with_which_the_agent_ends_is_looked_at():
    @tool(return_directly=True)
    async def look() -> str:
        """Look."""
        return "something vile"

    direct = chat("A", ToolCalls(look={}), tools=[look], output_guardrails=[finding("vile")])
    leaving = chat(
        "A",
        ToolCalls(exit={"final_result": "vile"}),
        exit_tool=True,
        output_guardrails=[finding("vile")],
    )
    for agent in (direct, leaving):
        result = Runner(agent).query("q").result()
        assert isinstance(result.error, GuardrailTripped)
        assert all(
            event.message is None or event.message.role == "assistant" for event in result.events
        )


def test_what_is_said_on_the_way_is_not_looked_at():
    @tool
    async def look() -> str:
        """Look."""
        return "vile"

    a = chat(
        "A",
        ToolCalls(("look", {}), text="vile"),
        "fine",
        tools=[look],
        output_guardrails=[finding("vile")],
    )
    assert Runner(a).query("q").result().final_output == "fine"


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_an_input_guardrail_that_ends_in_a_cancellation_of_its_own_ends_the_run(
    run, streaming, later
):
    async def look(context, agent, value):
        if later:
            await asyncio.sleep(0)
        raise asyncio.CancelledError("of my own")

    async def main():
        a = chat("A", "hello", input_guardrails=[InputGuardrail(look)])
        result = await asyncio.wait_for(Runner(a, streaming=streaming).query("good"), 5)
        assert result.status is RunStatus.FAILED
        assert result.final_message is None

    run(main())


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("how", ["passes", "trips", "raises", "is cut off"])
def test_what_the_reply_has_cost_is_counted_whatever_becomes_of_the_output(run, how, typed):
    class Word(BaseModel):
        word: str

    reached = asyncio.Event()

    async def look(context, agent, value):
        reached.set()
        if how == "is cut off":
            await asyncio.Event().wait()
        if how == "raises":
            raise ValueError("no")
        return GuardrailFunctionOutput(None, how == "trips")

    async def main():
        reply = Message("assistant", '{"word": "x"}' if typed else "x", usage=Usage(7, 5, 3, 1))
        agent = ChatModelAgent(
            name="A",
            model=ScriptedModel([reply]),
            output_guardrails=[OutputGuardrail(look)],
            output_type=Word if typed else None,
        )
        for store in (None, MemoryStore()):
            reached.clear()
            agent.model.__init__([reply])
            runner = Runner(agent, store=store, keep=None if store is None else "all")
            started = runner.query("go")
            if how == "is cut off":
                waiter = asyncio.ensure_future(_result(started))
                await asyncio.wait_for(reached.wait(), 5)
                started.cancel()
                result = await waiter
            else:
                result = await started
            assert result.usage == Usage(7, 5, 3, 1)
            if store is not None and how != "is cut off":
                assert (await runner.info(started.id)).usage == Usage(7, 5, 3, 1)

    run(main())


async def _result(started):
    return await started
