"""Every way in which a provider, or the way to it, can fail, and what is made of it."""

import asyncio
import email.utils
import socket
import time

import openai
import pytest

from offbook.runtime.errors import ModelError
from offbook.runtime.models import OpenAIChatModel
from offbook.runtime.models.openai_errors import KINDS, model_error
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")


def test_the_table_knows_every_error_of_the_library():
    """If this fails, the library has a new one: decide what it means."""
    known = {
        thing
        for module in (openai, openai._exceptions)
        for thing in list(vars(module).values())
        if isinstance(thing, type) and issubclass(thing, Exception)
    }
    assert {
        thing.__name__
        for thing in known
        if thing.__module__.startswith("openai") and thing.__name__[0] != "_"
    } == set(KINDS)


@pytest.mark.parametrize(
    ("status", "error", "kind", "retryable"),
    [
        (400, {}, "bad_request", False),
        (400, {"code": "context_length_exceeded"}, "context_length", False),
        (
            400,
            {"message": "This model's maximum context length is 10 tokens"},
            "context_length",
            False,
        ),
        (400, {"code": "content_filter"}, "content_filter", False),
        (401, {"code": "invalid_api_key"}, "auth", False),
        (403, {}, "permission", False),
        (404, {"code": "model_not_found", "type": "invalid_request_error"}, "not_found", False),
        (407, {}, "auth", False),
        (408, {}, "timeout", True),
        (409, {}, "conflict", True),
        (413, {}, "context_length", False),
        (418, {}, "bad_request", False),
        (422, {}, "bad_request", False),
        (429, {}, "rate_limit", True),
        (429, {"code": "insufficient_quota", "type": "insufficient_quota"}, "rate_limit", False),
        (500, {}, "server", True),
        (502, {}, "server", True),
        (503, {}, "overloaded", True),
        (529, {"type": "overloaded_error"}, "overloaded", True),
    ],
)
def test_a_status_is_told_by_kind(run, ask, chat_at, status, error, kind, retryable):
    async def main():
        async with wire.WireServer(wire.failing(status, error)) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
            with pytest.raises(ModelError) as streamed:
                await anext(chat_at(server).stream(ask()))
        assert len(server.seen) == 2, "nothing is tried again here"
        for one in (caught.value, streamed.value):
            assert (one.kind, one.status, one.retryable) == (kind, status, retryable)
            assert isinstance(one.__cause__, openai.APIStatusError)
        assert "secret-key" not in str(caught.value)

    run(main())


def date_in(seconds):
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"retry_after": "2.5"}, 2.5, 2.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5, 1.5),
        ({"retry_after": "-3"}, 0, 0),
        ({"retry_after": 60}, 50, 61),
        ({"retry_after": -60}, 0, 0),
    ],
)
def test_the_wait_that_the_provider_asks_for_is_read(run, ask, chat_at, headers, low, high):
    async def main():
        given = {
            name: date_in(value) if isinstance(value, int) else value
            for name, value in headers.items()
        }
        async with wire.WireServer(wire.failing(429, **given)) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert low <= caught.value.retry_after <= high

    run(main())


@pytest.mark.parametrize("headers", [{}, {"retry_after": "soon"}, {"retry_after": "nan"}])
def test_no_wait_is_read_where_none_is_given(run, ask, chat_at, headers):
    async def main():
        async with wire.WireServer(wire.failing(429, **headers)) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert caught.value.retry_after is None

    run(main())


def test_the_provider_may_say_itself_whether_to_try_again(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.failing(500, x_should_retry="false")) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert not caught.value.retryable

    run(main())


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_header_that_is_not_ascii_hides_no_error(run, ask, collect, chat_at, encoding, streaming):
    async def script(one):
        body = b'{"error": {"message": "too much"}}'
        await one.raw(
            "HTTP/1.1 429 X\r\nX-Region: Zürich\r\nRetry-After: 3\r\nContent-Length: "
            f"{len(body)}\r\n\r\n".encode(encoding)
            + body
        )

    async def main():
        async with wire.WireServer(script) as server:
            with pytest.raises(ModelError, match="too much") as caught:
                await (
                    collect(chat_at(server).stream(ask()))
                    if streaming
                    else chat_at(server).generate(ask())
                )
        assert (caught.value.kind, caught.value.status, caught.value.retry_after) == (
            "rate_limit",
            429,
            3,
        )

    run(main())


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"message": "it is down", "code": 502}, "server", True),
        ({"message": "it is down", "code": 429}, "rate_limit", True),
        ("it is down", "other", False),
    ],
)
def test_a_reply_that_came_through_and_tells_of_an_error_is_that_error(
    run, ask, chat_at, error, kind, retryable
):
    async def main():
        async with wire.WireServer(lambda one: one.answer({"error": error})) as server:
            with pytest.raises(ModelError, match="it is down") as caught:
                await chat_at(server).generate(ask())
        assert (caught.value.kind, caught.value.retryable) == (kind, retryable)

    run(main())


async def cut(one):
    await one.cut_off()


async def cut_in_the_body(one):
    await one.head(200, content_length="100")
    await one.raw(b'{"choices"')
    await one.cut_off()


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (cut, "connection"),
        (cut_in_the_body, "connection"),
        (lambda one: one.answer(b'{"choices": [', 200), "malformed"),
        (lambda one: one.answer(b"<html>busy</html>", 200, "text/html"), "malformed"),
        (lambda one: one.answer(b'"\xff"', 200), "malformed"),
        (lambda one: one.answer(b"null", 200), "malformed"),
    ],
)
def test_what_does_not_come_through_may_be_tried_again(run, ask, chat_at, script, kind):
    async def main():
        async with wire.WireServer(script) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert (caught.value.kind, caught.value.retryable) == (kind, True)

    run(main())


def test_a_silent_provider_times_out(run, ask, chat_at):
    async def silent(one):
        await asyncio.Event().wait()

    async def main():
        async with wire.WireServer(silent) as server:
            for call in (
                lambda model: model.generate(ask()),
                lambda model: anext(model.stream(ask())),
            ):
                with pytest.raises(ModelError) as caught:
                    await call(chat_at(server, timeout=0.05))
                assert (caught.value.kind, caught.value.retryable) == ("timeout", True)

    run(main())


def test_an_address_where_nobody_listens_is_a_failed_connection(run, ask):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]

    async def main():
        model = OpenAIChatModel("m", api_key="k", base_url=f"http://127.0.0.1:{port}")
        with pytest.raises(ModelError) as caught:
            await model.generate(ask())
        assert (caught.value.kind, caught.value.retryable) == ("connection", True)
        await model.aclose()  # here: as garbage, it would be closed whenever it is collected

    run(main())


def test_what_is_not_the_providers_fault_stays_what_it_is():
    assert model_error(TypeError("x"), "m") is None
    assert model_error(ValueError("x"), "m") is None
    assert model_error(TimeoutError(), "m").kind == "timeout"
    assert model_error(ConnectionResetError(), "m").kind == "connection"
