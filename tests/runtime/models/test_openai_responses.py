"""The Responses API over real HTTP."""

import asyncio

import pytest

from offbook.runtime.data.chat import FilePart, ImagePart, Message, TextPart, ToolCall, Usage
from offbook.runtime.errors import ModelError, UsageError
from offbook.runtime.models import ModelSettings, OutputSchema, ToolSpec
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

STRICT = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
REASONING = {
    "type": "reasoning",
    "id": "x1",
    "summary": [{"type": "summary_text", "text": "because"}],
}


def test_what_is_sent(run, ask, responses_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.response(wire.output_text("Hello")))) as server:
            picture = ImagePart(data=b"png", media_type="image/png")
            request = ask(
                Message.system("be kind"),
                Message.user(
                    (
                        "what",
                        ImagePart(url="http://x/y.png", detail="low"),
                        FilePart(url="http://x/a.pdf"),
                    )
                ),
                Message.assistant("hm", [ToolCall("1", "look", "{}")]),
                Message.tool((TextPart("this"), picture), "1", "look"),
                tools=(
                    ToolSpec("look", "looks", STRICT),
                    ToolSpec("any", parameters={"type": "object", "properties": {"x": {}}}),
                ),
                tool_choice="look",
                output_schema=OutputSchema("City", STRICT),
                settings=ModelSettings(
                    max_tokens=9, reasoning_effort="low", parallel_tool_calls=False
                ),
            )
            reply = await responses_at(server).generate(request)
        assert reply == Message("assistant", "Hello", usage=Usage(7, 5, 3, 1), finish_reason="stop")
        body = server.seen[0].body
        assert server.seen[0].path == "/v1/responses"
        assert body["store"] is False
        system, user, said, call, result = body["input"]
        assert system == {"role": "system", "content": "be kind"}
        assert [part["type"] for part in user["content"]] == [
            "input_text",
            "input_image",
            "input_file",
        ]
        assert said == {"role": "assistant", "content": "hm"}
        assert call == {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"}
        assert [part["type"] for part in result["output"]] == ["input_text", "input_image"]
        assert [tool["strict"] for tool in body["tools"]] == [True, False]
        assert body["tool_choice"] == {"type": "function", "name": "look"}
        assert body["text"]["format"] == {
            "type": "json_schema",
            "name": "City",
            "schema": STRICT,
            "strict": True,
        }
        assert (body["max_output_tokens"], body["reasoning"], body["parallel_tool_calls"]) == (
            9,
            {"effort": "low", "summary": "auto"},
            False,
        )

    run(main())


def test_a_setting_that_this_api_has_not_is_refused(run, ask, responses_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            with pytest.raises(UsageError, match="seed"):
                await responses_at(server, seed=1).generate(ask())

    run(main())


WHOLE = wire.response(
    REASONING,
    wire.output_text("It is cold"),
    wire.output_call("f", '{"x":1}', "same"),
    wire.output_call("g", "{}", "same"),
)


def test_text_reasoning_and_calls_come_whole_and_in_pieces(run, ask, collect, shown, responses_at):
    async def main():
        async with wire.WireServer(wire.saying(WHOLE)) as server:
            model = responses_at(server)
            whole = await model.generate(ask())
            items = await collect(model.stream(ask()))
        assert shown(items) == "It is cold"
        assert "".join(item.reasoning for item in items[:-1]) == "because"
        for reply in (whole, items[-1]):
            assert (reply.text, reply.reasoning, reply.finish_reason) == (
                "It is cold",
                "because",
                "tool_calls",
            )
            assert [(call.name, call.arguments) for call in reply.tool_calls] == [
                ("f", '{"x":1}'),
                ("g", "{}"),
            ]
            assert len({call.id for call in reply.tool_calls}) == 2
        assert [delta.id for item in items[:-1] for delta in item.tool_calls if delta.id] == [
            call.id for call in items[-1].tool_calls
        ]
        assert (
            "".join(
                delta.arguments
                for item in items[:-1]
                for delta in item.tool_calls
                if delta.index == 0
            )
            == '{"x":1}'
        )

    run(main())


@pytest.mark.parametrize(
    ("said", "kind", "retryable"),
    [
        (wire.response(), "empty", True),
        (
            wire.response(
                REASONING, status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            "length",
            False,
        ),
        (
            wire.response(status="failed") | {"error": {"code": "server_error", "message": "oh"}},
            "server",
            True,
        ),
        (
            wire.response(status="failed")
            | {"error": {"code": "rate_limit_exceeded", "message": "oh"}},
            "rate_limit",
            True,
        ),
    ],
)
def test_a_response_that_is_of_no_use_is_an_error(
    run, ask, collect, responses_at, said, kind, retryable
):
    async def main():
        async with wire.WireServer(wire.saying(said)) as server:
            for call in (
                lambda model: model.generate(ask()),
                lambda model: collect(model.stream(ask())),
            ):
                with pytest.raises(ModelError) as caught:
                    await call(responses_at(server))
                assert (caught.value.kind, caught.value.retryable) == (kind, retryable)

    run(main())


def test_a_refusal_is_a_reply(run, ask, collect, responses_at):
    async def main():
        async with wire.WireServer(
            wire.saying(wire.response(wire.output_text("", refusal="no")))
        ) as server:
            assert (await responses_at(server).generate(ask())).refusal == "no"
            assert (await collect(responses_at(server).stream(ask())))[-1].refusal == "no"

    run(main())


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (wire.response_events(WHOLE)[:-1], "connection"),
        ([{"type": "error", "code": "server_error", "message": "oh", "param": None}], "server"),
    ],
)
def test_a_stream_that_breaks_may_be_tried_again(run, ask, collect, responses_at, events, kind):
    async def script(one):
        await one.events(*events, done=False, named=True)

    async def main():
        async with wire.WireServer(script) as server:
            with pytest.raises(ModelError) as caught:
                await collect(responses_at(server).stream(ask()))
        assert (caught.value.kind, caught.value.retryable) == (kind, True)

    run(main())


def test_a_cancelled_call_hangs_up(run, ask, responses_at):
    async def silent(one):
        await asyncio.Event().wait()

    async def main():
        async with wire.WireServer(silent) as server:
            task = asyncio.create_task(responses_at(server).generate(ask()))
            await server.arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)

    run(main())
