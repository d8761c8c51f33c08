"""What stands before a request's body: keys, headers, queries and addresses, on the wire and
through the client alike, and as the client has them.
"""

import asyncio
import logging
import pickle

import openai
import pytest

from offbook.runtime.errors import ModelError, UsageError
from offbook.runtime.models import OpenAIChatModel, OpenAIResponsesModel
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

BOTH = pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])


@BOTH
def test_headers_and_queries_of_the_callers_are_sent(run, ask, collect, monkeypatch, kind):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: blue\nX-Shift: night")

    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = kind(
                "m",
                api_key="k",
                base_url=f"{server.url}/?tenant=9",
                organization="org-1",
                project="proj-2",
                default_headers={"X-Shift": "day", "User-Agent": "mine/1"},
                default_query={"trace": "yes"},
            )
            await model.generate(ask())
            await collect(model.stream(ask()))
        for seen in server.seen:
            assert {
                name: seen.headers.get(name)
                for name in (
                    "x-team",
                    "x-shift",
                    "user-agent",
                    "openai-organization",
                    "openai-project",
                )
            } == {
                "x-team": "blue",
                "x-shift": "day",
                "user-agent": "mine/1",
                "openai-organization": "org-1",
                "openai-project": "proj-2",
            }
            assert "trace=yes" in seen.path
            assert seen.headers["content-type"] == "application/json"
            assert seen.headers["accept"] == "application/json"

    run(main())


@BOTH
@pytest.mark.parametrize(
    ("base", "more", "path"),
    [
        (
            "",
            {},
            {
                "chat": "/openai/deployments/gpt/chat/completions?api-version=2024-10-21",
                "responses": "/openai/responses?api-version=2024-10-21",
            },
        ),
        (
            "/openai/v1",
            {},
            {
                "chat": "/openai/v1/deployments/gpt/chat/completions?api-version=2024-10-21",
                "responses": "/openai/v1/responses?api-version=2024-10-21",
            },
        ),
        (
            "",
            {"default_query": {"a": "b"}},
            {
                "chat": "/openai/deployments/gpt/chat/completions?a=b&api-version=2024-10-21",
                "responses": None,
            },
        ),
    ],
)
def test_azure_has_deployments_and_versions(run, ask, collect, kind, base, more, path):
    expected = path["chat" if kind is OpenAIChatModel else "responses"]

    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = kind(
                "gpt",
                api_key="k",
                base_url=server.url.removesuffix("/v1") + base,
                azure=True,
                api_version="2024-10-21",
                **more,
            )
            await model.generate(ask())
            await collect(model.stream(ask()))
        for seen in server.seen:
            assert expected is None or seen.path == expected
            assert seen.headers["api-key"] == "k"
            assert "authorization" not in seen.headers

    run(main())


def test_an_azure_token_of_the_environment_is_used(run, ask, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "token")

    async def main():
        async with wire.WireServer(wire.echo) as server:
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
            await OpenAIChatModel("gpt", azure=True, api_version="1").generate(ask())
        assert server.seen[0].headers["authorization"] == "Bearer token"

    run(main())


@pytest.mark.parametrize("azure", [False, True])
def test_a_key_may_come_from_a_function_which_is_asked_each_time(run, ask, collect, azure):
    keys = iter(["first", "second", "third"])

    async def key():
        await asyncio.sleep(0)
        return next(keys)

    async def main():
        async with wire.WireServer(wire.echo) as server:
            more = {"azure": True, "api_version": "1"} if azure else {}
            model = OpenAIChatModel(
                "m",
                api_key=key,
                base_url=server.url.removesuffix("/v1") if azure else server.url,
                **more,
            )
            await model.generate(ask())
            await collect(model.stream(ask()))
            await model.generate(ask())
        name, prefix = ("api-key", "") if azure else ("authorization", "Bearer ")
        assert [seen.headers[name] for seen in server.seen] == [
            prefix + one for one in ("first", "second", "third")
        ]

    run(main())


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize("key", [None, "", 7, "secret\n"])
def test_a_function_that_returns_no_key_says_so(run, ask, key):
    async def give():
        return key

    async def main():
        async with wire.WireServer(wire.echo) as server:
            with pytest.raises(ModelError, match="key") as caught:
                await OpenAIChatModel("m", api_key=give, base_url=server.url).generate(ask())
        assert caught.value.kind == "auth"
        assert "secret" not in str(caught.value)
        assert server.seen == []

    run(main())


def test_a_function_that_fails_fails_the_call_as_it_is(run, ask):
    async def give():
        raise LookupError("the vault is sealed")

    async def main():
        with pytest.raises(LookupError, match="the vault is sealed"):
            await OpenAIChatModel("m", api_key=give, base_url="http://127.0.0.1:9").generate(ask())

    run(main())


