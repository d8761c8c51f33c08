"""Replies as bytes: however they are cut, packed, framed and ended, over real HTTP, on the wire and
through the client alike.
"""

import asyncio
import gzip
import json
import zlib

import pytest

from offbook.runtime.data.chat import MessageDelta, ToolCall
from offbook.runtime.errors import ModelError
from offbook.runtime.models import OpenAIChatModel, OpenAIResponsesModel
from offbook.runtime.models.openai_model import OpenAIModel
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

TEXT = "Grüße, 世界 🌍 !"
EVENTS = (
    b"".join(wire.event(chunk) for chunk in wire.completion_chunks(wire.completion(TEXT)))
    + b"data: [DONE]\n\n"
)


def in_pieces(data, size):
    """A stream of exactly these bytes, in packets of that size."""

    async def script(one):
        await one.open_stream()
        for start in range(0, len(data), size):
            await one.chunk(data[start : start + size])
            await asyncio.sleep(0)
        await one.chunk(b"")

    return script


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_a_stream_reads_the_same_wherever_its_bytes_are_cut(
    run, ask, collect, shown, chat_at, size, end
):
    data = (
        b": hello"
        + end
        + EVENTS.replace(b"\n\n", end + b"id: 7" + end + b": ping" + end + end).replace(b"\n", end)
        + end
    )

    async def main():
        async with wire.WireServer(in_pieces(data, size)) as server:
            items = await collect(chat_at(server).stream(ask()))
        assert shown(items) == TEXT
        assert (items[-1].text, items[-1].usage.output_tokens) == (TEXT, 5)

    run(main())


def test_an_event_may_have_its_data_in_several_lines(run, ask, collect, chat_at):
    spread = json.dumps(wire.chunk(content="Hi"), indent=1).replace("\n", "\ndata: ")

    async def main():
        data = (
            f"data: {spread}\n\ndata:{json.dumps(wire.chunk('stop'))}\n\ndata: [DONE]\n\n".encode()
        )
        async with wire.WireServer(in_pieces(data, 1 << 20)) as server:
            assert (await collect(chat_at(server).stream(ask())))[-1].text == "Hi"

    run(main())


