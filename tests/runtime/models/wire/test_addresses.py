"""Where requests go: redirects, addresses that are none, and servers that are no API, on the wire
and through the client alike.
"""

import pytest

from offbook.runtime.errors import ModelError
from offbook.runtime.models import OpenAIChatModel
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")


def to(address, status):
    async def script(one):
        await one.answer(b"moved", status, "text/plain", location=address)

    return script


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("address", ["/v2/chat", "../elsewhere?x=1"])
def test_a_redirect_is_followed_with_the_body_and_the_key(
    run, ask, collect, chat_at, status, address
):
    async def main():
        async with wire.WireServer(
            to(address, status), wire.echo, to(address, status), wire.echo
        ) as server:
            model = chat_at(server)
            assert (await model.generate(ask("hello"))).text == "hello"
            assert (await collect(model.stream(ask("again"))))[-1].text == "again"
        first, second = server.seen[:2]
        assert second.path in ("/v2/chat", "/v1/elsewhere?x=1")
        assert second.body == first.body
        assert second.headers["authorization"] == "Bearer secret-key"

    run(main())


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_to_something_to_be_read_is_read(run, ask, chat_at, status):
    """As browsers do it, and the client: without the body."""

    async def main():
        async with wire.WireServer(
            to("/v1/result", status), lambda one: one.answer(wire.completion("kept"))
        ) as server:
            assert (await chat_at(server).generate(ask())).text == "kept"
        assert server.seen[1].body is None

    run(main())


@pytest.mark.parametrize("azure", [False, True])
def test_the_key_does_not_go_to_another_server(run, ask, azure):
    async def main():
        async with (
            wire.WireServer(wire.echo) as other,
            wire.WireServer(to(other.url.replace("127.0.0.1", "localhost"), 307)) as server,
        ):
            more = {"azure": True, "api_version": "1"} if azure else {}
            model = OpenAIChatModel(
                "m",
                api_key="secret-key",
                base_url=server.url.removesuffix("/v1") if azure else server.url,
                **more,
            )
            assert (await model.generate(ask("hello"))).text == "hello"
        assert "secret-key" in str(server.seen[0].headers)
        assert "secret-key" not in str(other.seen[0].headers)

    run(main())


def test_redirects_without_an_end_are_a_failed_connection(run, ask, chat_at):
    async def main():
        async with wire.WireServer(to("/v1/chat", 307)) as server:
            with pytest.raises(ModelError, match="redirect") as caught:
                await chat_at(server).generate(ask())
        assert caught.value.kind == "connection"
        assert len(server.seen) == 21

    run(main())


@pytest.mark.parametrize(
    ("azure", "name"), [(False, "X-Api-Key"), (True, "Ocp-Apim-Subscription-Key")]
)
@pytest.mark.parametrize(
    "way", ["wire"], indirect=True
)  # the client sends along what it does not know
def test_neither_does_what_a_gateway_takes_for_a_key(run, ask, azure, name):
    async def main():
        async with (
            wire.WireServer(wire.echo) as other,
            wire.WireServer(to(other.url, 307)) as server,
        ):
            more = {"azure": True, "api_version": "1"} if azure else {}
            model = OpenAIChatModel(
                "m",
                api_key="k",
                base_url=server.url,
                default_headers={name: "secret-key", "User-Agent": "mine/1"},
                **more,
            )
            assert (await model.generate(ask("hello"))).text == "hello"
        assert server.seen[0].headers[name.lower()] == "secret-key"
        assert "secret-key" not in str(other.seen[0].headers)
        assert (other.seen[0].headers["content-type"], other.seen[0].headers["user-agent"]) == (
            "application/json",
            "mine/1",
        )

    run(main())


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/a b", "/a%20b"),
        ("/grüße?x=ü", "/gr%C3%BC%C3%9Fe?x=%C3%BC"),
        ("/a%20b%2Fc?x=%3D", "/a%20b%2Fc?x=%3D"),
        ("http://u:p@{}/x", "/x"),
    ],
)
def test_a_redirect_is_followed_as_it_is_meant(run, ask, chat_at, address, path):
    async def main():
        async def move(one):
            await one.answer(
                b"moved", 307, "text/plain", location=address.format(f"127.0.0.1:{server.port}")
            )

        async with wire.WireServer(move, wire.echo) as server:
            assert (await chat_at(server).generate(ask("hello"))).text == "hello"
        assert server.seen[1].path == path

    run(main())


