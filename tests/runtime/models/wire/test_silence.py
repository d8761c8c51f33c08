"""How long a provider may be silent, on the wire and through the client alike."""

import asyncio
import time

import pytest

from tests.programs import openai_wire as wire
from understudy.runtime.errors import ModelError
from understudy.runtime.models import ModelSettings

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
    ("script", "streaming"), [(silent_from_the_start, False), (silent_from_the_start, True), (silent_in_the_body, False), (silent_in_the_stream, True)]
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
                await chat_at(server, timeout=600).generate(ask(settings=ModelSettings(timeout=SILENT)))
            assert caught.value.kind == "timeout"

    run(main())


async def slow(one):
    """Never silent for as long as `SILENT`, but in all for longer than that: with comments, as some providers send them, and with text."""
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
                text += getattr(item, "content", "") if type(item).__name__ == "MessageDelta" else ""
        assert text == "word " * 20

    run(main())
