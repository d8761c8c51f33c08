"""Agents that users write themselves: what they may yield, and what becomes of their mistakes."""

import asyncio

import pytest

from offbook.actors import Agent, AgentInput, Sequential
from offbook.runtime import (
    AgentEvent,
    CustomAction,
    Exit,
    Message,
    Runner,
    RunStatus,
    TransferToAgent,
    UsageError,
)


def play(agent, **options):
    return Runner(agent).query("q", **options).result(10)


def agent_of(run_function, name="A"):
    return type("Own", (Agent,), {"run": run_function})(name=name)


# --- events ---


def test_it_is_given_its_input_and_its_context():
    seen = []

    async def run(self, input, context):
        seen.append(
            (
                input,
                context.agent_name,
                context.run_path,
                context.run_id,
                context.session_id,
                context.resume,
                dict(context.options),
            )
        )
        yield AgentEvent.say("hello")

    one = Runner(agent_of(run)).query("q", session_id="s")
    assert one.result().final_output == "hello"
    assert seen == [
        (AgentInput((Message.user("q"),), streaming=False), "A", ("A",), one.id, "s", None, {})
    ]


def test_it_yields_messages_outputs_and_actions(lines, actor):
    event = AgentEvent.of(Message.assistant("m"), CustomAction("a"), custom_output={"k": 1})
    assert lines(play(actor("A", event))) == [
        "A [A] assistant \"m\" out({'k': 1}) {CustomAction 'a'}"
    ]


def test_the_output_of_the_last_event_is_the_run_s(actor):
    assert play(actor("A", "text")).final_output == "text"
    assert play(actor("A", "text", AgentEvent.of(custom_output=7))).final_output == 7
    assert (
        play(actor("A", AgentEvent.of(Message.assistant("m"), custom_output=7))).final_output == 7
    )


def test_an_agent_that_yields_nothing_is_a_run_without_events(actor):
    result = play(actor("A"))
    assert (
        result.status,
        result.events,
        result.final_message,
        result.final_output,
        result.last_agent,
    ) == (RunStatus.COMPLETED, (), None, None, "A")


def test_what_it_yields_was_shown_when_it_goes_on(run, actor):
    async def main():
        seen, order = [], []

        async def note(_context):
            order.append(len(seen))

        one = Runner(actor("A", "1", note, "2", note)).query("q")
        async for event in one:
            seen.append(event)
        assert [event.message.text for event in seen] == ["1", "2"]
        assert len(order) == 2

    run(main())


# --- errors ---


def test_an_error_is_one_event_after_which_the_run_ends(lines):
    error = ValueError("broken")

    async def run(self, input, context):
        yield AgentEvent.say("a")
        raise error

    result = play(agent_of(run))
    assert lines(result) == ['A [A] assistant "a"', "A [A] error ValueError: broken"]
    assert result.error is error is result.events[-1].error
    with pytest.raises(ValueError, match="broken"):
        result.raise_for_error()


def test_an_error_event_that_it_yields_ends_it_at_once(lines, actor):
    agent = actor("A", AgentEvent(error=ValueError("broken")), "never")
    result = play(agent)
    assert lines(result) == ["A [A] error ValueError: broken"]
    assert result.status is RunStatus.FAILED
    assert agent.reached[-1] != "never"


@pytest.mark.parametrize(
    "yielded", ["text", None, 5, Message.assistant("x"), Exit(), ValueError("x"), AgentEvent]
)
def test_what_is_no_event_is_an_error_that_says_so(yielded):
    async def run(self, input, context):
        yield AgentEvent.say("first")
        yield yielded
        yield AgentEvent.say("never")

    result = play(agent_of(run))
    assert len(result.events) == 2
    assert isinstance(result.error, UsageError)
    assert "agent 'A' must yield AgentEvents, got" in str(result.error)
    assert "AgentEvent" in str(result.error)


async def _coroutine(self, input, context):
    return None


def _generator(self, input, context):
    yield AgentEvent.say("x")


def _nothing(self, input, context):
    return None


def _list(self, input, context):
    return [AgentEvent.say("x")]


