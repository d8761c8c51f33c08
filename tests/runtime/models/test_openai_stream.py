"""Streams of chat completions over real HTTP, however they are cut and whatever they leave out."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.runtime.data.chat import Message, MessageDelta, ToolCall, Usage
from offbook.runtime.errors import ModelError
from offbook.runtime.models.openai_responses import OpenAIResponsesModel
from offbook.runtime.models.tool_call_deltas import ToolCallMerger
from offbook.runtime.models.wire.sse import EventDecoder
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")


def script(*chunks, **how):
    async def answer(one):
        await one.events(*chunks, **how)

    return answer


def piece(index, call_id=None, name=None, arguments=None):
    fields = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return wire.chunk(
        tool_calls=[{key: value for key, value in fields.items() if value is not None}]
    )


END = wire.chunk("tool_calls")


@pytest.mark.parametrize("cut", [None, 1, 7])
def test_a_text_comes_in_pieces_however_the_bytes_are_cut(run, ask, collect, shown, chat_at, cut):
    text = "Grüße, 世界 🌍 !"

    async def main():
        chunks = wire.completion_chunks(wire.completion(text, reasoning_content="hm"))
        async with wire.WireServer(script(*chunks, cut=cut)) as server:
            items = await collect(chat_at(server).stream(ask()))
        assert shown(items) == text
        assert "".join(item.reasoning for item in items[:-1]) == "hm"
        assert items[-1] == Message(
            "assistant", text, reasoning="hm", usage=Usage(7, 5, 3, 1), finish_reason="stop"
        )
        assert server.seen[0].body["stream_options"] == {"include_usage": True}

    run(main())


def test_a_server_that_does_not_know_stream_options_can_be_spared_them(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(script(wire.chunk(content="Hi"), wire.chunk("stop"))) as server:
            items = await collect(
                chat_at(server, extra={"stream_options": None, "top_k": 1}).stream(ask())
            )
        assert "stream_options" not in server.seen[0].body
        assert server.seen[0].body["top_k"] == 1
        assert items[-1].usage == Usage(requests=1)

    run(main())


CALLS = [("a", "weather", '{"city":"Paris"}'), ("b", "time", '{"zone":1}')]


@pytest.mark.parametrize(
    "chunks",
    [
        [
            piece(0, "a", "weather", ""),
            piece(1, "b", "time", ""),
            piece(0, None, None, '{"city"'),
            piece(1, None, None, '{"zone":1}'),
            piece(0, None, None, ':"Paris"}'),
        ],
        [
            piece(None, "a", "weather", '{"city"'),
            piece(None, None, None, ':"Paris"}'),
            piece(None, "b", "time", '{"zone":1}'),
        ],
        [
            piece(None, "a", "weather", '{"city"'),
            piece(None, "a", "weather", ':"Paris"}'),
            piece(None, "b", "time", '{"zone":1}'),
        ],
        [piece(0, "a", "weather", '{"city":"Paris"}'), piece(0, "b", "time", '{"zone":1}')],
        [
            piece(0, "a", "weather", '{"city"'),
            piece(0, "x", None, ':"Paris"}'),
            piece(1, "b", "time", '{"zone":1}'),
        ],
        [
            piece(0, "a", "weather", '{"city"'),
            piece(0, "a", "weather", ':"Paris"}'),
            piece(1, "b", "time", {"zone": 1}),
        ],
    ],
    ids=[
        "interleaved",
        "no index",
        "no index, ids repeated",
        "one index",
        "another id each time",
        "names repeated, arguments as an object",
    ],
)
def test_pieces_of_tool_calls_find_together(run, ask, collect, chat_at, chunks):
    async def main():
        async with wire.WireServer(script(*chunks, END)) as server:
            items = await collect(chat_at(server).stream(ask()))
        assert items[-1].tool_calls == tuple(ToolCall(*call) for call in CALLS)
        merged = {}
        for delta in (delta for item in items[:-1] for delta in item.tool_calls):
            before = merged.get(delta.index, ("", "", ""))
            merged[delta.index] = tuple(
                old + new
                for old, new in zip(before, (delta.id, delta.name, delta.arguments), strict=True)
            )
        assert [merged[place] for place in sorted(merged)] == CALLS

    run(main())


@pytest.mark.parametrize(
    "chunks",
    [
        [piece(0, None, "f", "{}"), piece(1, None, "g", "{}")],
        [piece(0, "same", "f", "{}"), piece(1, "same", "g", "{}")],
        [piece(None, None, "f", "{}"), piece(None, None, "g", "{}")],
        [piece(None, "same", "f", "{}"), piece(None, "same", "g", "{}")],
        [piece(0, "", "f"), piece(1, "", "g", "")],
    ],
)
def test_streamed_calls_have_ids_of_their_own(run, ask, collect, chat_at, chunks):
    async def main():
        async with wire.WireServer(script(*chunks, END)) as server:
            items = await collect(
                chat_at(server).stream(
                    ask(
                        "hi",
                        Message.assistant("", [ToolCall("same", "f", "{}")]),
                        Message.tool("", "same"),
                    )
                )
            )
        calls = items[-1].tool_calls
        assert [(call.name, call.arguments) for call in calls] == [("f", "{}"), ("g", "{}")]
        assert len({"same", "", *(call.id for call in calls)}) == 4
        assert [delta.id for item in items[:-1] for delta in item.tool_calls if delta.id] == [
            call.id for call in calls
        ]

    run(main())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("fgh"), st.text(max_size=5), st.integers(1, 4)),
        min_size=1,
        max_size=4,
    ),
    st.randoms(use_true_random=False),
)
def test_interleaved_pieces_are_never_mixed_up(calls, chance):
    """With indices, as OpenAI sends them, in any order that keeps that of each call."""
    waiting = []
    for place, (name, text, size) in enumerate(calls):
        arguments = json.dumps({"x": text})
        waiting.append(
            [(place, f"id{place}", name, "")]
            + [
                (place, "", "", arguments[start : start + size])
                for start in range(0, len(arguments), size)
            ]
        )
    merger = ToolCallMerger()
    while any(waiting):
        begun = next(
            (place for place, pieces in enumerate(waiting) if pieces and pieces[0][1]), len(waiting)
        )
        merger.add(*chance.choice([pieces for pieces in waiting[: begun + 1] if pieces]).pop(0))
    assert [(call.name, json.loads(call.arguments)) for call in merger.calls()] == [
        (name, {"x": text}) for name, text, _ in calls
    ]


def test_a_provider_that_gives_no_reason_may_say_that_it_is_done(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(script(wire.chunk(content="Hello"))) as server:
            assert (await collect(chat_at(server).stream(ask())))[-1].text == "Hello"

    run(main())


@given(
    st.lists(st.text(max_size=8), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.randoms(use_true_random=False),
)
@settings(max_examples=80, deadline=None)
def test_events_are_the_same_wherever_the_bytes_are_cut(texts, end, chance):
    sent = "".join(
        f": hello{end}event: x{end}data: {json.dumps(text)}{end}{end}" for text in texts
    ).encode()
    cuts = sorted(chance.randrange(len(sent) + 1) for _ in range(4))
    decoder, events = EventDecoder(), []
    for start, stop in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        events += decoder.feed(sent[start:stop])
    events += decoder.feed(b"\n")
    assert [json.loads(data) for data in events] == texts


def test_a_refusal_may_be_streamed(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(
            script(wire.chunk(refusal="no "), wire.chunk(refusal="way"), wire.chunk("stop"))
        ) as server:
            assert (await collect(chat_at(server).stream(ask())))[-1].refusal == "no way"

    run(main())


async def break_off(one):
    await one.open_stream()
    await one.chunk(wire.event(wire.chunk(content="Hel")))
    await one.cut_off()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (break_off, "connection"),
        (script(wire.chunk(content="Hel"), done=False), "connection"),
        (script(wire.chunk(content="Hel"), wire.chunk(with_usage=True), done=False), "connection"),
        (script(wire.chunk(content="Hel"), b'{"choices": [', wire.chunk("stop")), "malformed"),
        (script(wire.chunk(content="Hel"), b'"\xff\xfe"'), "malformed"),
        (
            script(
                wire.chunk(content="Hel"), {"error": {"message": "busy", "code": "server_error"}}
            ),
            "server",
        ),
        (
            script(
                wire.chunk(content="Hel"),
                {"error": {"message": "busy", "type": "overloaded_error"}},
            ),
            "overloaded",
        ),
        (script(wire.chunk("stop")), "empty"),
        (script(wire.chunk(with_usage=True)), "empty"),
    ],
)
def test_a_stream_that_breaks_says_how_and_may_be_tried_again(run, ask, chat_at, answer, kind):
    async def main():
        items = []
        async with wire.WireServer(answer) as server:
            with pytest.raises(ModelError) as caught:
                async for item in chat_at(server).stream(ask()):
                    items.append(item)
        assert (caught.value.kind, caught.value.retryable) == (kind, True)
        assert "OpenAIChatModel('m'" in str(caught.value)
        assert all(item == MessageDelta("Hel") for item in items)

    run(main())


async def hang(one):
    await one.open_stream()
    # Several events in one packet: some of them wait in the client when it is told to stop.
    await one.chunk(b"".join(wire.event(wire.chunk(content=f"{number} ")) for number in range(5)))
    await asyncio.Event().wait()


def test_leaving_a_stream_hangs_up_and_leaves_no_task_behind(run, ask, chat_at):
    async def main():
        async with wire.WireServer(hang) as server:
            stream = chat_at(server).stream(ask())
            assert await anext(stream) == MessageDelta("0 ")
            await stream.aclose()
            await asyncio.sleep(0)  # the loop's own closing of a generator would be a task by now
            assert [task for task in asyncio.all_tasks() if "aclose" in repr(task.get_coro())] == []
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)

    run(main())


def test_a_stream_that_is_cancelled_hangs_up(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(hang) as server:
            model, begun = chat_at(server), asyncio.Event()

            async def consume():
                async for _ in model.stream(ask()):
                    begun.set()

            task = asyncio.create_task(consume())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)

    run(main())


@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize(
    "body", [b"<!doctype html>\n<html>hello</html>", b'{"message": "hello"}\n']
)
def test_an_answer_that_is_no_stream_says_to_check_the_address(
    run, ask, collect, chat_at, kind, body
):
    async def main():
        async def page(one):
            await one.answer(body, 200, "text/html")

        async with wire.WireServer(page) as server:
            model = (
                chat_at(server)
                if kind == "chat"
                else OpenAIResponsesModel("m", api_key="k", base_url=server.url)
            )
            with pytest.raises(
                ModelError, match=r"must be a stream of events, got .*hello.*base_url"
            ):
                await collect(model.stream(ask()))

    run(main())
