"""Whatever a provider answers, a model returns a message that is well typed, or raises a
`ModelError`: replies with wrong values, cut at each byte, split at each.
"""

import asyncio
import copy
import itertools
import json
from contextlib import aclosing

import pytest

from offbook.runtime.codec.packing import pack
from offbook.runtime.data.chat import Message, MessageDelta, ToolCall, Usage
from offbook.runtime.errors import ModelError
from offbook.runtime.models import (
    FailoverModel,
    LimitedModel,
    OpenAIChatModel,
    OpenAIResponsesModel,
    RetryModel,
)
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

WRONG = [
    None,
    True,
    0,
    -1,
    7.5,
    1e308,
    "",
    "text",
    [],
    [None],
    [7],
    ["text"],
    {},
    {"text": 7},
    {"a": {"b": []}},
]
REASONING = {
    "type": "reasoning",
    "id": "x1",
    "summary": [{"type": "summary_text", "text": "because"}],
}
CHAT = wire.completion(
    "It is cold",
    calls=[wire.call("f", '{"x":1}'), wire.call("g", "{}", "call_b")],
    reasoning_content="because",
)
RESPONSE = wire.response(
    REASONING,
    wire.output_text("It is cold"),
    wire.output_call("f", '{"x":1}'),
    wire.output_call("g", "{}", "call_b"),
)
APIS = {
    "chat": (OpenAIChatModel, CHAT, wire.completion_chunks(CHAT)),
    "responses": (OpenAIResponsesModel, RESPONSE, wire.response_events(RESPONSE)),
}
WRAPS = {
    "plain": lambda model: model,
    "retry": lambda model: RetryModel(model, max_retries=0),
    "failover": lambda model: FailoverModel([model]),
    "limited": lambda model: LimitedModel(model, max_concurrency=1),
}


