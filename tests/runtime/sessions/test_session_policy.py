"""How much of a long session a model is given."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import offbook.actors
from offbook.actors import ChatModelAgent, handoff
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    ModelBehaviorError,
    Runner,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    Usage,
    UsageError,
    keep_last,
    summarize,
)
from offbook.runtime.sessions.session_policy import as_policy


def test_they_are_the_input_filters_of_handoffs():
    assert (offbook.actors.keep_last, offbook.actors.summarize) == (keep_last, summarize)


def test_one_object_bounds_a_session_and_filters_a_handoff_in_it(run):
    async def main():
        store, policy = MemoryStore(), keep_last(2)
        to_b = ToolCalls(transfer_to_b={})
        of_b = ScriptedModel(["b1", "b2"])
        b = ChatModelAgent(name="B", model=of_b)
        a = ChatModelAgent(
            name="A", model=ScriptedModel([to_b, to_b]), handoffs=[handoff(b, input_filter=policy)]
        )
        async with ActorSystem() as system:
            session = Runner(a, system=system, store=store).session("s", policy=policy)
            await session.query("q1")
            assert texts(of_b.requests[0].messages)[0] == "q1"
            await session.query("q2")
        assert [
            text for text in texts(of_b.requests[1].messages) if text.startswith(("q", "b"))
        ] == ["b1", "q2"]

    run(main())


def test_a_summary_for_a_handoff_keeps_as_many_as_it_is_told():
    asked = [Message.user("1"), Message.assistant("2"), Message.user("3")]
    of_b, writer = ScriptedModel(["done"] * 3), ScriptedModel(["S"] * 2)
    b = ChatModelAgent(name="B", model=of_b)

    def play(**options):
        a = ChatModelAgent(
            name="A",
            model=ScriptedModel([ToolCalls(transfer_to_b={})]),
            handoffs=[handoff(b, input_filter=summarize(writer, **options))],
        )
        Runner(a).run(asked).result().raise_for_error()
        return texts(of_b.requests[-1].messages)[:-2]

    head = "Summary of the conversation so far:\nS"
    assert play() == [head]
    assert play(keep=1) == [head, "3"]
    assert [texts(request.messages)[:-1] for request in writer.requests] == [
        ["1", "2", "3"],
        ["1", "2"],
    ]
    assert play(after=3) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"keep": 5, "after": 4}, "got keep=5 and after=4"),
        ({"keep": -1}, "keep=-1"),
        ({"after": -1}, "after=-1"),
    ],
)
def test_a_summary_cannot_keep_more_than_there_is(given, said):
    with pytest.raises(UsageError, match=said):
        summarize(ScriptedModel([]), **given)


@pytest.mark.parametrize(
    ("given", "both"),
    [
        ({}, (20, 40)),
        ({"keep": 50}, (50, 50)),
        ({"after": 10}, (10, 10)),
        ({"keep": 5, "after": 9}, (5, 9)),
    ],
)
def test_what_a_summary_of_a_session_keeps_if_it_is_not_told(given, both):
    policy = summarize(ScriptedModel([]), **given)
    assert (policy.keep, policy.after) == both


def texts(messages):
    return [message.text for message in messages]


def bounded(policy, messages, note=None):
    return asyncio.run(as_policy(policy).bound(messages, note))


TURNS = st.lists(st.sampled_from(["user", "assistant", 1, 2, 3]), max_size=12)


def conversation(turns):
    """Messages, in which each call has its result right behind it; a number is one of so many
    calls.
    """
    messages = []
    for number, kind in enumerate(turns):
        if isinstance(kind, int):
            calls = tuple(ToolCall(f"{number}.{index}", "t", "{}") for index in range(kind))
            messages += [
                Message.assistant("", calls),
                *(Message.tool("r", call.id, "t") for call in calls),
            ]
        else:
            messages.append(
                Message.user(f"u{number}") if kind == "user" else Message.assistant(f"a{number}")
            )
    return messages


def check_valid(messages):
    waiting = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call.id for call in message.tool_calls]
    assert not waiting


@given(TURNS, st.integers(0, 15))
def test_keeping_the_last_never_parts_a_call_from_its_result(turns, count):
    messages = conversation(turns)
    kept = bounded(keep_last(count), messages).messages
    check_valid(kept)
    assert len(kept) <= count
    assert kept == messages[len(messages) - len(kept) :]
    if len(kept) < min(count, len(messages)):
        assert messages[len(messages) - min(count, len(messages))].role == "tool"


@given(TURNS, st.randoms(use_true_random=False))
def test_a_function_of_the_users_never_parts_a_call_from_its_result(turns, random):
    messages = conversation(turns)
    kept = bounded(
        lambda given: [message for message in given if random.random() < 0.5], messages
    ).messages
    check_valid(kept)


def test_a_function_may_be_asynchronous_and_add_messages_of_its_own():
    async def own(messages):
        return [Message.user("note"), *messages[-1:]]

    assert texts(bounded(own, [Message.user("a"), Message.user("b")]).messages) == ["note", "b"]


def test_what_a_function_returns_is_checked():
    with pytest.raises(UsageError, match="must return a sequence of Message"):
        bounded(lambda messages: ["text"], [Message.user("a")])


@given(TURNS, st.integers(0, 5), st.integers(0, 5))
def test_a_summary_never_parts_a_call_from_its_result(turns, keep, more):
    messages = conversation(turns)
    model = ScriptedModel(["S"] * 2)
    result = bounded(summarize(model, keep=keep, after=keep + more), messages)
    for request in model.requests:
        check_valid(request.messages)
    check_valid(result.messages)
    assert (result.note is None) == (len(messages) <= keep + more)


def test_a_summary_is_made_once_and_carried_on(run):
    async def main():
        store = MemoryStore()
        model, writer = (
            ScriptedModel([f"a{number}" for number in range(6)]),
            ScriptedModel(["first summary", "second summary"]),
        )
        async with ActorSystem() as system:
            runner = Runner(ChatModelAgent(name="A", model=model), system=system, store=store)
            for number in range(6):
                session = runner.session("s", policy=summarize(writer, keep=2, after=4))
                await session.query(f"q{number}")
            given = [texts(request.messages) for request in model.requests]
            head = "Summary of the conversation so far:\n"
            assert given[2] == ["q0", "a0", "q1", "a1", "q2"]
            assert given[3] == [f"{head}first summary", "q2", "a2", "q3"]
            assert given[4] == [f"{head}first summary", "q2", "a2", "q3", "a3", "q4"]
            assert given[5] == [f"{head}second summary", "q4", "a4", "q5"]
            assert texts(writer.requests[0].messages)[:-1] == ["q0", "a0", "q1", "a1"]
            assert texts(writer.requests[1].messages)[:-1] == [
                f"{head}first summary",
                "q2",
                "a2",
                "q3",
                "a3",
            ]
            assert len(await session.history()) == 12

    run(main())


def test_a_model_that_writes_no_summary_is_an_error_and_the_message_may_be_sent_again(run):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["a0", "a1"])),
                system=system,
                store=MemoryStore(),
            )
            session = runner.session(
                "s", policy=summarize(ScriptedModel(["", "S"]), keep=0, after=1)
            )
            await session.query("q0")
            with pytest.raises(ModelBehaviorError, match="summarize"):
                await session.query("q1")
            assert texts(await session.history()) == ["q0", "a0"]
            assert (await session.query("q1")).final_output == "a1"

    run(main())


def test_the_usage_of_a_summary_is_counted(run):
    async def main():
        writer = ScriptedModel([Message("assistant", "S", usage=Usage(5, 7, 0, 1))])
        async with ActorSystem() as system:
            session = Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["a", "b"])),
                system=system,
                store=MemoryStore(),
            ).session("s", policy=summarize(writer, keep=0, after=0))
            await session.query("x")
            assert (await session.query("y")).usage.input_tokens == 5

    run(main())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: keep_last(-1), "0 or more, got -1"),
        (lambda: summarize("gpt"), "model must be a chat model"),
        (
            lambda: summarize(ScriptedModel([]), keep=5, after=4),
            "keep must be .* from 0 to after, got keep=5 and after=4",
        ),
    ],
)
def test_bad_input_is_refused(make, says):
    with pytest.raises(UsageError, match=says):
        make()