def test_a_stream_may_begin_with_a_byte_order_mark(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(in_pieces(b"\xef\xbb\xbf" + EVENTS, 1 << 20)) as server:
            assert (await collect(chat_at(server).stream(ask())))[-1].text == TEXT

    run(main())


def test_an_event_may_be_large_and_come_in_many_pieces(run, ask, collect, chat_at):
    text = "x" * 3_000_000

    async def main():
        data = (
            wire.event(wire.chunk(content=text))
            + wire.event(wire.chunk("stop"))
            + b"data: [DONE]\n\n"
        )
        async with wire.WireServer(in_pieces(data, 1 << 14)) as server:
            assert (await collect(chat_at(server).stream(ask())))[-1].text == text

    run(main())


def packed(data, how):
    if how == "gzip":
        return gzip.compress(data)
    if how == "deflate":
        return zlib.compress(data)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("how", ["gzip", "deflate", "raw deflate"])
@pytest.mark.parametrize("kind", ["whole", "stream", "error"])
def test_replies_may_be_packed(run, ask, collect, chat_at, how, kind):
    async def script(one):
        assert how.split()[-1] in one.seen.headers["accept-encoding"]
        headers = {"content_encoding": how.split()[-1]}
        if kind == "stream":
            await one.head(200, "text/event-stream", transfer_encoding="chunked", **headers)
            data = packed(EVENTS, how)
            for start in range(0, len(data), 20):
                await one.chunk(data[start : start + 20])
            await one.chunk(b"")
        else:
            value = wire.completion(TEXT) if kind == "whole" else {"error": {"message": TEXT}}
            await one.answer(
                packed(json.dumps(value).encode(), how), 200 if kind == "whole" else 500, **headers
            )

    async def main():
        async with wire.WireServer(script) as server:
            model = chat_at(server)
            if kind == "stream":
                assert (await collect(model.stream(ask())))[-1].text == TEXT
            elif kind == "whole":
                assert (await model.generate(ask())).text == TEXT
            else:
                with pytest.raises(ModelError, match=TEXT):
                    await model.generate(ask())

    run(main())


async def too_short(one):
    await one.head(200, content_length="1000")
    await one.raw(json.dumps(wire.completion()).encode())
    await one.cut_off()


async def chunk_cut(one):
    await one.open_stream()
    await one.raw(b"fff\r\n" + wire.event(wire.chunk(content="Hel")))
    await one.cut_off()


async def ends_between_chunks(one):
    await one.open_stream()
    await one.chunk(wire.event(wire.chunk(content="Hel")))
    await one.cut_off()


async def ends_well_but_says_nothing_of_it(one):
    await one.open_stream()
    await one.chunk(wire.event(wire.chunk(content="Hel")) + b'data: {"choi')
    await one.chunk(b"")


async def no_http(one):
    await one.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    await one.cut_off()


@pytest.mark.parametrize(
    ("script", "streaming"),
    [
        (too_short, False),
        (no_http, False),
        (no_http, True),
        (too_short, True),
        (chunk_cut, True),
        (ends_between_chunks, True),
        (ends_well_but_says_nothing_of_it, True),
    ],
)
def test_a_body_that_ends_early_is_a_failed_connection(
    run, ask, collect, chat_at, script, streaming
):
    async def main():
        async with wire.WireServer(script) as server:
            with pytest.raises(ModelError) as caught:
                await (
                    collect(chat_at(server).stream(ask()))
                    if streaming
                    else chat_at(server).generate(ask())
                )
            assert (caught.value.kind, caught.value.retryable) == ("connection", True)
            assert "secret-key" not in str(caught.value)

    run(main())


@pytest.mark.parametrize(
    "data", [b"data: {nonsense\n\n", b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n']
)
def test_an_event_that_is_no_json_is_malformed(run, ask, collect, chat_at, data):
    async def main():
        async with wire.WireServer(
            in_pieces(EVENTS[:300].rpartition(b"data")[0] + data, 1 << 20)
        ) as server:
            with pytest.raises(ModelError) as caught:
                await collect(chat_at(server).stream(ask()))
        assert (caught.value.kind, caught.value.retryable) == ("malformed", True)

    run(main())


WRONG = [
    b'{"choices":5}',
    b'{"choices":{"a":1}}',
    b'{"choices":[{"%s":{"content":5}}]}',
    b'{"choices":[{"%s":{"content":[{"text":5}]}}]}',
    b'{"choices":[{"%s":{"refusal":5}}]}',
    b'{"choices":[{"%s":{"tool_calls":5}}]}',
    b'{"choices":[{"%s":{"tool_calls":[{"index":0,"id":[5],"function":{"name":"f","arguments":"{}"}}]}}]}',
]


@pytest.mark.parametrize("data", WRONG)
@pytest.mark.parametrize("streaming", [False, True])
def test_json_of_a_wrong_form_is_malformed(run, ask, collect, chat_at, data, streaming):
    data = data.replace(b"%s", b"delta" if streaming else b"message")

    async def main():
        async with wire.WireServer(
            in_pieces(b"data: " + data + b"\n\ndata: [DONE]\n\n", 1 << 20)
            if streaming
            else lambda one: one.answer(data)
        ) as server:
            with pytest.raises(
                ModelError, match=r"OpenAIChatModel.*not in the form of this API.*base_url"
            ) as caught:
                await (
                    collect(chat_at(server).stream(ask()))
                    if streaming
                    else chat_at(server).generate(ask())
                )
        assert (caught.value.kind, caught.value.retryable) == ("malformed", True)

    run(main())


@pytest.mark.parametrize(
    "output",
    [5, [{"type": "message", "content": 5}], [{"type": "message", "content": [{"text": 5}]}]],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_response_of_a_wrong_form_is_malformed(
    run, ask, collect, responses_at, output, streaming
):
    whole = {**wire.response(), "output": output}

    async def main():
        script = (
            (lambda one: one.events({"type": "response.completed", "response": whole}))
            if streaming
            else lambda one: one.answer(whole)
        )
        async with wire.WireServer(script) as server:
            with pytest.raises(ModelError, match="not in the form of this API") as caught:
                await (
                    collect(responses_at(server).stream(ask()))
                    if streaming
                    else responses_at(server).generate(ask())
                )
        assert (caught.value.kind, caught.value.retryable) == ("malformed", True)

    run(main())


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize("data", [b"[" * 100_000, b"9" * 10_000])
@pytest.mark.parametrize("streaming", [False, True])
def test_json_that_no_decoder_reads_is_malformed(run, ask, collect, chat_at, data, streaming):
    async def main():
        async with wire.WireServer(
            in_pieces(b"data: " + data + b"\n\n", 1 << 20)
            if streaming
            else lambda one: one.answer(data)
        ) as server:
            with pytest.raises(ModelError, match="cannot be read") as caught:
                await (
                    collect(chat_at(server).stream(ask()))
                    if streaming
                    else chat_at(server).generate(ask())
                )
        assert (caught.value.kind, caught.value.retryable) == ("malformed", True)

    run(main())


def test_half_a_surrogate_pair_in_an_event_is_read_as_json_reads_it(run, ask, collect, chat_at):
    async def main():
        data = (
            b'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n'
            + wire.event(wire.chunk("stop"))
            + b"data: [DONE]\n\n"
        )
        async with wire.WireServer(in_pieces(data, 1 << 20)) as server:
            assert (await collect(chat_at(server).stream(ask())))[0] == MessageDelta("a\ud83d")

    run(main())


def test_calls_interleaved_in_one_packet_and_usage_in_the_last(run, ask, collect, chat_at):
    def piece(index, **fields):
        return wire.chunk(tool_calls=[{"index": index, **fields}])

    chunks = [
        piece(1, id="b", function={"name": "g", "arguments": ""}),
        piece(0, id="a", function={"name": "f", "arguments": '{"x"'}),
        piece(1, function={"arguments": "{}"}),
        piece(0, function={"arguments": ":1}"}),
        wire.chunk("tool_calls"),
        wire.chunk(with_usage=True),
    ]

    async def main():
        data = b"".join(map(wire.event, chunks)) + b"data: [DONE]\n\n"
        async with wire.WireServer(in_pieces(data, 1 << 20)) as server:
            last = (await collect(chat_at(server).stream(ask())))[-1]
        assert sorted(last.tool_calls, key=lambda call: call.id) == [
            ToolCall("a", "f", '{"x":1}'),
            ToolCall("b", "g", "{}"),
        ]
        assert (last.usage.input_tokens, last.usage.cached_tokens) == (7, 3)

    run(main())


LARGE = "x" * 200_000


def packing(said):
    async def script(one):
        await one.answer(gzip.compress(json.dumps(said).encode()), content_encoding="gzip")

    return script


@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_reply_larger_than_max_reply_bytes_is_left(
    run, ask, collect, monkeypatch, kind, streaming, is_packed
):
    """Only over the wire: the client has no such bound."""
    monkeypatch.setattr(OpenAIModel, "_is_wired", True)
    said = (
        wire.completion(LARGE)
        if kind is OpenAIChatModel
        else wire.response(wire.output_text(LARGE))
    )

    async def main():
        async with wire.WireServer(packing(said) if is_packed else wire.saying(said)) as server:
            model = kind("m", api_key="k", base_url=server.url, max_reply_bytes=100_000)
            with pytest.raises(ModelError, match=r"100,000 bytes.*max_reply_bytes") as caught:
                await (collect(model.stream(ask())) if streaming else model.generate(ask()))
        assert caught.value.kind == "malformed"
        assert not caught.value.retryable

    run(main())
