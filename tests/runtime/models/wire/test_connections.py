"""Connections: opened, used again, lost, left and closed, on the wire and through the client
alike.
"""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading

import pytest

from offbook.runtime.data.chat import MessageDelta
from offbook.runtime.errors import ModelError
from offbook.runtime.models import OpenAIChatModel
from offbook.runtime.models.wire import aiohttp_transport
from offbook.runtime.models.wire.aiohttp_transport import _Handler
from tests.programs import openai_wire as wire

pytestmark = pytest.mark.usefixtures("way")

only_on_the_wire = pytest.mark.parametrize("way", ["wire"], indirect=True)


async def hang_up(one):
    await one.cut_off()


async def say_goodbye(one):
    one._writer.close()


@pytest.mark.parametrize("leave", [hang_up, say_goodbye])
def test_a_connection_that_was_closed_before_the_first_byte_is_a_failed_connection(
    run, ask, collect, chat_at, leave
):
    async def main():
        async with wire.WireServer(leave) as server:
            for call in (
                lambda model: model.generate(ask()),
                lambda model: collect(model.stream(ask())),
            ):
                with pytest.raises(ModelError) as caught:
                    await call(chat_at(server))
                assert (caught.value.kind, caught.value.retryable) == ("connection", True)
        assert len(server.seen) == 2, "a new connection that fails is not tried again"

    run(main())


@only_on_the_wire
@pytest.mark.parametrize("leave", [hang_up, say_goodbye])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("second", ["second", "second" * 460_000], ids=["small", "large"])
def test_a_request_on_a_connection_that_the_server_had_closed_is_sent_once_more(
    run, ask, collect, chat_at, caplog, leave, streaming, second
):
    caplog.set_level("INFO", "offbook")

    async def main():
        async with wire.WireServer(wire.echo, leave, wire.echo) as server:
            model = chat_at(server)
            await model.generate(ask("first"))
            reply = (
                (await collect(model.stream(ask(second))))[-1]
                if streaming
                else await model.generate(ask(second))
            )
            assert reply.text == second
            assert reply.usage.requests == 2
        assert len(server.seen) == 3
        assert "is sent again" in caplog.text
        assert server.seen[1].body == server.seen[2].body
        assert server.connections == 2

    run(main())


@only_on_the_wire
def test_it_is_sent_once_more_and_not_twice(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo, hang_up) as server:
            model = chat_at(server)
            await model.generate(ask())
            with pytest.raises(ModelError) as caught:
                await model.generate(ask())
            assert caught.value.kind == "connection"
        assert len(server.seen) == 3

    run(main())


@only_on_the_wire
@pytest.mark.parametrize("leave", [hang_up, say_goodbye])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_request_that_the_server_may_have_worked_on_is_not_sent_again(
    run, ask, collect, chat_at, monkeypatch, leave, streaming
):
    """A connection that is lost later than at once may have been lost with the request under way:
    it has cost something already.
    """
    monkeypatch.setattr(aiohttp_transport, "_STALE_SECONDS", 0.0)

    async def main():
        async with wire.WireServer(wire.echo, leave, wire.echo) as server:
            model = chat_at(server)
            await model.generate(ask("first"))
            with pytest.raises(ModelError) as caught:
                await (
                    collect(model.stream(ask("second")))
                    if streaming
                    else model.generate(ask("second"))
                )
            assert (caught.value.kind, caught.value.retryable) == ("connection", True)
        assert len(server.seen) == 2

    run(main())


@only_on_the_wire
@pytest.mark.slow
def test_of_a_hundred_requests_that_a_server_has_worked_on_none_is_sent_again(run, ask, chat_at):
    async def work_and_leave(one):
        await asyncio.sleep(1)  # the provider's work, by the clock of the transport
        one._writer.close()

    async def main():
        async with wire.WireServer(*[wire.echo] * 100, work_and_leave) as server:
            model = chat_at(server)
            await asyncio.gather(*(model.generate(ask("first")) for _ in range(100)))
            outcomes = await asyncio.gather(
                *(model.generate(ask("second")) for _ in range(100)), return_exceptions=True
            )
            assert all(isinstance(one, ModelError) and one.kind == "connection" for one in outcomes)
        assert len(server.seen) == 200

    run(main())


