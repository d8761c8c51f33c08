"""What goes in and what comes out: text, audio, bounds, and the end."""

import asyncio
import base64
import threading

import pytest

from offbook.actors import tool
from offbook.actors.realtime import RealtimeAgent, RealtimeModelSendRawMessage, RealtimeRunner
from offbook.actors.realtime.local import Call, Fault, Gate, Reply, Say, Write, silence, speech
from offbook.runtime import AgentError, MailboxFull, RunHooks, UsageError
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import Heard, desk

AGENT = RealtimeAgent("desk", "Answer.")
CREATE = RealtimeModelSendRawMessage({"type": "response.create"})


def test_case_05_a_message_is_answered_with_text_and_audio_and_the_events_come_in_order(run):
    async def main():
        async with desk(AGENT, Reply(Say("Good day to you.")), Reply(Say("A cat."))) as at:
            await at.ask("hi")
            assert at.heard.kinds() == [
                "history_added",
                "agent_start",
                "history_added",
                "audio_end",
                "agent_end",
            ]
            assert at.sent() == ["session.update", "conversation.item.create", "response.create"]
            assert b"".join(event.audio.data for event in at.heard.of("audio")) == b"\2" * 9600
            assert (at.texts("user"), at.texts("assistant")) == (["hi"], ["Good day to you."])
            numbers = [event.info.seq for event in at.heard.events]
            assert numbers == sorted(set(numbers))
            picture = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
            await at.ask(
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "what is it?"}, picture],
                }
            )
            assert at.server.session.items[2]["content"][1] == picture
            await at.session.send_message("only so that you know", respond=False)
            await at.server.until(lambda: len(at.server.session.items) == 5)
            assert len(at.server.sent("response.create")) == 2

    run(main())


def test_text_alone_is_answered_by_text_alone(run):
    async def main():
        async with desk(
            AGENT,
            Reply(Write("Good day.")),
            config={"model_settings": {"output_modalities": ["text"]}},
        ) as at:
            await at.ask("hi")
            assert at.texts("assistant") == ["Good day."]
            assert at.heard.of("audio") == []

    run(main())


def test_case_06_a_commit_is_behind_its_audio_and_all_else_is_before_audio_that_waits(run):
    async def main():
        async with desk(
            AGENT, Reply(Say("Yes?")), config={"model_settings": {"turn_detection": None}}
        ) as at:
            await at.session.send_audio(speech("hello"), commit=True)
            await at.session.model.send_event(CREATE)
            await at.heard.until_shown("agent_end")
            assert [one["type"] for one in at.server.sent()][1:] == [
                "input_audio_buffer.append",
                "input_audio_buffer.commit",
                "response.create",
            ]
            at.session._core.outbox._open = False  # the connection takes nothing for now
            await at.session.send_audio(speech("more"))
            await at.session.model.send_event(
                RealtimeModelSendRawMessage(
                    {
                        "type": "conversation.item.retrieve",
                        "other_data": {"item_id": at.session.history[0].item_id},
                    }
                )
            )
            at.session._core.outbox.resume()
            await at.server.until(
                lambda: (
                    at.server.sent()[-1]["type"] == "input_audio_buffer.append"
                    and len(at.server.sent()) == 6
                )
            )
            assert at.server.sent()[-2]["type"] == "conversation.item.retrieve"

    run(main())


def test_case_07_audio_is_sent_from_a_thread_bounded_ordered_and_in_whole_samples(run):
    async def main():
        async with desk(
            AGENT, config={"model_settings": {"turn_detection": None}, "max_input_audio_ms": 1_000}
        ) as at:
            chunks = [bytes([number, 1]) * 2_400 for number in range(1, 9)]  # 100 ms each
            sent = await asyncio.to_thread(
                lambda: [at.session.send_audio_nowait(chunk) for chunk in chunks]
            )
            assert sent == [True] * 8
            await at.server.until_sent("input_audio_buffer.append", 8)
            assert [
                base64.b64decode(one["audio"])[0]
                for one in at.server.sent("input_audio_buffer.append")
            ] == list(range(1, 9))
            at.session._core.outbox._open = False
            assert at.session.send_audio_nowait(b"\0" * 48_000)
            assert not at.session.send_audio_nowait(b"\0\0")
            at.session._core.outbox.resume()
            with pytest.raises(UsageError, match="middle of a sample"):
                at.session.send_audio_nowait(b"\0")
            with pytest.raises(UsageError, match="middle of a sample"):
                await at.session.send_audio(b"\0\0\0")
            await at.session.send_audio(b"")
            before = at.server.received_audio
            await at.session.send_audio(b"\1" * 2_000_000)
            await at.server.until(lambda: at.server.received_audio >= before + 2_048_000)

    run(main())


