"""One agent without a Runner: `generate` and `stream`, as other libraries call them."""

import asyncio
import inspect
import threading
from typing import get_type_hints

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.actors.chat_agent.chat_model_agent import GenerateOptions
from offbook.runtime import (
    ActorSystem,
    MaxIterationsExceeded,
    MemoryStore,
    Message,
    MessageDelta,
    ModelError,
    ModelRetry,
    OffbookError,
    Options,
    RetryModel,
    RunHooks,
    Runner,
    ScriptedModel,
    ToolCalls,
    ToolError,
    UsageError,
)


@tool
def echo(text: str) -> str:
    return text


@tool(needs_approval=True)
def pay(amount: int) -> str:
    return "paid"


class Waiting:
    """A model that never answers, and notes how it was ended."""

    def __init__(self):
        self.reached = asyncio.Event()
        self.ended = []

    async def generate(self, request):
        try:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            self.ended.append(type(error).__name__)
            raise

    async def stream(self, request):
        yield MessageDelta("first")
        await self.generate(request)


def test_generate_is_a_coroutine_function_that_returns_the_last_message(run):
    model = ScriptedModel([ToolCalls(echo={"text": "x"}), "done"])
    agent = ChatModelAgent(name="a", instruction="Be brief.", model=model, tools=[echo])
    assert inspect.iscoroutinefunction(agent.generate)
    assert run(agent.generate([Message.user("hi")])) == Message.assistant("done")
    assert [message.role for message in model.requests[0].messages] == ["system", "user"]


@pytest.mark.parametrize(
    "messages",
    ["hi", Message.user("hi"), [Message.user("hi")], (Message.user("hi"),)],
    ids=["text", "message", "list", "tuple"],
)
def test_messages_may_be_a_text_or_messages(run, messages):
    model = ScriptedModel(["done"])
    run(ChatModelAgent(name="a", model=model).generate(messages))
    assert model.requests[0].messages == (Message.user("hi"),)


def test_one_agent_serves_many_at_once_and_several_loops(run):
    agent = ChatModelAgent(
        name="a", model=ScriptedModel([lambda request: request.messages[-1].text] * 30)
    )

    async def main():
        return [
            message.text
            for message in await asyncio.gather(
                *(agent.generate(str(number)) for number in range(10))
            )
        ]

    assert run(main()) == [str(number) for number in range(10)]
    found = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [[str(number) for number in range(10)]] * 2


@pytest.mark.parametrize(
    ("script", "options", "error"),
    [
        ([ModelError("down")], {}, ModelError),
        ([ToolCalls(echo={"text": "x"})], {"max_iterations": 1}, MaxIterationsExceeded),
        ([ToolCalls(nothing={})], {"on_tool_error": "raise"}, ToolError),
    ],
    ids=["model", "bound", "tool"],
)
def test_what_the_agent_failed_with_is_raised(run, script, options, error):
    async def main():
        with pytest.raises(error):
            await ChatModelAgent(
                name="a", model=ScriptedModel(script), tools=[echo], **options
            ).generate("go")
        with pytest.raises(error):
            async for _ in ChatModelAgent(
                name="a", model=ScriptedModel(script), tools=[echo], **options
            ).stream("go"):
                pass

    run(main())


def test_stream_yields_pieces_and_each_message_when_it_is_whole(run):
    async def main():
        model = ScriptedModel([ToolCalls("echo", {"text": "x"}, text="hm"), "one two"])
        return [
            piece
            async for piece in ChatModelAgent(name="a", model=model, tools=[echo]).stream("go")
        ]

    pieces = run(main())
    assert [piece.text for piece in pieces if isinstance(piece, Message)] == ["hm", "x", "one two"]
    assert (
        "".join(piece.content for piece in pieces if isinstance(piece, MessageDelta)) == "hmone two"
    )
    assert isinstance(pieces[-1], Message)


def test_stream_without_streaming_yields_whole_messages(run):
    async def main():
        return [
            piece
            async for piece in ChatModelAgent(name="a", model=ScriptedModel(["one two"])).stream(
                "go", streaming=False
            )
        ]

    assert run(main()) == [Message.assistant("one two")]


def test_a_retry_in_the_middle_of_a_stream_ends_nothing(run):
    class Flaky:
        tries = 0

        async def generate(self, request):
            raise AssertionError

        async def stream(self, request):
            Flaky.tries += 1
            yield MessageDelta("x")
            if Flaky.tries == 1:
                raise ModelError("cut off", retryable=True)
            yield Message.assistant("x")

    async def no_wait(_seconds):
        pass

    async def main():
        return [
            piece
            async for piece in ChatModelAgent(
                name="a", model=RetryModel(Flaky(), sleep=no_wait)
            ).stream("go")
        ]

    pieces = run(main())
    assert pieces[-1] == Message.assistant("x")
    assert not any(isinstance(piece, ModelRetry) and piece is pieces[-1] for piece in pieces)


