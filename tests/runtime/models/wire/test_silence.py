"""How long a provider may be silent, on the wire and through the client alike."""

import asyncio
import gc
import socket
import threading
import time

import pytest

from offbook.runtime import ActorSystem
from offbook.runtime.errors import ModelError, UsageError
from offbook.runtime.models import ModelSettings, OpenAIChatModel
from offbook.runtime.testing import ManualClock
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

SILENT = 0.2
PAUSE = 0.08
"""Shorter than that; several of them are longer."""


async def silent_from_the_start(one):
    await one.seen.gone.wait()


async def silent_in_the_body(one):
    await one.head(200, content_length="100")
    await one.raw(b'{"choices"')
    await one.seen.gone.wait()


async def silent_in_the_stream(one):
    await one.open_stream()
    await one.chunk(wire.event(wire.chunk(content="Hel")))
    await one.seen.gone.wait()


@pytest.mark.parametrize(
    ("script", "streaming"),
    [
        (silent_from_the_start, False),
        (silent_from_the_start, True),
        (silent_in_the_body, False),
        (silent_in_the_stream, True),
    ],
)
def test_a_provider_that_falls_silent_times_out(run, ask, collect, chat_at, script, streaming):
    async def main():
        async with wire.WireServer(script) as server:
            model = chat_at(server, timeout=SILENT)
            before = time.monotonic()
            with pytest.raises(ModelError) as caught:
                await (collect(model.stream(ask())) if streaming else model.generate(ask()))
            assert time.monotonic() - before > SILENT * 0.9
            assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)

    run(main())


def test_a_timeout_of_the_request_goes_before_that_of_the_model(run, ask, chat_at):
    async def main():
        async with wire.WireServer(silent_from_the_start) as server:
            with pytest.raises(ModelError) as caught:
                await chat_at(server, timeout=600).generate(
                    ask(settings=ModelSettings(timeout=SILENT))
                )
            assert caught.value.kind == "timeout"

    run(main())


def test_a_timeout_of_nothing_is_over_at_once(run, ask):
    async def main():
        with socket.create_server(("127.0.0.1", 0)) as server:
            model = OpenAIChatModel(
                "m",
                api_key="k",
                base_url=f"http://127.0.0.1:{server.getsockname()[1]}/v1",
                timeout=0,
            )
            with pytest.raises(ModelError) as caught:
                await asyncio.wait_for(model.generate(ask()), 20)
            assert (caught.value.kind, caught.value.retryable) == ("timeout", True)

    run(main())


