"""Streaming: the pieces of a reply as they come, then the whole of it, which alone is kept."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    FailoverModel,
    Message,
    MessageDelta,
    ModelBehaviorError,
    ModelError,
    ModelRetry,
    RetryExhausted,
    RetryModel,
    Runner,
    ScriptedModel,
    ToolCall,
    ToolCallDelta,
    ToolCalls,
    Usage,
)


@tool
def echo(text: str) -> str:
    return text


def stream(agent, text="go", **options):
    run = Runner(agent, **options).query(text, streaming=True)
    return list(run), run.result()


async def at_once(_seconds):
    """Instead of waiting before an attempt."""


class Items:
    """A model that streams what it is given, one list of items for each call.

    An exception among them is raised.
    """

    def __init__(self, *calls):
        self.calls = list(calls)
        self.requests = []
        self.closed = 0

    async def generate(self, request):
        raise AssertionError("it can stream")

    async def stream(self, request):
        self.requests.append(request)
        try:
            for item in self.calls.pop(0):
                if isinstance(item, Exception) and not isinstance(item, ModelRetry):
                    raise item
                yield item
        finally:
            self.closed += 1


def test_deltas_come_then_the_whole_message():
    model = ScriptedModel(["one two"])
    events, result = stream(ChatModelAgent(name="a", model=model))
    assert len(events) == 3
    assert (
        "".join(event.delta.content for event in events[:-1])
        == events[-1].message.text
        == "one two"
    )
    assert all((event.delta is None) != (event.message is None) for event in events)
    assert [event.message.text for event in events if event.message] == ["one two"]
    assert {(event.agent_name, event.run_path) for event in events} == {("a", ("a",))}
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert result.events == (events[-1],)
    assert result.final_output == "one two"


def test_the_pieces_of_calls_and_of_the_reasoning_come_too():
    reply = Message.assistant(
        "hi there", (ToolCall("1", "echo", '{"text":"x"}'),), reasoning="let me think"
    )
    model = ScriptedModel([reply, "done"])
    events, _ = stream(ChatModelAgent(name="a", model=model, tools=[echo]))
    deltas = [
        event.delta
        for event in events[: next(index for index, event in enumerate(events) if event.message)]
    ]
    assert "".join(delta.reasoning for delta in deltas) == "let me think"
    assert "".join(delta.content for delta in deltas) == "hi there"
    assert [piece for delta in deltas for piece in delta.tool_calls] == [
        ToolCallDelta(0, "1", "echo"),
        ToolCallDelta(0, arguments='{"text":"x"}'),
    ]
    assert [event.message.role for event in events if event.message] == [
        "assistant",
        "tool",
        "assistant",
    ]


def test_only_the_whole_message_is_recorded():
    model = ScriptedModel([ToolCalls("echo", {"text": "x"}, text="let me see"), "done"])
    _, result = stream(ChatModelAgent(name="a", model=model, tools=[echo]))
    assert [message.text for message in model.requests[1].messages] == ["go", "let me see", "x"]
    assert [event.message.text for event in result.events] == ["let me see", "x", "done"]
    assert all(event.delta is None for event in result.events)


def test_the_whole_message_is_the_same_as_without_streaming():
    script = [ToolCalls("echo", {"text": "x"}, text="let me see"), "done"]
    plain = (
        Runner(ChatModelAgent(name="a", model=ScriptedModel(script), tools=[echo]))
        .query("go")
        .result()
    )
    _, streamed = stream(ChatModelAgent(name="a", model=ScriptedModel(script), tools=[echo]))
    assert [event.message for event in plain.events] == [event.message for event in streamed.events]


def test_a_model_without_stream_answers_streaming_runs_too():
    class OnlyGenerate:
        async def generate(self, request):
            return Message.assistant("whole")

    events, result = stream(ChatModelAgent(name="a", model=OnlyGenerate()))
    assert [(event.delta, event.message.text) for event in events] == [(None, "whole")]
    assert result.status == "completed"


def test_the_runner_says_whether_to_stream_and_the_run_may_say_otherwise():
    agent = ChatModelAgent(name="a", model=ScriptedModel(["x"] * 4))
    runner = Runner(agent, streaming=True)
    assert len(list(runner.query("go"))) == 2
    assert len(list(runner.query("go", streaming=False))) == 1
    assert len(list(Runner(agent).query("go"))) == 1


def test_the_pieces_come_as_the_model_makes_them(run):
    async def main():
        gate = asyncio.Event()

        class Slow:
            async def generate(self, request):
                raise AssertionError

            async def stream(self, request):
                yield MessageDelta("first")
                await gate.wait()
                yield Message.assistant("first")

        events = []
        async for event in Runner(ChatModelAgent(name="a", model=Slow())).query(
            "go", streaming=True
        ):
            events.append(event)
            gate.set()
        return events

    assert [event.delta is None for event in run(main())] == [False, True]


# --- what goes wrong ---


@pytest.mark.parametrize(
    "items",
    [[], [MessageDelta("x")], [None], ["text"], [MessageDelta("x"), 5]],
    ids=["nothing", "no whole one", "None", "text", "number"],
)
def test_a_stream_without_a_whole_message_is_the_models_fault(items):
    model = Items(items)
    events, result = stream(ChatModelAgent(name="a", model=model))
    assert isinstance(result.error, ModelBehaviorError)
    assert events[-1].error is result.error
    assert result.events == (events[-1],)
    assert model.closed == 1


def test_a_whole_message_of_another_role_is_the_models_fault():
    _, result = stream(ChatModelAgent(name="a", model=Items([Message.user("x")])))
    assert isinstance(result.error, ModelBehaviorError)


def test_an_error_in_the_middle_of_a_stream_fails_the_agent():
    model = Items([MessageDelta("half"), ModelError("cut off")])
    events, result = stream(ChatModelAgent(name="a", model=model))
    assert events[0].delta == MessageDelta("half")
    assert isinstance(result.error, ModelError)
    assert len(events) == 2
    assert result.final_message is None


def test_a_retry_tells_the_consumer_to_drop_what_it_showed():
    whole = Message.assistant("good")
    model = Items(
        [MessageDelta("ba"), ModelError("cut off", retryable=True)], [MessageDelta("good"), whole]
    )
    events, result = stream(ChatModelAgent(name="a", model=RetryModel(model, sleep=at_once)))
    assert [type(event.error) for event in events] == [
        type(None),
        ModelRetry,
        type(None),
        type(None),
    ]
    retry = events[1]
    assert retry.delta is not None
    assert not retry.is_failure
    assert retry.error.attempt == 1
    assert result.status == "completed"
    assert [event.message for event in result.events] == [whole]


def test_a_retry_before_anything_was_shown_is_no_event():
    model = Items(
        [ModelError("busy", retryable=True)], [MessageDelta("good"), Message.assistant("good")]
    )
    events, _ = stream(ChatModelAgent(name="a", model=RetryModel(model, sleep=at_once)))
    assert [event.error for event in events] == [None, None]


def test_attempts_that_fail_are_no_events_without_streaming():
    model = RetryModel(ScriptedModel([ModelError("busy", retryable=True), "good"]), sleep=at_once)
    result = Runner(ChatModelAgent(name="a", model=model)).query("go").result()
    assert [event.message.text for event in result.events] == ["good"]


# --- what it has cost ---


@pytest.mark.parametrize("streaming", [False, True])
def test_usage_adds_up_over_all_replies(streaming):
    usage = Usage(10, 5, 2, 1)
    script = [
        Message.assistant("", (ToolCall("1", "echo", '{"text":"x"}'),), usage=usage),
        Message.assistant("done", usage=Usage(1, 1, 1, 1)),
    ]
    result = (
        Runner(ChatModelAgent(name="a", model=ScriptedModel(script), tools=[echo]))
        .query("go", streaming=streaming)
        .result()
    )
    assert result.usage == Usage(11, 6, 3, 2)


def test_usage_adds_up_over_attempts_that_the_provider_counted():
    usage = Usage(10, 5, 2, 1)
    model = RetryModel(
        ScriptedModel([Message.assistant("", usage=usage), Message.assistant("good", usage=usage)]),
        sleep=at_once,
        should_retry=empty,
    )
    assert Runner(ChatModelAgent(name="a", model=model)).query("go").result().usage == usage + usage


def test_usage_is_counted_when_no_attempt_is_left():
    usage = Usage(10, 5, 2, 1)
    model = RetryModel(
        ScriptedModel([Message.assistant("", usage=usage)] * 2),
        max_retries=1,
        sleep=at_once,
        should_retry=empty,
    )
    result = Runner(ChatModelAgent(name="a", model=model)).query("go").result()
    assert isinstance(result.error, RetryExhausted)
    assert result.usage == usage + usage


def empty(outcome):
    return isinstance(outcome, Message) and not outcome.text


@pytest.mark.parametrize("streaming", [False, True])
def test_the_model_that_answered_stays_first_for_the_rest_of_the_run(streaming):
    first = ScriptedModel([ModelError("down"), ModelError("down")])
    second = ScriptedModel(
        [
            ToolCalls(echo={"text": "x"}),
            ToolCalls(echo={"text": "x"}),
            "done",
            ToolCalls(echo={"text": "x"}),
            "done",
        ]
    )
    runner = Runner(ChatModelAgent(name="a", model=FailoverModel([first, second]), tools=[echo]))
    assert runner.query("go", streaming=streaming).result().final_output == "done"
    assert (len(first.requests), len(second.requests)) == (1, 3)
    assert runner.query("go", streaming=streaming).result().final_output == "done"
    assert (len(first.requests), len(second.requests)) == (2, 5), (
        "each run begins with the first again"
    )


def test_two_agents_of_one_run_that_share_a_model_share_what_is_known_of_it():
    first = ScriptedModel([ModelError("down")])
    second = ScriptedModel([ToolCalls(transfer_to_agent={"agent_name": "b"}), "done"])
    model = FailoverModel([first, second])
    result = (
        Runner(
            ChatModelAgent(
                name="a", model=model, sub_agents=[ChatModelAgent(name="b", model=model)]
            )
        )
        .query("go")
        .result()
    )
    assert result.final_output == "done"
    assert (len(first.requests), len(second.requests)) == (1, 2)