def places(value, path=()):
    """The path of each part of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


def missing(value, path):
    made = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return made


def mutations(value):
    for path in places(value):
        yield from (changed(value, path, new) for new in WRONG)
        if path:
            yield missing(value, path)


def is_text(value):
    return isinstance(value, str)


def check_message(message):
    assert isinstance(message, Message)
    assert is_text(message.content)
    for call in message.tool_calls:
        assert isinstance(call, ToolCall)
        assert call.id
        assert all(map(is_text, (call.id, call.name, call.arguments)))
    for text in (message.reasoning, message.refusal, message.finish_reason):
        assert text is None or is_text(text)
    usage = message.usage + Usage()
    for number in (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.requests):
        assert type(number) is int
        assert number >= 0
    pack(message)


def check_delta(delta):
    assert isinstance(delta, MessageDelta)
    assert all(map(is_text, (delta.content, delta.reasoning)))
    for one in delta.tool_calls:
        assert type(one.index) is int
        assert all(map(is_text, (one.id, one.name, one.arguments)))


async def outcome(model, request, *, streaming):
    """The message, checked, or the `ModelError`. Any other exception is a failure of the test."""
    try:
        if not streaming:
            message = await model.generate(request)
        else:
            message = None
            async with aclosing(model.stream(request)) as items:
                async for item in items:
                    if isinstance(item, Message):
                        message = item
                    else:
                        check_delta(item)
        check_message(message)
    except ModelError as error:
        return error
    return message


def scripts_of(bodies):
    async def next_one(to):
        await next(bodies)(to)

    return next_one


def whole(value):
    async def script(to):
        await to.answer(value)

    return script


def stream(values):
    async def script(to):
        await to.events(*values)

    return script


async def sweep(api, request, scripts, *, streaming, wrap=WRAPS["plain"], **settings):
    """The outcome of each script."""
    kind, scripts = APIS[api][0], list(scripts)
    async with wire.WireServer(scripts_of(iter(scripts))) as server:
        inner = kind("m", api_key="k", base_url=server.url, **settings)
        model, outcomes = wrap(inner), []
        for place in range(len(scripts)):
            try:
                outcomes.append(
                    await asyncio.wait_for(outcome(model, request, streaming=streaming), 10)
                )
            except Exception as error:
                error.add_note(f"script {place}")
                raise
        await inner.aclose()
    return outcomes


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize("api", APIS)
def test_a_whole_reply_with_a_wrong_value_anywhere_is_a_message_or_a_model_error(run, ask, api):
    made = list(mutations(APIS[api][1]))
    outcomes = run(sweep(api, ask(), map(whole, made), streaming=False))
    assert len(outcomes) == len(made) > 500


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize("api", APIS)
def test_a_stream_with_a_wrong_value_anywhere_is_a_message_or_a_model_error(run, ask, api):
    events = APIS[api][2]
    made = [
        [*events[:place], wrong, *events[place + 1 :]]
        for place, event in enumerate(events)
        for wrong in mutations(event)
    ]
    made += [[*events[:place], *events[place + 1 :]] for place in range(len(events))]
    outcomes = run(sweep(api, ask(), map(stream, made), streaming=True))
    assert len(outcomes) == len(made) > 1_000


# --- cut and split ---


async def leave_at_once(to):
    await to.cut_off()


async def say_goodbye(to):
    to._writer.close()


def cut_whole(data, count, leave):
    async def script(to):
        await to.head(content_length=str(len(data)))
        await to.raw(data[:count])
        await leave(to)

    return script


def cut_stream(data, count, leave):
    async def script(to):
        await to.open_stream()
        if count:
            await to.chunk(data[:count])
        await leave(to)

    return script


def split_stream(data, *cuts):
    async def script(to):
        await to.open_stream()
        for start, end in itertools.pairwise((0, *cuts, len(data))):
            if end > start:
                await to.chunk(data[start:end])
                await asyncio.sleep(0)
        await to.chunk(b"")

    return script


def bytes_of(api):
    """A whole reply and a stream, as they are sent, with characters of several bytes."""
    kind, said, _ = APIS[api]
    said = json.loads(json.dumps(said).replace("It is cold", "It is 3 °C 🥶"))
    events = wire.completion_chunks(said) if kind is OpenAIChatModel else wire.response_events(said)
    end = b"data: [DONE]\n\n" if kind is OpenAIChatModel else b""
    return json.dumps(said, ensure_ascii=False).encode(), b"".join(map(wire.event, events)) + end


def steps(length, step):
    return range(0, length, step)


EVERY = pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])


@EVERY
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("leave", [leave_at_once, say_goodbye])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_a_reply_that_is_cut_at_any_byte_is_a_model_error_or_is_whole(
    run, ask, api, streaming, leave, wrap, step
):
    async def main():
        data, cut = bytes_of(api)[streaming], cut_stream if streaming else cut_whole
        (good,) = await sweep(api, ask(), [cut(data, len(data), say_goodbye)], streaming=streaming)
        outcomes = await sweep(
            api,
            ask(),
            [cut(data, count, leave) for count in steps(len(data), step)],
            streaming=streaming,
            wrap=WRAPS[wrap],
        )
        assert any(isinstance(one, ModelError) for one in outcomes)
        for one in outcomes:
            assert isinstance(one, ModelError) or (one.content, one.tool_calls) == (
                good.content,
                good.tool_calls,
            )

    run(main())


@EVERY
@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_split_at_any_byte_is_the_same(run, ask, api, step):
    async def main():
        data = bytes_of(api)[1]
        (good,) = await sweep(api, ask(), [split_stream(data)], streaming=True)
        assert good.content == "It is 3 °C 🥶"
        scripts = [split_stream(data, cut) for cut in steps(len(data), step)]
        scripts += [split_stream(data, *range(size, len(data), size)) for size in (1, 2, 3, 7, 64)]
        assert all(one == good for one in await sweep(api, ask(), scripts, streaming=True))

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_of_several_choices_the_first_is_taken_and_nothing_is_mixed(run, ask, streaming):
    async def main():
        if streaming:
            chunks = []
            for word in ("one ", "two "):
                for index in (0, 1):
                    chunk = wire.chunk(content=f"{word}of {index} ")
                    chunk["choices"][0]["index"] = index
                    chunks.append(chunk)
            script = stream([*chunks, wire.chunk("stop")])
        else:
            said = wire.completion("the first")
            said["choices"].insert(0, {**wire.completion("the second")["choices"][0], "index": 1})
            script = whole(said)
        (reply,) = await sweep("chat", ask(), [script], streaming=streaming)
        assert reply.content == ("one of 0 two of 0 " if streaming else "the first")

    run(main())


# --- errors in a stream ---

SAID = [
    (
        {"error": {"message": "out of luck", "type": "server_error", "code": "server_error"}},
        "out of luck",
        "server",
        None,
    ),
    ({"error": {"message": "out of luck", "code": 429}}, "out of luck", "rate_limit", 429),
    ({"error": {"message": "out of luck", "code": "429"}}, "out of luck", "rate_limit", 429),
    ({"error": {"message": "out of luck", "status": 503}}, "out of luck", "overloaded", 503),
    ({"error": {"code": "overloaded"}}, "overloaded", "overloaded", None),
    ({"error": "out of luck"}, "out of luck", "other", None),
    (
        {"error": {"error": {"message": "out of luck", "type": "overloaded_error"}}},
        "out of luck",
        "overloaded",
        None,
    ),
    ({"error": {"detail": "out of luck"}}, "out of luck", "other", None),
    ({"error": "out of luck", "status_code": 500}, "out of luck", "server", 500),
    (
        {"object": "error", "message": "out of luck", "type": "server_error", "code": 500},
        "out of luck",
        "server",
        500,
    ),
    (
        {"type": "error", "error": {"type": "overloaded_error", "message": "out of luck"}},
        "out of luck",
        "overloaded",
        None,
    ),
    ({"detail": "out of luck"}, "out of luck", "other", None),
    (
        {"errors": [{"message": "out of luck", "code": "rate_limit_exceeded"}]},
        "out of luck",
        "rate_limit",
        None,
    ),
    ({"message": "out of luck", "code": "rate_limit_exceeded"}, "out of luck", "rate_limit", None),
]


@pytest.mark.parametrize(
    ("said", "text", "kind", "status"), SAID, ids=[json.dumps(one[0])[:60] for one in SAID]
)
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("way", ["wire"], indirect=True)
def test_an_error_in_a_stream_keeps_its_text_and_its_kind_whatever_its_form(
    run, ask, said, text, kind, status, before
):
    (error,) = run(
        sweep(
            "chat",
            ask(),
            [stream([*([wire.chunk(content="It is")] if before else []), said])],
            streaming=True,
        )
    )
    assert isinstance(error, ModelError)
    assert text in str(error)
    assert (error.kind, error.status) == (kind, status)