def test_audio_above_what_one_message_takes_is_split():
    from offbook.actors.realtime.model_inputs import RealtimeModelSendAudio
    from offbook.actors.realtime.wire.encode import audio_messages

    messages = audio_messages(RealtimeModelSendAudio(b"\1" * 20 * 1024 * 1024, commit=True))
    assert len(messages) == 3
    assert max(map(len, messages)) < 15 * 1024 * 1024 + 64


def test_case_08_a_consumer_that_takes_nothing_does_not_delay_the_barge_in(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(
            AGENT,
            Reply(Say("One two three four.", ms=10_000), gate),
            clock=clock,
            consume=False,
            config={"event_buffer": 8},
        ) as at:
            await at.session.send_message("hi")
            await at.until_queued(10_000)
            clock.advance(3)
            await at.session.send_audio(speech("stop"))
            await at.server.until_sent("conversation.item.truncate")
            assert at.server.truncations[0][1] == 3_000
            await at.session.close()
            kinds = [event.type async for event in at.session]
            assert kinds.count("raw_model_event") <= 8
            assert "audio" not in kinds
            assert [
                kind for kind in kinds if kind in ("agent_start", "audio_interrupted", "agent_end")
            ] == ["agent_start", "audio_interrupted", "agent_end"]

    run(main())


def test_a_consumer_that_never_takes_anything_ends_its_session(run):
    async def main():
        async with desk(AGENT, consume=False, otherwise=Reply(), config={"event_buffer": 2}) as at:
            with pytest.raises(MailboxFull):
                for _ in range(50):
                    await at.session.send_message("hi")
                    await asyncio.sleep(0)
                await at.session.wait_closed()

    with pytest.raises((MailboxFull, UsageError)):
        run(main())
        raise MailboxFull("it ended while messages were sent")


def test_case_09_audio_beyond_the_bound_ends_the_response_where_the_consumer_is(run):
    async def main():
        clock, gate = ManualClock(), Gate()
        async with desk(
            AGENT,
            Reply(Say("One two three.", ms=5_000), gate),
            clock=clock,
            consume=False,
            config={"max_output_audio_ms": 1_000},
        ) as at:
            await at.session.send_message("hi")
            await at.server.until_sent("response.cancel")
            assert at.server.truncations == [(at.server.truncations[0][0], 0)]
            clock.advance(1)
            heard = Heard(at.session)
            await heard.until_shown("agent_end")
            assert [event.code for event in heard.of("error")] == ["audio_overflow"]
            assert heard.of("audio") == []
        await heard.task

    run(main())


def test_case_10_where_the_socket_takes_nothing_audio_waits_or_the_oldest_goes(run):
    async def main():
        gate = Gate()
        async with desk(
            AGENT,
            Reply(Say("Well."), gate),
            config={
                "model_settings": {
                    "turn_detection": {"type": "server_vad", "interrupt_response": False}
                }
            },
        ) as at:
            await at.session.send_message("hi")
            await gate.reached.wait()
            at.session._core.outbox._open = False
            await at.session.send_audio(b"\1" * 96_000)
            waiting = asyncio.create_task(at.session.send_audio(b"\1" * 9_600))
            await asyncio.sleep(0)
            assert not waiting.done()
            await at.session.interrupt()
            at.session._core.outbox.resume()
            await waiting
            await at.heard.until_shown("agent_end")
            after = [one["type"] for one in at.server.sent()][3:]
            assert after.index("response.cancel") < after.index("input_audio_buffer.append")
        async with desk(
            AGENT,
            config={"input_overflow": "drop_oldest", "model_settings": {"turn_detection": None}},
        ) as at:
            at.session._core.outbox._open = False
            for number in range(1, 31):
                await at.session.send_audio(bytes([number, 0]) * 2_400)
            at.session._core.outbox.resume()
            await at.server.until(lambda: at.server.received_audio >= 96_000)
            assert [
                base64.b64decode(one["audio"])[0]
                for one in at.server.sent("input_audio_buffer.append")
            ] == list(range(11, 31))

    run(main())


def test_case_11_a_session_is_closed_from_everywhere_and_sends_nothing_behind_it(run):
    async def main():
        sessions = []

        @tool
        async def hang_up() -> str:
            """Hang up."""
            await sessions[0].close()
            return "never"

        class Closing(RunHooks):
            async def on_tool_start(self, context, agent, tool, call):
                await sessions[0].close()

        for hooks, wanted in ((None, [hang_up]), (Closing(), [tool(name="wait")(_wait)])):
            async with desk(
                RealtimeAgent("a", tools=wanted), Reply(Call(wanted[0].name)), hooks=hooks
            ) as at:
                sessions[:] = [at.session]
                await at.session.send_message("bye")
                await at.heard.task
                assert at.heard.error is None
                count = len(at.server.sent())
                await at.session.close()
                with pytest.raises(UsageError, match="closed"):
                    await at.session.send_message("still there?")
                assert len(at.server.sent()) == count
        async with desk(AGENT, Reply(Say("Yes."))) as at:  # from its consumer
            await at.session.send_message("hi")
            await asyncio.gather(at.session.close(), at.session.close())
            await at.heard.task

    run(main())


async def _wait() -> str:
    """Wait."""
    await asyncio.get_running_loop().create_future()


def test_case_12_a_clean_close_by_the_server_ends_the_iteration_without_an_error(run):
    async def main():
        async with desk(
            AGENT, Reply(Say("Bye.")), faults=[Fault(1000, "response.done", "server", after=True)]
        ) as at:
            await at.session.send_message("hi")
            await at.heard.task
            assert at.heard.error is None
            assert at.heard.kinds()[-1] == "agent_end"
            assert [event.data.type for event in at.heard.of("raw_model_event")][-2:] == [
                "connection_status",
                "end_of_stream",
            ]
            await at.session.wait_closed()

    run(main())


def test_case_13_what_cannot_be_read_is_an_error_and_what_is_unknown_is_none(run):
    async def main():
        async with desk(AGENT, Reply(Say("Still here."))) as at:
            peer = at.server.session.peer
            await peer.send_text('{"type": "response.of.tomorrow", "x": 1}')
            await peer.send_bytes(b'{"type": "rate_limits.updated", "rate_limits": []}')
            await peer.send_text("{broken")
            await peer.send_bytes(b"\xff\xfe")
            await at.heard.until_shown("error", 2)
            await at.ask("hi")
            assert [event.code for event in at.heard.of("error")] == ["unreadable_message"] * 2
        async with desk(AGENT) as at:
            for _ in range(11):
                await at.server.session.peer.send_text("{broken")
            await at.heard.task
            assert "more than 10 messages" in str(at.heard.error)
            assert at.heard.of("error")[-1].fatal

    run(main())


def test_a_crash_of_the_session_ends_it_with_an_error_and_no_other(run):
    async def main():
        async with desk(AGENT, otherwise=Reply(Say("Yes."))) as at:
            async with at.runner.run() as other:
                at.session._core.responses.began = None  # a bug of ours
                await at.session.send_message("hi")
                await at.heard.task
                assert isinstance(at.heard.error, AgentError)
                heard = Heard(other)
                await other.send_message("hi")
                await heard.until_shown("agent_end")
            await heard.task

    run(main())


def test_a_turn_that_is_spoken_is_answered_by_the_servers_own_detection(run):
    async def main():
        async with desk(AGENT, Reply(Say("Good day."))) as at:
            await at.session.send_audio(speech("good morning"))
            await at.session.send_audio(silence())
            await at.heard.until_shown("agent_end")
            assert (at.texts("user"), at.texts("assistant")) == (["good morning"], ["Good day."])

    run(main())


def test_sending_from_a_thread_keeps_the_order_of_one_sender(run):
    async def main():
        async with desk(AGENT, config={"model_settings": {"turn_detection": None}}) as at:
            results = []
            thread = threading.Thread(
                target=lambda: results.extend(
                    at.session.send_audio_nowait(bytes([n, 0])) for n in range(1, 100)
                )
            )
            thread.start()
            await asyncio.to_thread(thread.join)
            await at.server.until_sent("input_audio_buffer.append", 99)
            assert [
                base64.b64decode(one["audio"])[0]
                for one in at.server.sent("input_audio_buffer.append")
            ] == list(range(1, 100))

    run(main())


def test_a_session_that_is_garbage_without_close_warns(run):
    import gc

    async def main():
        from offbook.actors.realtime import ScriptedRealtimeModel

        session = await RealtimeRunner(AGENT, model=ScriptedRealtimeModel()).run()
        await session.enter()
        core = session._core
        with pytest.warns(ResourceWarning, match="never closed"):
            del session
        gc.collect()
        core.lifecycle.finish(None)
        await core.lifecycle.closer

    run(main())