def test_a_timeout_without_an_end_is_none(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = chat_at(server, timeout=float("inf"))
            assert (await model.generate(ask("x"))).text == "x"
            assert (await collect(model.stream(ask("y"))))[-1].text == "y"

    run(main())


async def slow(one):
    """Never silent for as long as `SILENT`, but in all for longer than that: with comments, as some
    providers send them, and with text.
    """
    if not one.seen.body.get("stream"):
        await one.head(200, content_length="100000")
        for _ in range(6):
            await asyncio.sleep(PAUSE)
            await one.raw(b" ")
        await wire.reply(one, wire.completion())
        return
    await one.open_stream()
    for number in range(6):
        await asyncio.sleep(PAUSE)
        await one.chunk(b": ping\n\n" if number % 2 else wire.event(wire.chunk(content="x")))
    await one.chunk(wire.event(wire.chunk("stop")) + b"data: [DONE]\n\n")
    await one.chunk(b"")


def test_one_that_is_slow_and_never_silent_does_not(run, ask, collect, chat_at):
    async def main():
        async with wire.WireServer(slow) as server:
            assert (await collect(chat_at(server, timeout=SILENT).stream(ask())))[-1].text == "xxx"

    run(main())


def test_a_slow_first_byte_is_waited_for(run, ask, collect, chat_at):
    async def late(one):
        await asyncio.sleep(PAUSE)
        await wire.echo(one)

    async def main():
        async with wire.WireServer(late) as server:
            model = chat_at(server, timeout=SILENT * 5)
            assert (await model.generate(ask("x"))).text == "x"
            assert (await collect(model.stream(ask("y"))))[-1].text == "y"

    run(main())


def test_a_consumer_that_is_slow_is_no_silence_of_the_providers(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.saying(wire.completion("word " * 20))) as server:
            text = ""
            async for item in chat_at(server, timeout=SILENT).stream(ask()):
                if len(text) in (0, 15, 30):
                    await asyncio.sleep(SILENT * 1.5)
                text += (
                    getattr(item, "content", "") if type(item).__name__ == "MessageDelta" else ""
                )
        assert text == "word " * 20

    run(main())


class Deaf:
    """A server that opens connections and reads nothing."""

    async def __aenter__(self):
        self.connected, self._writer = asyncio.Event(), None
        self._server = await asyncio.start_server(self._keep, "127.0.0.1", 0, limit=1)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    async def __aexit__(self, *args):
        self._server.close()
        if self._writer is not None:
            self._writer.transport.abort()
        await self._server.wait_closed()

    def _keep(self, reader, writer):
        self.reader, self._writer = reader, writer
        self.connected.set()


LARGE = "x" * 30_000_000
"""More than the operating system takes for a server that does not read."""


@pytest.mark.parametrize("streaming", [False, True])
def test_a_provider_that_takes_no_request_times_out(run, ask, collect, chat_at, streaming):
    async def main():
        async with Deaf() as server:
            model = chat_at(server, timeout=SILENT)
            with pytest.raises(ModelError) as caught:
                await asyncio.wait_for(
                    collect(model.stream(ask(LARGE))) if streaming else model.generate(ask(LARGE)),
                    20,
                )
            assert (caught.value.kind, caught.value.retryable) == ("timeout", True)

    run(main())


def test_a_call_that_is_cancelled_while_its_request_is_not_taken_hangs_up(run, ask, chat_at):
    async def main():
        async with Deaf() as server:
            model = chat_at(server)
            task = asyncio.ensure_future(model.generate(ask(LARGE)))
            await server.connected.wait()
            for _ in range(20):
                await asyncio.sleep(0)  # the request is on its way
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            there = [
                one
                for one in gc.get_objects()
                if isinstance(one, asyncio.Transport) and one.get_extra_info("peername") is not None
            ]
            ours = [one for one in there if one.get_extra_info("peername")[1] == server.port]
            assert [one.get_write_buffer_size() for one in ours] == [0] * len(ours), (
                "nothing waits for a server that does not read"
            )
            await model.aclose()

    run(main())


def test_a_proxy_that_is_silent_when_it_is_asked_for_a_tunnel_times_out(run, ask, monkeypatch):
    async def main():
        async with Deaf() as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            with pytest.raises(ModelError) as caught:
                await asyncio.wait_for(
                    OpenAIChatModel(
                        "m", api_key="k", base_url="https://provider.example/v1", timeout=SILENT
                    ).generate(ask()),
                    20,
                )
            assert (caught.value.kind, caught.value.retryable) == ("timeout", True)

    run(main())


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize(
    ("script", "streaming"), [(silent_in_the_body, False), (silent_in_the_stream, True)]
)
def test_a_reply_that_takes_too_long_in_all_times_out_however_little_is_sent_at_a_time(
    run, ask, collect, chat_at, until, script, streaming
):
    async def main():
        clock = ManualClock()
        async with wire.WireServer(script) as server, ActorSystem(clock=clock):
            model = chat_at(server, max_reply_seconds=1000)
            call = asyncio.ensure_future(
                collect(model.stream(ask())) if streaming else model.generate(ask())
            )
            await until(lambda: 1000 in clock.pending)
            clock.advance(999)
            await asyncio.sleep(0)
            assert not call.done()
            clock.advance(1)
            with pytest.raises(ModelError, match="max_reply_seconds") as caught:
                await asyncio.wait_for(call, 5)
            assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
            assert clock.pending == ()
            await model.aclose()

    run(main())


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "10"])
def test_max_reply_seconds_is_a_number_above_zero(seconds):
    with pytest.raises(UsageError, match="max_reply_seconds"):
        OpenAIChatModel("m", api_key="k", max_reply_seconds=seconds)


@pytest.mark.parametrize("way", ["wire"], indirect=True)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_name_that_is_not_looked_up_times_out_and_holds_up_nothing_else(
    run, ask, collect, monkeypatch, streaming
):
    let_go, real = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host, *args, **options):
        if host == "slow.invalid":
            let_go.wait(20)
        return real(host, *args, **options)

    async def main():
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        models = [
            OpenAIChatModel("m", api_key="k", base_url="http://slow.invalid/v1", timeout=SILENT)
            for _ in range(8)
        ]
        calls = [
            collect(model.stream(ask())) if streaming else model.generate(ask()) for model in models
        ]
        outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)
        for one in outcomes:
            assert isinstance(one, ModelError)
            assert (one.kind, one.retryable) == ("timeout", True)
            assert "slow.invalid" in str(one)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
        let_go.set()
        for model in models:
            await model.aclose()

    try:
        run(main())
    finally:
        let_go.set()