async def begin_and_hang_up(one):
    await one.raw(b"HTTP/1.1 200 OK\r\nContent-")
    await asyncio.sleep(0.05)  # for what was sent to arrive: a reset overtakes it
    await one.cut_off()


async def begin_and_say_goodbye(one):
    await one.raw(b"HTTP/1.1 200 OK\r\nContent-")
    one._writer.close()


@pytest.mark.parametrize("leave", [begin_and_hang_up, begin_and_say_goodbye])
def test_a_request_of_whose_reply_something_has_come_is_not_sent_again(run, ask, chat_at, leave):
    async def main():
        async with wire.WireServer(wire.echo, leave) as server:
            model = chat_at(server)
            await model.generate(ask())
            with pytest.raises(ModelError) as caught:
                await model.generate(ask())
            assert (caught.value.kind, caught.value.retryable) == ("connection", True)
        assert len(server.seen) == 2

    run(main())


def test_connections_that_the_server_closes_while_they_are_idle_are_not_used(
    run, ask, chat_at, until
):
    async def and_close(one):
        await wire.echo(one)
        one._writer.close()

    async def main():
        async with wire.WireServer(and_close) as server:
            model = chat_at(server)
            for number in range(3):
                assert (await model.generate(ask(str(number)))).text == str(number)
                await asyncio.sleep(0.02)
        assert server.connections == 3
        assert len(server.seen) == 3

    run(main())


@only_on_the_wire
@pytest.mark.parametrize(
    "unasked",
    [
        b"HTTP/1.1 408 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: 4\r\n\r\nnull",
        b"HTTP/1.1 4",
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
def test_what_comes_on_an_idle_connection_is_no_answer_to_what_is_asked_next(
    run, ask, collect, chat_at, until, unasked, streaming
):
    """As servers say goodbye with a 408, or as a broken one answers twice."""

    async def main():
        async def and_more(one):
            await wire.echo(one)
            await answered.wait()
            await one.raw(unasked)
            await asyncio.Event().wait()

        async with wire.WireServer(and_more, wire.echo) as server:
            model, answered = chat_at(server), asyncio.Event()
            await (
                collect(model.stream(ask("first"))) if streaming else model.generate(ask("first"))
            )
            answered.set()
            there = [
                one
                for one in gc.get_objects()
                if isinstance(one, _Handler) and one.transport is not None
            ]
            (idle,) = [
                one for one in there if one.transport.get_extra_info("peername")[1] == server.port
            ]
            await until(lambda: idle.has_received)
            assert (await model.generate(ask("second"))).text == "second"
        assert server.connections == 2

    run(main())


def test_a_connection_whose_reply_was_not_read_to_its_end_is_not_used_again(run, ask, chat_at):
    async def main():
        chunks = [wire.chunk(content=f"{number} ") for number in range(5)]

        async def long(one):
            await one.open_stream()
            await one.chunk(b"".join(wire.event(chunk) for chunk in chunks))
            await one.seen.gone.wait()

        async with wire.WireServer(long, wire.echo) as server:
            model = chat_at(server)
            stream = model.stream(ask())
            assert await anext(stream) == MessageDelta("0 ")
            await stream.aclose()
            assert (await model.generate(ask("x"))).text == "x"
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)
        assert server.connections == 2

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("moment", ["before the head", "in the body"])
def test_cancelling_at_any_moment_hangs_up_and_leaves_nothing(
    run, ask, collect, chat_at, streaming, moment
):
    async def stop_short(one):
        if moment == "in the body":
            if streaming:
                await one.open_stream()
                await one.chunk(wire.event(wire.chunk(content="Hel")))
            else:
                await one.head(200, content_length="100")
                await one.raw(b'{"choices"')
        await asyncio.Event().wait()

    async def main():
        async with wire.WireServer(stop_short, wire.echo) as server:
            model = chat_at(server)
            task = asyncio.ensure_future(
                collect(model.stream(ask())) if streaming else model.generate(ask())
            )
            await server.arrived.wait()
            if moment == "in the body":
                # For the head to arrive; at any other moment, the same has to hold.
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.seen[0].gone.wait(), 5)
            assert (await model.generate(ask("x"))).text == "x"

    run(main())


