"""What every model keeps to, whichever it is."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from offbook.runtime.backoff import Backoff
from offbook.runtime.data.chat import Message, MessageDelta, ToolCall
from offbook.runtime.errors import ModelError
from offbook.runtime.models import (
    ChatModel,
    FailoverModel,
    LimitedModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    RetryModel,
    ScriptedModel,
    ToolCalls,
    stream_of,
)
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

SOON = Backoff(initial=0, jitter=0)


def scripted(lines):
    calls = {
        "call": ToolCalls(ToolCall("call_a", "f", '{"x":1}'), text="so"),
        "fail": ModelError("no", kind="auth"),
    }
    return ScriptedModel([calls.get(line, line) for line in lines])


def on_the_wire(kind):
    @asynccontextmanager
    async def opened(lines):
        scripts = []
        for line in lines:
            if line == "fail":
                scripts.append(wire.failing(401))
            elif kind is OpenAIChatModel:
                scripts.append(
                    wire.saying(
                        wire.completion("so", calls=[wire.call("f", '{"x":1}')])
                        if line == "call"
                        else wire.completion(line)
                    )
                )
            else:
                output = (
                    (wire.output_text("so"), wire.output_call("f", '{"x":1}'))
                    if line == "call"
                    else (wire.output_text(line),)
                )
                scripts.append(wire.saying(wire.response(*output)))
        async with wire.WireServer(*scripts) as server:
            yield kind("m", api_key="secret-key", base_url=server.url)

    return opened


def wrapped(wrap):
    @asynccontextmanager
    async def opened(lines):
        yield wrap(scripted(lines))

    return opened


class WithoutStream:
    """What a user may write: `generate`, and nothing else."""

    def __init__(self, inner):
        self.generate = inner.generate


MODELS = {
    "scripted": wrapped(lambda model: model),
    "chat": on_the_wire(OpenAIChatModel),
    "responses": on_the_wire(OpenAIResponsesModel),
    "retry": wrapped(lambda model: RetryModel(model, backoff=SOON)),
    "failover": wrapped(lambda model: FailoverModel([model])),
    "failover in a run": wrapped(lambda model: FailoverModel([model]).for_run()),
    "limited": wrapped(
        lambda model: LimitedModel(model, max_concurrency=50, requests_per_minute=1000)
    ),
    "all": wrapped(
        lambda model: LimitedModel(
            RetryModel(FailoverModel([RetryModel(model, backoff=SOON)]), backoff=SOON),
            max_concurrency=50,
        ).for_run()
    ),
    "without stream": wrapped(
        lambda model: LimitedModel(RetryModel(FailoverModel([WithoutStream(model)])))
    ),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def model_of(request):
    return request.param


def test_it_is_a_chat_model_and_shows_no_secret(run, model_of):
    async def main():
        async with model_of(["x"]) as model:
            assert isinstance(model, ChatModel)
            assert "secret-key" not in repr(model)

    run(main())


def test_a_stream_ends_with_what_generate_says(run, ask, collect, shown, model_of):
    async def main():
        async with model_of(["call", "call"]) as model:
            whole = await model.generate(ask())
            items = await collect(stream_of(model, ask()))
        assert items[-1] == whole
        assert (whole.role, whole.text, whole.tool_calls) == (
            "assistant",
            "so",
            (ToolCall("call_a", "f", '{"x":1}'),),
        )
        assert all(isinstance(item, MessageDelta) for item in items[:-1])
        if len(items) > 1:
            assert shown(items) == "so"
            assert (
                "".join(delta.arguments for item in items[:-1] for delta in item.tool_calls)
                == '{"x":1}'
            )

    run(main())


def test_messages_have_ids_of_their_own(run, ask, model_of):
    async def main():
        async with model_of(["x", "x"]) as model:
            replies = [await model.generate(ask()) for _ in range(2)]
        assert replies[0] == replies[1]
        assert replies[0].id != replies[1].id

    run(main())


def test_an_error_is_a_model_error_in_both(run, ask, collect, model_of):
    async def main():
        for call in (
            lambda model: model.generate(ask()),
            lambda model: collect(stream_of(model, ask())),
        ):
            async with model_of(["fail"]) as model:
                with pytest.raises(ModelError) as caught:
                    await call(model)
                assert caught.value.kind == "auth"

    run(main())


def test_calls_may_overlap(run, ask, collect, model_of):
    async def main():
        async with model_of(["same"] * 20) as model:
            replies = await asyncio.gather(
                *(model.generate(ask()) for _ in range(10)),
                *(collect(stream_of(model, ask())) for _ in range(10)),
            )
        assert {(reply if isinstance(reply, Message) else reply[-1]).text for reply in replies} == {
            "same"
        }

    run(main())


def test_a_stream_may_be_left_at_any_point(run, ask, model_of):
    async def main():
        async with model_of(["one two three"] * 4) as model:
            for taken in range(3):
                stream = stream_of(model, ask())
                for _ in range(min(taken, 1) if "WithoutStream" in repr(model) else taken):
                    await anext(stream)
                await stream.aclose()
            assert (await model.generate(ask())).text == "one two three"

    run(main())
