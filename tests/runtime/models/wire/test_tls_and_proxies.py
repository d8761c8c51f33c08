"""Certificates and proxies of the environment, on the wire and through the client alike."""

import asyncio
import base64
import contextlib
import socket

import pytest

from offbook.runtime.errors import ModelError
from offbook.runtime.models import OpenAIChatModel
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def trusted(monkeypatch, certificate):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


@pytest.mark.usefixtures("trusted")
def test_a_certificate_that_the_environment_trusts_is_trusted(run, ask, collect, chat_at, tls):
    async def main():
        async with wire.WireServer(wire.echo, tls=tls) as server:
            model = chat_at(server)
            assert (await model.generate(ask("hello"))).text == "hello"
            assert (await collect(model.stream(ask("again"))))[-1].text == "again"
            stream = model.stream(ask("one two three"))
            await anext(stream)
            await stream.aclose()
            await model.aclose()
        assert server.url.startswith("https")

    run(main())


@pytest.mark.usefixtures("trusted")
def test_the_end_of_the_loop_closes_connections_over_tls(run, ask, chat_at, tls):
    async def main():
        async with wire.WireServer(wire.echo, tls=tls) as server:
            await asyncio.gather(*(chat_at(server).generate(ask()) for _ in range(5)))

    run(main())


def test_a_certificate_that_is_not_trusted_says_so(run, ask, collect, chat_at, tls):
    async def main():
        async with wire.WireServer(wire.echo, tls=tls) as server:
            for call in (
                lambda: chat_at(server).generate(ask()),
                lambda: collect(chat_at(server).stream(ask())),
            ):
                with pytest.raises(
                    ModelError, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"
                ) as caught:
                    await call()
                assert caught.value.kind == "connection"
        assert server.seen == []

    run(main())


def test_a_server_without_tls_behind_an_https_address_is_a_failed_connection(run, ask):
    def refuse(reader, writer):
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main():
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ModelError) as caught:
                await OpenAIChatModel(
                    "m", api_key="k", base_url=f"https://127.0.0.1:{port}/v1"
                ).generate(ask())
        assert caught.value.kind == "connection"

    run(main())


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_requests_go_through_the_proxy_that_the_environment_names(run, ask, monkeypatch, name):
    async def main():
        async with wire.WireServer(wire.echo) as proxy:
            monkeypatch.setenv(name, f"http://user:pass%40word@127.0.0.1:{proxy.port}")
            model = OpenAIChatModel("m", api_key="k", base_url="http://provider.example/v1")
            assert (await model.generate(ask("hello"))).text == "hello"
        seen = proxy.seen[0]
        assert seen.path == "http://provider.example/v1/chat/completions"
        assert seen.headers["host"] == "provider.example"
        assert (
            base64.b64decode(seen.headers["proxy-authorization"].removeprefix("Basic ")).decode()
            == "user:pass@word"
        )

    run(main())


@pytest.mark.parametrize("excepted", ["*", "127.0.0.1", "example.com,127.0.0.1"])
def test_no_proxy_is_kept_to(run, ask, monkeypatch, chat_at, excepted):
    async def main():
        async with wire.WireServer(wire.echo) as server, wire.WireServer(wire.echo) as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv("NO_PROXY", excepted)
            assert (await chat_at(server).generate(ask("hello"))).text == "hello"
        assert (len(server.seen), len(proxy.seen)) == (1, 0)

    run(main())


class Tunnel:
    """A proxy that lets itself be asked for tunnels, and makes them or does not."""

    def __init__(self, refusal=None):
        self.refusal = refusal
        self.asked = []

    async def __aenter__(self):
        self._tasks = set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *args):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader, writer):
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)

    async def _serve(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head)
        if self.refusal is not None:
            writer.write(self.refusal)
            writer.close()
            return
        host, port = head.split(" ")[1].split(":")
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(
                self._carry(reader, there_writer), self._carry(there_reader, writer)
            )

    async def _carry(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
        finally:
            writer.close()


@pytest.mark.usefixtures("trusted")
def test_tls_goes_through_a_tunnel(run, ask, monkeypatch, chat_at, tls):
    async def main():
        async with wire.WireServer(wire.echo, tls=tls) as server, Tunnel() as tunnel:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{tunnel.port}")
            model = chat_at(server)
            assert (await model.generate(ask("hello"))).text == "hello"
            assert tunnel.asked[0].startswith(f"CONNECT 127.0.0.1:{server.port} ")
            assert "secret-key" not in tunnel.asked[0]
            assert "proxy-authorization: basic" in tunnel.asked[0].lower()
            await model.aclose()

    run(main())


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(
    "refusal",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    ],
)
def test_a_tunnel_that_is_refused_is_a_failed_connection_and_shows_no_secret(
    run, ask, monkeypatch, chat_at, said_by, tls, refusal
):
    async def main():
        async with wire.WireServer(wire.echo, tls=tls) as server, Tunnel(refusal) as tunnel:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:secret@127.0.0.1:{tunnel.port}")
            with pytest.raises(ModelError, match=r"407|502") as caught:
                await chat_at(server).generate(ask())
            is_for_good = b"407" in refusal
            assert (caught.value.kind, caught.value.retryable) == (
                ("auth", False) if is_for_good else ("connection", True)
            )
            assert ("Put them into its address" in str(caught.value)) == is_for_good
            assert "secret" not in said_by(caught.value)

    run(main())


def test_a_proxy_that_is_down_is_a_failed_connection(run, ask, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{taken.getsockname()[1]}")

        async def main():
            with pytest.raises(ModelError) as caught:
                await OpenAIChatModel(
                    "m", api_key="k", base_url="http://provider.example/v1"
                ).generate(ask())
            assert (caught.value.kind, caught.value.retryable) == ("connection", True)

        run(main())


@pytest.mark.parametrize(
    "proxy",
    [
        "http://user:secret@127.0.0.1:port",
        "http://user:secret@127.0.0.1:99999",
        "http://user:secret@[::1",
        "nonsense://user:secret@x",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_no_address_says_so_and_shows_no_secret(
    run, ask, collect, monkeypatch, said_by, proxy, scheme
):
    monkeypatch.setenv(f"{scheme}_proxy", proxy)

    async def main():
        model = OpenAIChatModel("m", api_key="k", base_url=f"{scheme}://provider.example/v1")
        for call in (lambda: model.generate(ask()), lambda: collect(model.stream(ask()))):
            with pytest.raises(
                ModelError,
                match=r"OpenAIChatModel.*The proxy in the environment must be a URL.*HTTP_PROXY",
            ) as caught:
                await call()
            assert caught.value.kind == "connection"
            assert "secret" not in said_by(caught.value)

    run(main())


def test_a_socks_proxy_is_the_clients(run, ask, monkeypatch):
    """It says what it needs for that; the wire must not go past it."""
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")

    async def main():
        async with wire.WireServer(wire.echo) as server:
            with pytest.raises((ModelError, ImportError), match=r"socks|SOCKS"):
                await OpenAIChatModel(
                    "m", api_key="k", base_url=server.url.replace("127.0.0.1", "provider.example")
                ).generate(ask())

    run(main())