@only_on_the_wire
def test_no_more_connections_are_opened_than_max_connections(run, ask):
    at_work, most = 0, 0

    async def count(one):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.01)
        at_work -= 1
        await wire.echo(one)

    async def main():
        async with wire.WireServer(count) as server:
            # Waiting for a connection of one's own is no silence of the provider's.
            model = OpenAIChatModel(
                "m", api_key="k", base_url=server.url, max_connections=3, timeout=0.5
            )
            replies = await asyncio.gather(
                *(model.generate(ask(str(number))) for number in range(200))
            )
            assert [reply.text for reply in replies] == [str(number) for number in range(200)]
        assert most == server.connections == 3

    run(main())


@only_on_the_wire
@pytest.mark.parametrize("is_used_before", [False, True])
def test_closing_a_model_fails_the_calls_that_are_on_their_way_and_cancels_none(
    run, ask, is_used_before
):
    async def main():
        async def stop_short(one):
            await asyncio.Event().wait()

        async with wire.WireServer(*[wire.echo] * is_used_before, stop_short) as server:
            model = OpenAIChatModel("m", api_key="k", base_url=server.url, max_connections=1)
            if is_used_before:
                await model.generate(ask())
            calls = [asyncio.ensure_future(model.generate(ask())) for _ in range(3)]
            while len(server.seen) < 1 + is_used_before:
                await asyncio.sleep(0)
            await model.aclose()
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(outcome, ModelError), repr(outcome)
                assert (outcome.kind, outcome.retryable) == ("connection", True)

    run(main())


@only_on_the_wire
def test_more_than_a_hundred_connections_are_opened_if_that_many_are_needed(run, ask, chat_at):
    async def main():
        async def meet(one):
            if len(server.seen) == 150:
                all_here.set()
            await all_here.wait()
            await wire.echo(one)

        async with wire.WireServer(meet) as server:
            all_here = asyncio.Event()
            model = chat_at(server)
            await asyncio.gather(*(model.generate(ask()) for _ in range(150)))
        assert server.connections == 150

    run(main())


def test_a_model_that_is_dropped_closes_its_connections(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model = chat_at(server)
            await model.generate(ask())
            transports = [
                transport
                for transport in gc.get_objects()
                if isinstance(transport, asyncio.Transport) and not transport.is_closing()
            ]
            assert transports
            del model, transports
            gc.collect()
            await asyncio.sleep(0.05)
            left = [
                one
                for one in gc.get_objects()
                if isinstance(one, asyncio.Transport)
                and not one.is_closing()
                and one.get_extra_info("peername")
            ]
            assert [one for one in left if one.get_extra_info("peername")[1] == server.port] == []

    run(main())


def test_loops_of_several_threads_at_once_and_one_after_the_other(run, ask, chat_at):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            model, texts = chat_at(server), []

            def in_thread(number):
                async def some():
                    texts.extend(
                        [
                            reply.text
                            for reply in await asyncio.gather(
                                *(model.generate(ask(f"{number}")) for _ in range(5))
                            )
                        ]
                    )

                for _ in range(3):
                    asyncio.run(some())

            threads = [threading.Thread(target=in_thread, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))
            assert sorted(texts) == sorted(str(number) for number in range(4) for _ in range(15))

    run(main())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_opens_connections_of_its_own(run, way):
    program = textwrap.dedent(f"""
        import asyncio, os, sys, threading
        from offbook.runtime import Message, ModelRequest, OpenAIChatModel
        from offbook.runtime.models.openai_model import OpenAIModel

        OpenAIModel._is_wired = {way == "wire"}
        model = OpenAIChatModel("m", api_key="k", base_url=sys.argv[1])
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()

        async def ask(text):
            assert (await model.generate(ModelRequest((Message.user(text),)))).text == text

        def ask_there(*texts):
            for asked in [asyncio.run_coroutine_threadsafe(ask(text), loop) for text in texts]:
                asked.result(20)

        ask_there("before")
        child = os.fork()
        if not child:
            for number in range(3):
                asyncio.run(ask(f"child {{number}}"))
            os._exit(0)
        ask_there(*(f"beside {{number}}" for number in range(20)))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ask_there("after")
        os._exit(0)
    """)

    async def main():
        async with wire.WireServer(wire.echo) as server:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-W", "ignore", "-c", program, server.url, stderr=subprocess.PIPE
            )
            _, problems = await asyncio.wait_for(process.communicate(), 50)
            assert (process.returncode, problems.decode()) == (0, "")

    run(main())
