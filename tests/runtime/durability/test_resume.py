"""A custom agent waits for something from outside, and goes on with it."""

import pytest

from offbook.actors import Agent, Loop, Sequential
from offbook.runtime import (
    AddressStep,
    AgentEvent,
    InterruptContext,
    Message,
    Runner,
    RunStatus,
    Usage,
)
from tests.doubles.waiting import Asker, Naive, Stage, chain, chat

# --- the interrupt ---


def test_an_interrupt_is_the_last_event_and_says_who_waits_for_what(lines):
    result = Stage(Asker("A", {"question": "size?"})).start()
    assert lines(result) == ["A [A] {Interrupted 1}"]
    (context,) = result.interrupts
    assert context == InterruptContext(
        context.id, (AddressStep("agent", "A"),), {"question": "size?"}, True, None
    )
    assert context.id
    assert result.events[0].action.contexts == result.interrupts
    assert (result.status, result.error, result.final_message, result.final_output) == (
        RunStatus.INTERRUPTED,
        None,
        None,
        None,
    )
    result.raise_for_error()  # it has not failed


def test_without_a_store_a_run_is_interrupted_all_the_same(lines):
    run = Runner(Asker("A")).query("q")
    assert lines(run.result(20)) == ["A [A] {Interrupted 1}"]
    assert run.checkpoint_id is None


def test_what_was_said_before_an_interrupt_comes_before_it(lines):
    class Speaks(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield AgentEvent.say("one moment")
                yield context.interrupt("?")
            else:
                yield AgentEvent.say("thanks")

    after = Asker("B")
    stage = Stage(Sequential(name="S", sub_agents=[Speaks(name="A"), after]))
    assert lines(stage.start()) == ['A [S,A] assistant "one moment"', "A [S,A] {Interrupted 1}"]
    assert lines(stage.go_on()) == ['A [S,A] assistant "thanks"', "B [S,A,B] {Interrupted 1}"]
    assert [message.text for message in after.inputs[0].messages] == [
        "q",
        "For context: [A] said: one moment.",
        "For context: [A] said: thanks.",
    ]


def test_what_comes_behind_an_interrupt_is_not_taken(lines):
    class GoesOn(Agent):
        async def run(self, input, context):
            yield context.interrupt("?")
            yield AgentEvent.say("never")

    assert lines(Stage(GoesOn(name="A")).start()) == ["A [A] {Interrupted 1}"]


# --- going on ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_who_is_resumed_is_told_the_data_and_its_state_and_there_is_no_event_for_it(
    lines, durability
):
    agent = Asker("A")
    stage = Stage(agent, durability=durability)
    stage.start()
    result = stage.go_on(data="blue")
    assert lines(result) == ['A [A] assistant "A heard blue"']
    assert (result.status, result.interrupts, result.final_output) == (
        RunStatus.COMPLETED,
        (),
        "A heard blue",
    )
    first, second = agent.resumes
    assert first is None
    assert (
        second.was_interrupted,
        second.is_target,
        second.data,
        second.state,
        second.streaming,
    ) == (True, True, "blue", [], False)