def test_closing_the_stream_early_cancels(run):
    async def main():
        model = Waiting()
        stream = ChatModelAgent(name="a", model=model).stream("go")
        assert await anext(stream) == MessageDelta("first")
        await model.reached.wait()
        await stream.aclose()
        return model.ended

    assert run(main()) == ["CancelledError"]


def test_a_stream_that_is_never_begun_does_nothing(run):
    async def main():
        model = ScriptedModel([])
        stream = ChatModelAgent(name="a", model=model).stream("go")
        await stream.aclose()
        return model.requests

    assert run(main()) == []


def test_a_consumer_that_is_cancelled_cancels_the_stream(run):
    async def main():
        model = Waiting()

        async def consume():
            async for _ in ChatModelAgent(name="a", model=model).stream("go"):
                pass

        task = asyncio.create_task(consume())
        await model.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return model.ended

    assert run(main()) == ["CancelledError"]


def test_a_generate_that_is_cancelled_cancels_what_it_does():
    async def main():
        model = Waiting()
        task = asyncio.create_task(ChatModelAgent(name="a", model=model).generate("go"))
        await model.reached.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return list(model.ended)

    assert asyncio.run(main()) == ["CancelledError"]


def test_generate_does_not_return_half_an_answer_when_it_is_interrupted(run):
    async def main():
        agent = ChatModelAgent(
            name="a", model=ScriptedModel([ToolCalls(pay={"amount": 1})]), tools=[pay]
        )
        with pytest.raises(OffbookError, match="interrupted"):
            await agent.generate("go")

    run(main())


def test_run_options_are_those_of_the_runner_and_of_its_run(run):
    class Hooks(RunHooks):
        def __init__(self):
            self.seen = []

        def on_run_start(self, context, input):
            self.seen.append(dict(context.session))

        def on_tool_start(self, context, agent, tool, call):
            self.seen.append(tool.name)

    async def main():
        hooks = Hooks()
        model = ScriptedModel([ToolCalls(echo={"text": "x"}), "done"] * 3)
        agent = ChatModelAgent(name="a", instruction="{who}", model=model, tools=[echo])
        await agent.generate(
            "go", hooks=hooks, session_values={"who": "Ann"}, options=Options(x=1), timeout=20
        )
        assert model.requests[0].messages[0].text == "Ann"
        assert hooks.seen == [{"who": "Ann"}, "echo"]
        _ = [piece async for piece in agent.stream("go", hooks=hooks)]
        assert hooks.seen[2:] == [{}, "echo"]
        async with ActorSystem() as system:
            await agent.generate("go", system=system)
        with pytest.raises((UsageError, TypeError), match="nonsense"):
            await agent.generate("go", nonsense=1)

    run(main())


def test_each_option_of_the_runner_and_of_its_run_is_one_of_generate_and_stream(run):
    of_runner = inspect.signature(Runner).parameters.keys() - {"agent"}
    of_run = inspect.signature(Runner.run).parameters.keys() - {"self", "messages"}
    assert of_runner | of_run == get_type_hints(GenerateOptions).keys()

    async def main():
        store = MemoryStore()
        agent = ChatModelAgent(name="a", model=ScriptedModel(["once", "again"]))
        kept = {
            "store": store,
            "durability": "step",
            "keep": "all",
            "version": "1",
            "history": "lane",
            "run_id": "r",
            "detached": False,
        }
        assert (await agent.generate("go", **kept)).text == "once"
        assert (
            await agent.generate("go", **kept)
        ).text == "once"  # it is the same run, which was begun once
        assert (await agent.generate("go", checkpoint_id="c", store=store)).text == "again"

    run(main())


def test_a_run_that_takes_too_long_is_ended(run):
    async def main():
        model = Waiting()
        with pytest.raises(OffbookError, match="timeout"):
            await ChatModelAgent(name="a", model=model).generate("go", timeout=0.02)
        return model.ended

    assert run(main()) == ["CancelledError"]


def test_what_was_set_for_the_react_agent_is_there(run):
    """MaxStep, ToolReturnDirectly and MessageModifier, by their names here."""

    def modify(instruction, given, context):
        return [Message.system("modified"), *given.messages]

    model = ScriptedModel([ToolCalls(echo={"text": "x"})])
    agent = ChatModelAgent(
        name="a",
        model=model,
        tools=[echo],
        max_iterations=1,
        return_directly=["echo"],
        make_model_input=modify,
    )
    assert run(agent.generate("go")).text == "x"
    assert model.requests[0].messages[0] == Message.system("modified")
