"""Tools that give their result in pieces: `async def` with `yield`."""

import asyncio

import pytest

from offbook.actors import Tool, ToolContext, tool
from offbook.runtime import MemoryStore, Runner, ToolCalls
from tests.doubles.waiting import Stage, chat, told

LIMIT = 10


@tool
async def read(pages: int):
    """Read page by page."""
    for page in range(pages):
        await asyncio.sleep(0)
        yield f"page {page}. "


@tool
async def count(to: int):
    for number in range(to):
        yield {"counted": number}


def play(one, arguments, **options):
    agent = chat("A", ToolCalls((one.name, arguments)), "end", tools=[one])
    return agent, Runner(agent, **options).query("go").result(LIMIT)


def shown(result):
    return [event.custom_output for event in result.events if event.custom_output is not None]


@pytest.mark.parametrize(
    "options", [{}, {"store": MemoryStore(), "durability": "step"}], ids=["none", "step"]
)
def test_pieces_of_text_are_shown_as_they_come_and_are_the_result_together(lines, options):
    agent, result = play(read, {"pages": 2}, **options)
    assert lines(result) == [
        'A [A] assistant "" tc(read {"pages":2})',
        "A [A] out('page 0. ')",
        "A [A] out('page 1. ')",
        'A [A] tool(read) "page 0. page 1. "',
        'A [A] assistant "end"',
    ]
    assert told(agent.model) == [("read", "page 0. page 1. ")]


def test_of_other_pieces_the_last_is_the_result():
    agent, result = play(count, {"to": 3})
    assert shown(result) == [{"counted": 0}, {"counted": 1}, {"counted": 2}]
    assert told(agent.model) == [("count", '{"counted":2}')]


@pytest.mark.parametrize(
    ("pieces", "result"),
    [((), ""), (("a", 1), "1"), ((1, "a"), "a"), (("",), ""), ((None, "a", "b"), "b")],
)
def test_what_the_result_is(pieces, result):
    @tool
    async def mixed():
        for piece in pieces:
            yield piece

    agent, _ = play(mixed, {})
    assert told(agent.model) == [("mixed", result)]


def test_a_tool_by_hand_and_an_object_may_yield():
    class Reader:
        async def __call__(self, text: str):
            yield text
            yield "!"

    async def by_hand(context, arguments):
        yield arguments["text"]
        yield "!"

    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    for one in (tool(name="say")(Reader()), Tool(name="say", parameters=schema, call=by_hand)):
        agent, _ = play(one, {"text": "hello"})
        assert told(agent.model) == [("say", "hello!")]


def test_what_it_raises_is_told_to_the_model_behind_the_pieces(lines):
    @tool
    async def broken():
        yield "a"
        raise ValueError("no more")

    agent, result = play(broken, {})
    assert shown(result) == ["a"]
    assert told(agent.model) == [("broken", "tool broken failed: ValueError: no more")]


def test_it_may_ask_and_goes_on_with_the_answer():
    @tool
    async def ask(context: ToolContext):
        yield "before, "
        yield f"heard {context.interrupt('?')}"

    agent = chat("A", ToolCalls(ask={}), "end", tools=[ask])
    for durability in ("interrupt", "step"):
        play = Stage(chat("A", ToolCalls(ask={}), "end", tools=agent.tools), durability=durability)
        assert play.start().status == "interrupted"
        result = play.go_on(data="x")
        assert (
            next(event.message.text for event in result.events if event.message)
            == "before, heard x"
        )


def test_it_is_closed_when_its_time_is_over_and_when_its_run_is_cancelled(run):
    closed = []

    def endless(**options):
        @tool(**options)
        async def drip():
            try:
                while True:
                    yield "drop"
                    await asyncio.Event().wait()
            finally:
                closed.append(options)

        return drip

    async def main():
        agent = chat("A", ToolCalls(drip={}), "end", tools=[endless(timeout=0.01)])
        assert (await Runner(agent).query("go")).final_output == "end"
        assert "took longer than" in told(agent.model)[0][1]
        begun = Runner(chat("A", ToolCalls(drip={}), "end", tools=[endless()])).query("go")
        async for event in begun:
            if event.custom_output is not None:
                break
        await begun.aclose()
        assert closed == [{"timeout": 0.01}, {}]

    run(main())


def test_a_slow_consumer_slows_it(run):
    made = []

    @tool
    async def fast():
        for number in range(100):
            made.append(number)
            yield number

    async def main():
        ahead = []
        async for event in Runner(
            chat("A", ToolCalls(fast={}), "end", tools=[fast]), event_buffer=4
        ).query("go"):
            if event.custom_output is not None:
                ahead.append(len(made) - event.custom_output)
                await asyncio.sleep(0)
        assert len(made) == 100
        assert max(ahead) < 20

    run(main())


def test_it_can_still_be_called_as_a_function(run):
    async def main():
        return [piece async for piece in read(2)]

    assert run(main()) == ["page 0. ", "page 1. "]
