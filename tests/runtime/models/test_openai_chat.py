"""Chat completions over real HTTP: what is sent, and what is made of what comes back."""

import asyncio
import base64

import pytest

from offbook.runtime.data.chat import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    Usage,
)
from offbook.runtime.errors import ModelError, UsageError
from offbook.runtime.models import ModelSettings, OpenAIChatModel, OutputSchema, ToolSpec
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

STRICT = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_a_text_is_answered_with_its_usage(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion("Hello"))) as server:
            reply = await chat_at(server).generate(ask(Message.system("be kind"), "hi"))
        assert reply == Message("assistant", "Hello", usage=Usage(7, 5, 3, 1), finish_reason="stop")
        seen = server.seen[0]
        assert seen.path == "/v1/chat/completions"
        assert seen.headers["authorization"] == "Bearer secret-key"
        assert seen.body == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": "hi"},
            ],
        }

    run(main())


def test_settings_of_the_request_go_before_those_of_the_model(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion())) as server:
            model = chat_at(
                server,
                temperature=0.1,
                max_tokens=5,
                stop=["x", "y"],
                reasoning_effort="low",
                extra={"top_k": 3},
            )
            await model.generate(ask(settings=ModelSettings(temperature=0.9, seed=1)))
        body = server.seen[0].body
        assert {name: body[name] for name in set(body) - {"model", "messages"}} == {
            "temperature": 0.9,
            "max_tokens": 5,
            "stop": ["x", "y"],
            "reasoning_effort": "low",
            "seed": 1,
            "top_k": 3,
        }

    run(main())


def test_tools_and_the_form_of_the_answer_are_offered(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion())) as server:
            tools = (
                ToolSpec("weather", "tells it", STRICT),
                ToolSpec("any", parameters={"type": "object", "properties": {"x": {}}}),
                ToolSpec("bare"),
            )
            schema = OutputSchema("City", STRICT)
            await chat_at(server, parallel_tool_calls=False).generate(
                ask(tools=tools, tool_choice="weather", output_schema=schema)
            )
        body = server.seen[0].body
        assert [tool["function"].get("strict") for tool in body["tools"]] == [True, None, True]
        assert body["tools"][0]["function"] == {
            "name": "weather",
            "description": "tells it",
            "parameters": STRICT,
            "strict": True,
        }
        assert body["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
        assert body["parallel_tool_calls"] is False
        assert body["response_format"] == {
            "type": "json_schema",
            "json_schema": {"name": "City", "schema": STRICT, "strict": True},
        }

    run(main())


def test_media_go_where_they_are_taken(run, ask, chat_at):
    picture = ImagePart(data=b"png", media_type="image/png", detail="low")
    encoded = base64.b64encode(b"png").decode()

    async def main():
        async with wire.WireServer(wire.saying(wire.completion())) as server:
            sound, paper = (
                AudioPart(data=b"wav", media_type="audio/wav"),
                FilePart(data=b"pdf", media_type="application/pdf", name="a.pdf"),
            )
            calls = (ToolCall("1", "look", "{}"), ToolCall("2", "see", ""))
            await chat_at(server).generate(
                ask(
                    Message.user(("what", ImagePart(url="http://x/y.png"), sound, paper)),
                    Message.assistant("", calls),
                    Message.tool((TextPart("this"), picture), "1", "look"),
                    Message.tool("that", "2", "see"),
                    "so?",
                )
            )
        first, calling, one, two, moved, last = server.seen[0].body["messages"]
        assert [part["type"] for part in first["content"]] == [
            "text",
            "image_url",
            "input_audio",
            "file",
        ]
        assert first["content"][1]["image_url"] == {"url": "http://x/y.png"}
        assert first["content"][2]["input_audio"] == {
            "data": base64.b64encode(b"wav").decode(),
            "format": "wav",
        }
        assert first["content"][3]["file"]["filename"] == "a.pdf"
        assert calling["content"] is None
        assert [call["function"]["arguments"] for call in calling["tool_calls"]] == ["{}", "{}"]
        assert (one, two) == (
            {"role": "tool", "tool_call_id": "1", "content": "this"},
            {"role": "tool", "tool_call_id": "2", "content": "that"},
        )
        assert moved["role"] == "user"
        assert "look" in moved["content"][0]["text"]
        assert moved["content"][1] == {
            "type": "image_url",
            "image_url": {"url": f"data:image/png;base64,{encoded}", "detail": "low"},
        }
        assert last["content"] == "so?"

    run(main())


def test_audio_at_an_address_is_refused(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            with pytest.raises(UsageError, match="Download it"):
                await chat_at(server).generate(ask(Message.user(AudioPart(url="http://x/a.wav"))))
        assert server.seen == []

    run(main())


@pytest.mark.parametrize(
    "calls",
    [
        [wire.call("a", "{}", None), wire.call("b", '{"x":1}', "")],
        [wire.call("a", "{}", "same"), wire.call("b", {"x": 1}, "same")],
        [wire.call("a", "", "before"), wire.call("b", '{"x":1}', "other")],
    ],
)
def test_every_tool_call_has_an_id_of_its_own(run, ask, chat_at, calls):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion(None, calls=calls))) as server:
            reply = await chat_at(server).generate(
                ask(
                    "hi",
                    Message.assistant("", [ToolCall("before", "a", "{}")]),
                    Message.tool("", "before"),
                )
            )
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [
            ("a", "{}"),
            ("b", '{"x":1}'),
        ]
        ids = [call.id for call in reply.tool_calls]
        assert all(ids)
        assert len({*ids, "before"}) == 3

    run(main())


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_of_other_providers_is_kept(run, ask, chat_at, field):
    async def main():
        async with wire.WireServer(
            wire.saying(wire.completion("42", **{field: "because"}))
        ) as server:
            assert (await chat_at(server).generate(ask())).reasoning == "because"

    run(main())