@pytest.mark.parametrize(
    "data",
    [
        None,
        False,
        0,
        "",
        [],
        {},
        "x",
        1.5,
        b"\x00",
        ["a", {"b": [1]}],
        ("a", 1),
        Message("user", "hi", id="m1"),
        Usage(1, 2),
    ],
    ids=repr,
)
def test_data_and_state_come_back_as_they_were_given(data):
    seen = []

    class Keeps(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt(data, state=data)
            else:
                seen.append(context.resume)

    stage = Stage(Keeps(name="A"))
    assert stage.start().interrupts[0].info == data
    assert stage.go_on(data=data).status == "completed"
    (resume,) = seen
    assert (resume.data, resume.state) == (data, data)
    assert (type(resume.data), type(resume.state)) == (type(data), type(data))


def test_without_data_one_is_the_target_all_the_same():
    agent = Asker("A")
    stage = Stage(agent)
    stage.start()
    assert stage.go_on().final_output == "A heard None"
    assert agent.resumes[1].is_target


@pytest.mark.parametrize("streaming", [False, True])
def test_whether_it_streams_comes_from_the_checkpoint(streaming):
    agent = Asker("A")
    stage = Stage(
        Sequential(name="S", sub_agents=[agent, chat("B", "two words")]), streaming=not streaming
    )
    stage.start(streaming=streaming)
    events = list(stage.runner.resume(stage.id, data="x"))
    assert agent.resumes[1].streaming is streaming
    assert agent.inputs[1].streaming is streaming
    assert [event.delta.content for event in events if event.delta] == (
        ["two", " words"] if streaming else []
    )
    assert events[-1].message.text == "two words"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_agent_may_ask_again_and_again(lines, durability):
    agent = Asker("A", "1?", "2?", "3?")
    stage = Stage(agent, durability=durability)
    results = [
        stage.start(),
        stage.go_on(data="one"),
        stage.go_on(data="two"),
        stage.go_on(data="three"),
    ]
    assert [lines(result) for result in results] == [["A [A] {Interrupted 1}"]] * 3 + [
        ['A [A] assistant "A heard one,two,three"']
    ]
    contexts = [result.interrupts[0] for result in results[:3]]
    assert [context.info for context in contexts] == ["1?", "2?", "3?"]
    assert len({context.id for context in contexts}) == 3
    assert len({context.address for context in contexts}) == 1


def test_the_state_at_an_interrupt_is_that_of_the_last_one():
    seen = []

    class Counts(Agent):
        async def run(self, input, context):
            seen.append(None if context.resume is None else context.resume.state)
            if len(seen) < 4:
                yield context.interrupt("?", state=None if len(seen) == 3 else len(seen))

    stage = Stage(Counts(name="A"))
    stage.start()
    for _ in range(3):
        stage.go_on()
    assert seen == [None, 1, 2, None]


def test_an_agent_that_plays_a_second_time_is_not_told_of_the_first(lines):
    agent = Asker("A")
    stage = Stage(Loop(name="L", sub_agents=[agent], max_iterations=2))
    assert lines(stage.start()) == ["A [L,A] {Interrupted 1}"]
    assert lines(stage.go_on(data="x")) == [
        'A [L,A] assistant "A heard x"',
        "A [L,A,A] {Interrupted 1}",
    ]
    assert lines(stage.go_on(data="y")) == ['A [L,A,A] assistant "A heard y"']
    assert [resume is None for resume in agent.resumes] == [True, False, True, False]


def test_the_input_is_there_again():
    agent = Asker("B")
    stage = Stage(Sequential(name="S", sub_agents=[chat("A", "hello"), agent]))
    stage.start("the question")
    stage.go_on(data="x")
    first, second = agent.inputs
    assert first == second
    assert [message.text for message in second.messages] == [
        "the question",
        "For context: [A] said: hello.",
    ]


# --- what else is in the checkpoint ---


def test_the_agent_s_own_state_is_there_again():
    seen = []

    class Counts(Agent):
        async def run(self, input, context):
            seen.append(dict(context.state))
            context.state["count"] = context.state.get("count", 0) + 1
            if len(seen) < 3:
                yield context.interrupt("?")

    stage = Stage(Counts(name="A"))
    stage.start()
    stage.go_on()
    stage.go_on()
    assert seen == [{}, {"count": 1}, {"count": 2}]


def test_a_step_that_was_done_is_not_done_again():
    done = []

    class Works(Agent):
        async def run(self, input, context):
            async def work():
                done.append("work")
                return {"price": 5}

            price = await context.step("price", work)
            if context.resume is None:
                yield context.interrupt(price)
            else:
                yield AgentEvent.say(f"paid {price['price']}")

    stage = Stage(Works(name="A"))
    assert stage.start().interrupts[0].info == {"price": 5}
    assert stage.go_on().final_output == "paid 5"
    assert done == ["work"]


def test_a_run_that_goes_on_is_the_same_run():
    stage = Stage(Asker("A", "1?", "2?"))
    events = [*stage.start().events, *stage.go_on(data="x").events, *stage.go_on(data="y").events]
    assert len({event.run_id for event in events}) == 1
    assert len({event.invocation_id for event in events}) == 1


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g06_the_events_of_a_run_have_one_order_over_all_of_its_parts(durability):
    stage = Stage(
        Sequential(name="S", sub_agents=[Asker("A", "1?", "2?"), Asker("B")]), durability=durability
    )
    parts = [stage.start(), *(stage.go_on(data=data) for data in "xyz")]
    numbers = [event.seq for part in parts for event in part.events]
    assert len(numbers) == 5
    assert numbers == sorted(set(numbers))


# --- a child that is cast ---


class Casts(Agent):
    """Has another agent play, and says how that ended."""

    def __init__(self, name, child):
        super().__init__(name=name)
        self.child, self.seen = child, []

    async def run(self, input, context):
        self.seen.append(context.resume)
        outcome = await context.cast(self.child)
        if outcome.kind == "interrupted":
            return
        yield AgentEvent.say(f"{self.child.name} has {outcome.kind}: {outcome.message.text}")


@pytest.mark.parametrize("child", [Asker("B"), Naive(name="B")], ids=["asker", "naive"])
def test_an_interrupt_of_a_child_that_was_cast_is_that_of_its_parent(lines, child):
    stage = Stage(Casts("A", child))
    result = stage.start()
    assert lines(result) == ["B [A,B] {Interrupted 1}"]
    assert chain(result.interrupts[0])[0] == "agent:A/agent:B 'B?' root"
    assert [context.is_root_cause for context in result.interrupts] == [True]
    result = stage.go_on(data="x")
    assert lines(result) == [
        'B [A,B] assistant "B heard x"',
        'A [A] assistant "B has finished: B heard x"',
    ]
    assert result.status == "completed"