def test_a_name_and_a_password_in_the_address_are_sent_as_such(run, ask):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = OpenAIChatModel(
                "m", api_key="k", base_url=server.url.replace("//", "//user:secret@")
            )
            await model.generate(ask())
            assert "secret" not in repr(model)
        assert server.seen[0].headers["authorization"].startswith("Basic ")

    run(main())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"base_url": "http://[::1/v1"}, "base_url must be an .* URL .*: Invalid IPv6 URL"),
        (
            {"base_url": "http://127.0.0.1:99999/v1"},
            "base_url must be an .* URL .*, with a port of at most 65535",
        ),
        (
            {"base_url": "http://127.0.0.1:abc/v1"},
            "base_url must be an .* URL .*, with a port of at most 65535",
        ),
        ({"max_connections": 0}, "max_connections must be a positive number, got 0"),
        ({"max_reply_bytes": -1}, "max_reply_bytes must be a positive number, got -1"),
        ({"default_headers": {"X-A": "a\nb"}}, "'X-A' has a line break"),
        ({"default_headers": {"X A": "b"}}, "'X A' is not a valid header name"),
        ({"default_headers": {"": "b"}}, "'' is not a valid header name"),
        ({"default_headers": {"X\nA": "b"}}, "is not a valid header name"),
        ({"default_headers": {"ü": "b"}}, "'ü' is not a valid header name"),
        ({"default_headers": {"X-A": 5}}, "'X-A' must be a string, got a int"),
        (
            {
                "client": object(),
                "api_key": None,
                "default_query": {"a": "b"},
                "max_connections": 3,
            },
            "Omit default_query=, max_connections=",
        ),
    ],
)
def test_what_cannot_be_is_refused_when_the_model_is_made(given, says):
    with pytest.raises(UsageError, match=says):
        OpenAIChatModel("m", **{"api_key": "k", **given})


@pytest.mark.parametrize(
    "more", [{}, {"azure": True, "base_url": "https://x.example", "api_version": "1"}]
)
def test_an_empty_key_is_refused_also_where_the_environment_has_one(monkeypatch, more):
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(name, "another")
    with pytest.raises(
        UsageError, match=r"api_key must not be empty\. Pass the key, or omit api_key"
    ):
        OpenAIChatModel("m", api_key="", **more)


@BOTH
def test_no_text_error_or_log_shows_the_key(run, ask, caplog, kind):
    caplog.set_level(logging.DEBUG)

    async def main():
        async with wire.WireServer(
            wire.failing(401, {"message": "no"}), wire.echo, lambda one: one.cut_off()
        ) as server:
            model = kind("m", api_key="secret-key", base_url=server.url)
            texts = [repr(model), str(vars(model)) if False else ""]
            for _ in range(3):
                try:
                    await model.generate(ask())
                except ModelError as error:
                    texts += [
                        str(error),
                        repr(error),
                        repr(error.__cause__),
                        repr(error.__cause__.__cause__),
                        str(error.__cause__),
                    ]
            assert server.seen[0].headers["authorization"] == "Bearer secret-key"
        assert not [text for text in texts if "secret-key" in text]
        assert not [record for record in caplog.records if "secret-key" in record.getMessage()]

    run(main())


@pytest.mark.parametrize(
    "way", ["wire"], indirect=True
)  # through a client, the error is that client's own
@pytest.mark.parametrize("how", ["key", "function", "azure"])
def test_a_provider_that_repeats_the_key_does_not_bring_it_into_the_error(
    run, ask, collect, said_by, how
):
    async def refuse(one):
        sent = one.seen.headers.get("api-key") or one.seen.headers["authorization"].removeprefix(
            "Bearer "
        )
        assert sent == "secret-key"
        await one.answer(
            {"error": {"message": f"Received={sent}, expected to start with 'sk-'"}}, 401
        )

    async def key():
        return "secret-key"

    async def main():
        async with wire.WireServer(refuse) as server:
            more = {"azure": True, "api_version": "1"} if how == "azure" else {}
            model = OpenAIChatModel(
                "m", api_key=key if how == "function" else "secret-key", base_url=server.url, **more
            )
            for call in (lambda: model.generate(ask()), lambda: collect(model.stream(ask()))):
                with pytest.raises(ModelError, match=r"Received=\*\*\*, expected") as caught:
                    await call()
                assert "secret-key" not in said_by(caught.value)

    run(main())


def test_the_cause_of_an_error_is_the_clients_own(run, ask, chat_at):
    async def main():
        async with wire.WireServer(
            wire.failing(
                429,
                {"message": "slow down", "code": "rate_limit_exceeded"},
                retry_after="3",
                x_request_id="r-7",
            )
        ) as server:
            with pytest.raises(ModelError, match="slow down") as caught:
                await chat_at(server).generate(ask())
        cause = caught.value.__cause__
        assert isinstance(cause, openai.RateLimitError)
        assert (cause.request_id, cause.code, cause.status_code) == (
            "r-7",
            "rate_limit_exceeded",
            429,
        )
        assert (caught.value.status, caught.value.retry_after) == (429, 3.0)

    run(main())


def test_many_errors_at_once_each_have_their_own_words(run, ask, chat_at):
    async def refuse(one):
        await one.answer(
            {"error": {"message": f"no to {one.seen.body['messages'][0]['content']}"}}, 400
        )

    async def main():
        async with wire.WireServer(refuse) as server:
            model = chat_at(server)
            errors = await asyncio.gather(
                *(model.generate(ask(f"number {number}!")) for number in range(50)),
                return_exceptions=True,
            )
        assert all(f"no to number {number}!" in str(error) for number, error in enumerate(errors))

    run(main())


def test_an_error_can_be_sent_to_another_process(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.failing(400, {"message": "no"})) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)

    run(main())