def test_a_refusal_is_a_reply(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion(None, refusal="no way"))) as server:
            model = chat_at(server)
            reply = await model.generate(ask())
            assert (reply.text, reply.refusal) == ("", "no way")
            await model.generate(ask("hi", reply, "please"))
        assert server.seen[1].body["messages"][1] == {
            "role": "assistant",
            "content": None,
            "refusal": "no way",
        }

    run(main())


@pytest.mark.parametrize(
    ("said", "kind", "retryable"),
    [
        (wire.completion(None), "empty", True),
        (wire.completion(""), "empty", True),
        ({**wire.completion(), "choices": []}, "empty", True),
        (wire.completion("", finish_reason="length"), "length", False),
        (wire.completion("", finish_reason="content_filter"), "content_filter", False),
    ],
)
def test_a_reply_that_says_nothing_is_an_error(run, ask, chat_at, said, kind, retryable):
    async def main():
        async with wire.WireServer(wire.saying(said)) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
        assert caught.value.message.usage.requests == 1

    run(main())


def test_a_provider_that_counts_nothing_has_been_asked_once_all_the_same(run, ask, chat_at):
    async def main():
        said = {
            "choices": [
                {
                    "message": {
                        "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
                    }
                }
            ]
        }
        async with wire.WireServer(wire.saying(said | {"object": ""})) as server:
            reply = await chat_at(server).generate(ask())
        assert (reply.text, reply.usage) == ("Hello", Usage(requests=1))

    run(main())


def test_azure_finds_the_deployment_by_the_name(run, ask):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion())) as server:
            root = server.url.removesuffix("/v1")
            model = OpenAIChatModel(
                "deployed",
                api_key="k",
                base_url=root,
                azure=True,
                api_version="2024-10-21",
                max_tokens=3,
            )
            await model.generate(ask())
        seen = server.seen[0]
        assert seen.path == "/openai/deployments/deployed/chat/completions?api-version=2024-10-21"
        assert seen.headers["api-key"] == "k"
        assert seen.body["max_completion_tokens"] == 3

    run(main())


def test_a_cancelled_call_hangs_up(run, ask, chat_at):
    async def silent(wire_):
        await asyncio.Event().wait()

    async def main():
        async with wire.WireServer(silent) as server:
            task = asyncio.create_task(chat_at(server).generate(ask()))
            await server.arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)

    run(main())


def test_many_calls_at_once_each_get_their_own_answer(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = chat_at(server)
            replies = await asyncio.gather(
                *(model.generate(ask(f"text {number}")) for number in range(50))
            )
        assert [reply.text for reply in replies] == [f"text {number}" for number in range(50)]

    run(main())
