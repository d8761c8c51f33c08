"""The model that says what a test tells it to."""

import asyncio
import threading

import pytest

from offbook.runtime.data.chat import Message, MessageDelta, ToolCall
from offbook.runtime.errors import ModelError, UsageError
from offbook.runtime.models import ScriptedModel, ToolCalls, ToolSpec


async def later(request):
    await asyncio.sleep(0)
    return f"{len(request.messages)} messages"


def test_each_call_gets_the_next_line(run, ask):
    said = Message.assistant("whole", reasoning="why")

    async def main():
        model = ScriptedModel(
            [
                "text",
                said,
                lambda request: request.messages[-1].text,
                later,
                lambda request: ToolCalls("f"),
            ]
        )
        replies = [await model.generate(ask("q")) for _ in range(5)]
        assert replies[:4] == [
            Message.assistant("text"),
            said,
            Message.assistant("q"),
            Message.assistant("1 messages"),
        ]
        assert replies[4].tool_calls == (ToolCall("call_1", "f", "{}"),)
        assert [request.messages[0].text for request in model.requests] == ["q"] * 5
        model.assert_done()

    run(main())


@pytest.mark.parametrize(
    "calls",
    [
        ToolCalls(("get_weather", {"city": "Zürich"}), ("now", {})),
        ToolCalls(get_weather={"city": "Zürich"}, now=None),
        ToolCalls(["get_weather", '{"city":"Zürich"}'], ("now",)),
        ToolCalls(ToolCall("", "get_weather", '{"city":"Zürich"}'), ("now",)),
    ],
)
def test_tool_calls_may_be_written_in_many_ways(run, ask, calls):
    reply = run(ScriptedModel([calls]).generate(ask()))
    assert reply.tool_calls == (
        ToolCall("call_1", "get_weather", '{"city":"Zürich"}'),
        ToolCall("call_2", "now", "{}"),
    )


def test_one_call_needs_no_brackets_and_ids_are_counted_over_the_script(run, ask):
    model = ScriptedModel(
        [
            ToolCalls("f", {"x": [1, None]}, text="well"),
            ToolCalls("g", "{broken"),
            ToolCalls(ToolCall("mine", "h", "{}")),
        ]
    )
    replies = [run(model.generate(ask())) for _ in range(3)]
    assert replies[0].text == "well"
    assert [reply.tool_calls[0] for reply in replies] == [
        ToolCall("call_1", "f", '{"x":[1,null]}'),
        ToolCall("call_2", "g", "{broken"),
        ToolCall("mine", "h", "{}"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        ModelError("down", kind="server"),
        ValueError,
        lambda request: KeyError("x"),
        asyncio.CancelledError(),
    ],
)
def test_an_exception_is_raised(run, ask, line):
    async def main():
        with pytest.raises((ModelError, ValueError, KeyError, asyncio.CancelledError)):
            await ScriptedModel([line]).generate(ask())

    run(main())


def test_a_call_beyond_the_script_shows_what_was_asked(run, ask):
    async def main():
        model = ScriptedModel(["only"])
        request = ask(
            "first",
            Message.assistant("", [ToolCall("1", "f", '{"x":1}')]),
            Message.tool("result", "1"),
            tools=(ToolSpec("f"),),
        )
        await model.generate(request)
        with pytest.raises(UsageError) as caught:
            await model.generate(request)
        for words in ("call 2", "has only 1", "'first'", 'f({"x":1})', "'result'", "Its tools: f"):
            assert words in str(caught.value)

    run(main())


def test_lines_that_are_left_are_shown(run, ask):
    model = ScriptedModel(["one", "two", ToolCalls("f")])
    run(model.generate(ask()))
    with pytest.raises(AssertionError, match="1 of 3") as caught:
        model.assert_done()
    assert "'two'" in str(caught.value)
    assert "'f'" in str(caught.value)
    assert "'one'" not in str(caught.value)


@pytest.mark.parametrize("line", [1, None, Message.user("x"), int, {"role": "assistant"}])
def test_what_is_no_line_is_refused_at_once(line):
    with pytest.raises(UsageError, match=r"script\[1\]"):
        ScriptedModel(["fine", line])


@pytest.mark.parametrize(
    "make",
    [
        ToolCalls,
        lambda: ToolCalls(1),
        lambda: ToolCalls(("f", {}, 1)),
        lambda: ToolCalls("f", {"x": object()}),
        lambda: ScriptedModel([], -1),
    ],
)
def test_bad_arguments_are_refused_at_once(make):
    with pytest.raises(UsageError):
        make()


def test_a_function_that_makes_no_reply_is_found_out(run, ask):
    with pytest.raises(UsageError, match=r"script\[0\]"):
        run(ScriptedModel([lambda request: 42]).generate(ask()))
    with pytest.raises(UsageError, match="'user'"):
        run(ScriptedModel([lambda request: Message.user("x")]).generate(ask()))


@pytest.mark.parametrize("text", ["", "one", " two  words\n", "   ", "ä b\tc"])
def test_a_stream_says_the_same_in_pieces(run, ask, collect, shown, text):
    async def main():
        line = ToolCalls(("f", {"x": 1}), ("g", "{}"), text=text)
        items = await collect(ScriptedModel([line]).stream(ask()))
        assert shown(items) == text
        assert all(isinstance(item, MessageDelta) for item in items[:-1])
        merged = {}
        for delta in (delta for item in items[:-1] for delta in item.tool_calls):
            merged[delta.index] = tuple(
                map(
                    "".join,
                    zip(
                        merged.get(delta.index, ("",) * 3),
                        (delta.id, delta.name, delta.arguments),
                        strict=True,
                    ),
                )
            )
        assert list(merged.values()) == [("call_1", "f", '{"x":1}'), ("call_2", "g", "{}")]
        assert items[-1].text == text

    run(main())


def test_many_threads_use_each_line_once(ask):
    model, replies = ScriptedModel([str(number) for number in range(80)]), []

    async def ten():
        for _ in range(10):
            replies.append((await model.generate(ask())).text)

    threads = [threading.Thread(target=lambda: asyncio.run(ten())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, replies)) == list(range(80))
    model.assert_done()


def test_it_takes_as_long_as_it_is_told(run, ask):
    async def main():
        loop = asyncio.get_running_loop()
        started = loop.time()
        await ScriptedModel(["x"], delay=0.02).generate(ask())
        assert loop.time() - started >= 0.019

    run(main())