@pytest.mark.parametrize(
    "address",
    [
        "ftp://127.0.0.1/x",
        "nonsense://",
        "http://[::1",
        "http://127.0.0.1:port/",
        "http://.../",
        "mailto:x",
    ],
)
def test_a_redirect_to_what_is_no_http_is_an_error(run, ask, chat_at, address):
    async def main():
        async with wire.WireServer(to(address, 307)) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server).generate(ask())
        assert caught.value.kind == "connection"

    run(main())


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("127.0.0.1:9/v1", "missing an 'http://' or 'https://' protocol"),
        ("/v1", "missing an 'http://' or 'https://' protocol"),
        ("ftp://127.0.0.1:9/v1", "unsupported protocol 'ftp://'"),
        ("http://no-such-host.invalid/v1", "no-such-host.invalid|Name or service|name resolution"),
    ],
)
def test_a_base_url_that_is_none_says_what_is_wrong_with_it(run, ask, collect, address, says):
    async def main():
        model = OpenAIChatModel("m", api_key="secret-key", base_url=address)
        for call in (lambda: model.generate(ask()), lambda: collect(model.stream(ask()))):
            with pytest.raises(ModelError, match=says) as caught:
                await call()
            assert caught.value.kind == "connection"
            assert "secret-key" not in str(caught.value)

    run(main())


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize(
    "address", ["http://.../v1", f"http://{'a' * 70}.invalid/v1", "http://127.0.0.1:99999/v1"]
)
def test_an_address_of_the_environment_that_cannot_be_looked_up_says_so(
    run, ask, collect, monkeypatch, address
):
    monkeypatch.setenv("OPENAI_BASE_URL", address)

    async def main():
        model = OpenAIChatModel("m", api_key="secret-key")
        for call in (lambda: model.generate(ask()), lambda: collect(model.stream(ask()))):
            with pytest.raises(ModelError, match=r"Check the base_url") as caught:
                await call()
            assert caught.value.kind == "connection"

    run(main())


def test_a_path_that_is_no_api_says_to_check_the_address(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(
            lambda one: one.answer(b"<html><h1>404 Not Found</h1></html>", 404, "text/html")
        ) as server:
            for call in (
                lambda: chat_at(server).generate(ask()),
                lambda: collect(chat_at(server).stream(ask())),
            ):
                with pytest.raises(
                    ModelError, match=r"404.*Check the model's name and the base_url"
                ) as caught:
                    await call()
                assert (caught.value.kind, caught.value.status) == ("not_found", 404)

    run(main())


@pytest.mark.parametrize("content_type", ["text/html", "text/html; charset=utf-8", "text/plain"])
def test_a_page_says_to_check_the_address(run, ask, chat_at, content_type):
    async def main():
        async with wire.WireServer(
            lambda one: one.answer("<html>Grüße</html>".encode(), 200, content_type)
        ) as server:
            with pytest.raises(
                ModelError, match=r"not a chat completion, but '<html>Grüße.*Check the base_url"
            ) as caught:
                await chat_at(server).generate(ask())
        assert (caught.value.kind, caught.value.retryable) == ("malformed", True)

    run(main())


@pytest.mark.parametrize(
    "key",
    [
        "secret-key\n",
        "secret\nkey",
        " secret-key ",
        "secret-\u200bkey",
        "secret-\xe9",
        "secret\x01key",
    ],
)
def test_a_key_that_no_header_can_hold_says_so_and_is_not_shown(
    run, ask, collect, monkeypatch, said_by, key
):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            monkeypatch.setenv("OPENAI_API_KEY", key)
            for given in (key, None):
                model = OpenAIChatModel("m", api_key=given, base_url=server.url)
                for call in (lambda: model.generate(ask()), lambda: collect(model.stream(ask()))):  # noqa: B023 -- called here
                    with pytest.raises(ModelError, match=r"[Cc]heck the key") as caught:
                        await call()
                    assert not caught.value.retryable
                    assert "secret" not in said_by(caught.value)
        assert server.seen == []

    run(main())
