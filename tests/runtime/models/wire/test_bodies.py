"""Bodies of requests: the same on the wire as through the client, and written once."""

import asyncio
import copy
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offbook.runtime.codec import pack, unpack
from offbook.runtime.data.chat import AudioPart, FilePart, ImagePart, Message, TextPart, ToolCall
from offbook.runtime.models import (
    ModelRequest,
    ModelSettings,
    OpenAIChatModel,
    OpenAIResponsesModel,
    OutputSchema,
    ToolSpec,
)
from offbook.runtime.models.openai_chat_request import chat_items, chat_request
from offbook.runtime.models.openai_model import OpenAIModel
from offbook.runtime.models.openai_responses_request import responses_items, responses_request
from offbook.runtime.models.wire import body
from tests.programs import openai_wire as wire

KINDS = (OpenAIChatModel, OpenAIResponsesModel)
STRICT = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(lambda data: ImagePart(data=data, media_type="image/png"), st.binary(max_size=8)),
    st.just(AudioPart(data=b"wav", media_type="audio/wav")),
    st.just(FilePart(data=b"pdf", media_type="application/pdf", name="a.pdf")),
)
contents = st.one_of(texts, st.lists(parts, max_size=3).map(tuple))
calls = st.lists(
    st.builds(ToolCall, texts, texts, st.sampled_from(["", "{}", '{"x":"ü"}'])), max_size=2
).map(tuple)
messages = st.one_of(
    st.builds(Message, st.just("system"), contents),
    st.builds(Message, st.just("user"), contents),
    st.builds(Message, st.just("assistant"), contents, calls, refusal=st.one_of(st.none(), texts)),
    st.builds(
        Message,
        st.just("tool"),
        contents,
        tool_call_id=texts,
        tool_name=st.one_of(st.none(), texts),
    ),
)


@given(st.lists(messages, max_size=6))
@settings(max_examples=200, deadline=None)
def test_messages_are_written_as_the_client_writes_them(said):
    request = ModelRequest(tuple(said))
    for _ in range(2):  # as they are written first, and as they are kept
        assert [json.loads(item) for item in chat_items(said)] == chat_request(
            "m", request, ModelSettings(), is_openai=True
        )["messages"]
        assert (
            json.loads(b"[" + b",".join(responses_items(said)) + b"]")
            == responses_request("m", request, ModelSettings())["input"]
        )


REQUESTS = [
    {},
    {
        "settings": ModelSettings(
            temperature=0.5,
            top_p=0.1,
            max_tokens=7,
            parallel_tool_calls=False,
            reasoning_effort="low",
        )
    },
    {"settings": ModelSettings(extra={"top_k": 3, "metadata": {"a": [1, None]}})},
    {
        "tools": (ToolSpec("weather", "tells it", STRICT), ToolSpec("bare")),
        "tool_choice": "weather",
    },
    {
        "tools": (ToolSpec("weather", "tells it", STRICT),),
        "settings": ModelSettings(tool_choice="required"),
    },
    {"output_schema": OutputSchema("City", STRICT)},
    {
        "settings": ModelSettings(
            extra={"messages": [{"role": "user", "content": "instead"}], "input": "instead"}
        )
    },
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", REQUESTS, ids=range(len(REQUESTS)))
def test_a_body_says_the_same_on_both_ways(run, ask, collect, monkeypatch, kind, fields):
    async def main():
        bodies = []
        for is_wired in (True, False):
            monkeypatch.setattr(OpenAIModel, "_is_wired", is_wired)
            async with wire.WireServer(
                wire.saying(
                    wire.completion()
                    if kind is OpenAIChatModel
                    else wire.response(wire.output_text("x"))
                )
            ) as server:
                model = kind("m", api_key="k", base_url=server.url, top_p=0.9)
                for _ in range(2):
                    await model.generate(ask(Message.system("be kind"), "hello", **fields))
                    await collect(model.stream(ask(Message.system("be kind"), "hello", **fields)))
            bodies.append([seen.body for seen in server.seen])
        assert bodies[0] == bodies[1]

    run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_written_once_in_its_life(run, monkeypatch, kind):
    written = []
    monkeypatch.setattr(
        body, "_encode", lambda value, encode=body._encode: written.append(value) or encode(value)
    )

    async def main():
        said = tuple(Message.user(f"message {number}") for number in range(50))
        async with wire.WireServer(wire.echo) as server:
            models = [
                kind("m", api_key="k", base_url=server.url),
                kind("n", api_key="k", base_url=server.url),
            ]
            for number in range(1, 51):
                await models[number % 2].generate(ModelRequest(said[:number]))
        assert len(server.seen[-1].body["messages" if kind is OpenAIChatModel else "input"]) == 50
        assert (
            len([value for value in written if "message" in str(value) and "model" not in value])
            == 50
        )

    run(main())


def test_what_a_message_was_written_as_is_no_part_of_it():
    message = Message.user("hello")
    chat_items([message])
    responses_items([message])
    other = Message.user("hello")
    assert message == other
    assert hash(message) == hash(other)
    assert "hello" not in repr(message).replace("content='hello'", "")
    for copied in (
        copy.copy(message),
        copy.deepcopy(message),
        pickle.loads(pickle.dumps(message)),
        unpack(pack(message)),
    ):
        assert copied == message
        assert json.loads(chat_items([copied])[0])["content"] == "hello"
    assert json.loads(chat_items([message.replace(content="other")])[0])["content"] == "other"
    assert [name for name in Message.__struct_fields__ if name.startswith("_")] == []


def test_a_large_message_is_not_kept_twice(ask):
    message = Message.user(ImagePart(data=b"x" * 300_000, media_type="image/png"))
    first, second = chat_items([message])[0], chat_items([message])[0]
    assert first == second
    assert first is not second


def test_settings_and_names_that_are_changed_meanwhile_are_heeded(run, ask):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            extra = {"top_k": 1}
            model = OpenAIChatModel("m", api_key="k", base_url=server.url, extra=extra)
            request = ask("x")
            await model.generate(request)
            extra["top_k"] = 2
            await model.generate(request)
            model.model = "n"
            model.settings = ModelSettings(temperature=1.0)
            await model.generate(request)
        assert [
            (seen.body["model"], seen.body.get("top_k"), seen.body.get("temperature"))
            for seen in server.seen
        ] == [
            ("m", 1, None),
            ("m", 2, None),
            ("n", None, 1.0),
        ]

    run(main())


def test_many_at_once_each_send_their_own(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = chat_at(server)
            shared = Message.system("shared")
            replies = await asyncio.gather(
                *(model.generate(ask(shared, f"number {number}")) for number in range(200))
            )
        assert [reply.text for reply in replies] == [f"number {number}" for number in range(200)]

    run(main())