@pytest.mark.parametrize("function", [_coroutine, _generator, _nothing, _list])
def test_a_run_that_is_no_async_generator_is_an_error_that_says_so(function):
    result = play(agent_of(function))
    assert isinstance(result.error, UsageError)
    assert "'A'" in str(result.error)
    assert "async def run" in str(result.error)
    assert [event.error for event in result.events] == [result.error]


def test_a_run_that_raises_before_it_is_a_generator_is_an_error():
    def run(self, input, context):
        raise ValueError("early")

    assert str(play(agent_of(run)).error) == "early"


def test_an_agent_without_run_is_an_error_that_says_so():
    assert "must have a method run()" in str(play(Agent(name="A")).error)


@pytest.mark.parametrize("error", [StopIteration("x"), StopAsyncIteration("x")])
def test_the_end_of_an_iteration_raised_by_hand_is_an_error(error):
    async def run(self, input, context):
        yield AgentEvent.say("a")
        raise error

    assert play(agent_of(run)).status is RunStatus.FAILED


def test_any_async_iterator_will_do():
    class Stream:
        def __init__(self):
            self.left = ["a", "b"]

        def __aiter__(self):
            return self

        async def __anext__(self):
            if not self.left:
                raise StopAsyncIteration
            return AgentEvent.say(self.left.pop(0))

    def run(self, input, context):
        return Stream()

    assert [event.message.text for event in play(agent_of(run)).events] == ["a", "b"]


def test_a_generator_is_closed_where_it_was_left():
    closed = []

    async def run(self, input, context):
        try:
            yield AgentEvent.of(action=Exit())
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    assert play(agent_of(run)).status is RunStatus.COMPLETED
    assert closed == [True]


@pytest.mark.parametrize("stubborn", [True, False])
def test_nothing_that_an_agent_does_after_its_exit_counts(lines, stubborn):
    async def run(self, input, context):
        try:
            yield AgentEvent.of(action=Exit())
        finally:
            if stubborn:
                yield AgentEvent.say("never")
            raise ValueError("never")

    result = play(agent_of(run))
    assert lines(result) == ["A [A] {Exit}"]
    assert result.status is RunStatus.COMPLETED


# --- cast ---


def test_cast_lets_another_agent_play_and_tells_how_it_ended(lines, actor):
    child = actor("C", "c1", "c2")
    outcomes = []

    async def run(self, input, context):
        yield AgentEvent.say("before")
        outcomes.append(await context.cast(child))
        yield AgentEvent.say("after")

    assert lines(play(agent_of(run))) == [
        'A [A] assistant "before"',
        'C [A,C] assistant "c1"',
        'C [A,C] assistant "c2"',
        'A [A] assistant "after"',
    ]
    (outcome,) = outcomes
    assert outcome.finished
    assert (outcome.kind, outcome.message.text, outcome.error) == ("finished", "c2", None)


def test_a_cast_child_that_fails_is_shown_and_its_parent_may_go_on(lines, actor):
    child = actor("C", ValueError("broken"))
    outcomes = []

    async def run(self, input, context):
        outcomes.append(await context.cast(child))
        yield AgentEvent.say("never mind")

    result = play(agent_of(run))
    assert lines(result) == ["C [A,C] error ValueError: broken", 'A [A] assistant "never mind"']
    assert (result.status, outcomes[0].kind) == (RunStatus.COMPLETED, "failed")
    with pytest.raises(ValueError, match="broken"):
        outcomes[0].raise_for_error()


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (ValueError("x"), RunStatus.FAILED),
        (Exit(), RunStatus.COMPLETED),
        (KeyboardInterrupt(), RunStatus.FAILED),
    ],
)
def test_a_parent_that_does_nothing_after_its_child_ends_the_same_way(actor, end, status):
    child, after = actor("C", end), actor("Z", "never")
    parent = actor("A", lambda context: context.cast(child))
    assert play(Sequential(name="S", sub_agents=[parent, after])).status is status
    assert after.inputs == []


