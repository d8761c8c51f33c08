"""Limits, secrets, and what is left of sessions that have ended."""

import asyncio
import gc

import pytest

from offbook.actors import tool
from offbook.actors.realtime import (
    OpenAIRealtimeModel,
    RealtimeAgent,
    RealtimeLimits,
    RealtimeModelConnectionStatusEvent,
    RealtimeModelSendAudio,
    RealtimeModelSendRawMessage,
    RealtimeModelSendUserInput,
    RealtimeModelTurnEndedEvent,
    RealtimeModelTurnStartedEvent,
    RealtimeRunner,
    RealtimeStep,
    ScriptedRealtimeModel,
    realtime_handoff,
)
from offbook.actors.realtime.local import Gate, LocalRealtimeServer, Reply, Say
from offbook.actors.realtime.state.outbox import Outbox
from offbook.runtime import AgentError, MemoryStore, ModelError, UsageError
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import Heard, desk, until

AGENT = RealtimeAgent("desk", "Answer.")


def test_case_60_limits_end_a_session_in_a_pause(run):
    async def main():
        clock = ManualClock()
        for limits, seconds in (
            (RealtimeLimits(max_responses=2), 0),
            (RealtimeLimits(max_tokens=30), 0),
            (RealtimeLimits(idle_timeout=60), 61),
        ):
            async with desk(
                AGENT, otherwise=Reply(Say("Yes.")), clock=clock, config={"limits": limits}
            ) as at:
                await at.ask("one")
                await at.ask("two")
                clock.advance(seconds)
                await at.heard.task
                assert isinstance(at.heard.error, AgentError)
                assert at.texts("assistant") == ["Yes.", "Yes."]
        gate = Gate()
        async with desk(
            AGENT,
            Reply(Say("One", ms=500), gate, Say("more")),
            clock=clock,
            config={"limits": RealtimeLimits(max_duration=10)},
        ) as at:
            await at.session.send_message("one")
            await at.heard.until_shown("audio")
            clock.advance(11)
            gate.open()
            await at.heard.task
            assert at.texts("assistant") == ["One", "more"]

    run(main())


def test_case_60_keys_and_headers_are_nowhere_to_be_read(run):
    async def main():
        store = MemoryStore()
        async with desk(AGENT, otherwise=Reply(Say("Yes.")), store=store, session_id="s") as at:
            await at.ask("hi")
            assert at.server.headers[0]["Authorization"] == "Bearer secret-key"
            at.server.handshakes.append(401)
            at.server.session.peer.abort()
            await at.heard.task
            shown = (
                f"{at.heard.events!r} {at.heard.error!r} {at.heard.error.__cause__!r} "
                f"{at.heard.error.__context__!r}"
            )
        records = await store.read("offbook:session:s")
        assert "secret-key" not in shown
        assert b"secret-key" not in b"".join(records)
        bad = OpenAIRealtimeModel(api_key="secret-key")
        with pytest.raises(ModelError) as caught:
            config = {"url": "ws://user:secret-key@127.0.0.1:1/v1?key=secret-key"}
            await RealtimeRunner(AGENT, model=bad).run(model_config=config).__aenter__()
        assert "secret-key" not in f"{caught.value!r} {caught.value.__cause__!r}"

    run(main())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_case_60_five_hundred_sessions_leave_nothing_behind(run):
    async def main():
        async with LocalRealtimeServer(otherwise=Reply(Say("Yes."))) as server:
            server.keeps_log = False
            model = OpenAIRealtimeModel(base_url=server.base_url, api_key="k")
            runner = RealtimeRunner(AGENT, model=model)

            async def talk():
                async with runner.run() as session:
                    await session.send_message("hi")
                    async for event in session:
                        if event.type == "agent_end":
                            break

            async def some(count):
                for _ in range(count // 50):
                    await asyncio.gather(*(talk() for _ in range(50)))
                    server.sessions.clear()
                    server.responses.clear()
                    server.headers.clear()
                gc.collect()
                return len(gc.get_objects())

            await some(100)
            before = await some(50)
            after = await some(350)
            assert after - before < 350
            await until(lambda: len(asyncio.all_tasks()) <= 3)

    run(main())


def test_a_system_that_is_drained_lets_what_is_said_end(run):
    async def main():
        gate = Gate()
        async with desk(AGENT, Reply(Say("One"), gate, Say("and the rest."))) as at:
            await at.session.send_message("one")
            await at.heard.until_shown("audio")
            draining = asyncio.create_task(at.system.drain(30))
            await asyncio.sleep(0)
            gate.open()
            report = await draining
            assert report.drained
            await at.heard.task
            assert at.texts("assistant") == ["One", "and the rest."]

    run(main())


def test_what_a_program_sends_by_itself_is_bounded_while_there_is_no_connection():
    async def main():
        outbox = Outbox(2_000, "block")
        event = RealtimeModelSendRawMessage({"type": "input_audio_buffer.clear"})
        for _ in range(1_000):
            outbox.put_from_program(event)
        with pytest.raises(
            ModelError, match=r"1,000 events already wait for the connection. Send it again after"
        ):
            outbox.put_from_program(event)

    asyncio.run(main())


def test_audio_that_a_program_sends_by_the_model_keeps_to_the_limit(run):
    async def main():
        config = {"max_input_audio_ms": 1_000, "model_settings": {"turn_detection": None}}
        async with desk(AGENT, config=config) as at:
            with pytest.raises(
                UsageError, match=r"bytes of audio exceed the free space.*session\.send_audio"
            ):
                for _ in range(1_000):
                    await at.session.model.send_event(RealtimeModelSendAudio(bytes(24_000)))
            outbox = at.session._open_core().outbox
            assert 0 <= outbox._size <= outbox.format.size(1_000) + 24_000

    run(main())


def test_tools_and_handoffs_of_the_first_settings_that_are_disabled_are_left_out(run):
    async def main():
        @tool
        def look() -> str:
            """Look."""
            return "seen"

        other = RealtimeAgent("other")
        settings = {
            "initial_model_settings": {
                "tools": [look],
                "handoffs": [realtime_handoff(other, is_enabled=False)],
            }
        }
        async with desk(RealtimeAgent("desk"), Reply(Say("x")), model_config=settings) as at:
            await at.ask("hello")
            (first, *_) = at.server.sent("session.update")
            assert [one["name"] for one in first["session"]["tools"]] == ["look"], (
                "the handoff is off"
            )

    run(main())


def test_a_model_of_a_programs_own_may_lose_its_connection_for_a_while(run):
    async def main():
        ends = [
            RealtimeModelTurnStartedEvent(response_id="r"),
            RealtimeModelTurnEndedEvent(response_id="r"),
        ]
        model = ScriptedRealtimeModel(
            [RealtimeStep(RealtimeModelSendUserInput("still there?"), ends)]
        )
        async with RealtimeRunner(RealtimeAgent("a"), model=model).run() as session:
            heard = Heard(session)
            await session.on_event(RealtimeModelConnectionStatusEvent("disconnected"))
            await session.on_event(RealtimeModelConnectionStatusEvent("connected"))
            await session.send_message("still there?")
            await heard.until_shown("agent_end")
            model.assert_complete()
        await heard.task

    run(main())