def test_a_child_may_be_cast_many_times_and_in_many_depths(actor):
    leaf = actor("Leaf", "leaf")
    middle = actor("Middle", lambda context: context.cast(leaf))

    async def run(self, input, context):
        for _ in range(3):
            await context.cast(middle)
        yield AgentEvent.say("end")

    result = play(agent_of(run))
    assert [event.run_path for event in result.events] == [("A", "Middle", "Leaf")] * 3 + [("A",)]
    assert len({event.invocation_id for event in result.events}) == 4


def test_children_may_be_cast_at_once(run, actor):
    async def main():
        first, second = asyncio.Event(), asyncio.Event()

        async def open_first(_context):
            first.set()
            await second.wait()

        async def open_second(_context):
            await first.wait()
            second.set()

        one, two = actor("C1", open_first, "1"), actor("C2", open_second, "2")

        async def run(self, input, context):
            outcomes = await asyncio.gather(context.cast(one), context.cast(two))
            yield AgentEvent.say(" ".join(outcome.message.text for outcome in outcomes))

        result = await Runner(agent_of(run)).query("q")
        assert result.final_output == "1 2"
        assert result.status is RunStatus.COMPLETED

    run(main())


def test_what_is_no_agent_cannot_be_cast():
    async def run(self, input, context):
        await context.cast("somebody")
        yield AgentEvent.say("never")

    result = play(agent_of(run))
    assert isinstance(result.error, UsageError)
    assert "is not an agent" in str(result.error)


def test_the_tree_of_a_cast_agent_is_checked_too(actor):
    child = Sequential(name="S", sub_agents=[actor("X"), actor("X")])
    result = play(actor("A", lambda context: context.cast(child)))
    assert isinstance(result.error, UsageError)
    assert "'X'" in str(result.error)


# --- step and state ---


def test_a_step_is_done_once_and_its_result_is_kept():
    done = []

    async def fetch():
        done.append(1)
        return {"x": len(done)}

    async def run(self, input, context):
        first = await context.step("fetch", fetch)
        second = await context.step("fetch", fetch)
        other = await context.step("other", fetch)
        yield AgentEvent.of(custom_output=(first, second, other))

    assert play(agent_of(run)).final_output == ({"x": 1}, {"x": 1}, {"x": 2})


def test_steps_are_each_invocation_s_own():
    done = []

    async def fetch():
        done.append(1)
        return len(done)

    async def run(self, input, context):
        yield AgentEvent.of(custom_output=await context.step("fetch", fetch))

    agent = agent_of(run)
    runner = Runner(agent)
    assert [runner.query("q").result().final_output for _ in range(2)] == [1, 2]


def test_a_step_that_fails_is_not_kept():
    tried = []

    async def fetch():
        tried.append(1)
        if len(tried) == 1:
            raise ConnectionError("down")
        return "up"

    async def run(self, input, context):
        try:
            await context.step("fetch", fetch)
        except ConnectionError:
            yield AgentEvent.say(await context.step("fetch", fetch))

    assert play(agent_of(run)).final_output == "up"


def test_a_step_needs_a_function():
    async def fetch():
        return 1

    async def run(self, input, context):
        made = fetch()
        try:
            await context.step("fetch", made)
        finally:
            made.close()
        yield AgentEvent.say("never")

    result = play(agent_of(run))
    assert isinstance(result.error, UsageError)
    assert "'fetch'" in str(result.error)


def test_state_is_each_invocation_s_own(actor):
    seen = []

    async def count(context):
        seen.append(dict(context.state))
        context.state["n"] = context.state.get("n", 0) + 1

    agent = actor("A", count, count, "x")
    runner = Runner(agent)
    runner.query("q").result()
    runner.query("q").result()
    assert seen == [{}, {"n": 1}] * 2


@pytest.mark.parametrize(
    "event",
    [
        AgentEvent.of(action="exit"),
        AgentEvent.of(action=Exit),
        AgentEvent.of(message="text"),
        AgentEvent.of(action=TransferToAgent(None)),
    ],
    ids=["text", "class", "message", "nobody"],
)
def test_an_event_that_holds_something_else_than_it_should_is_an_error_that_says_so(actor, event):
    result = play(actor("A", event, "never"))
    assert isinstance(result.error, UsageError)
    assert "'A'" in str(result.error)
