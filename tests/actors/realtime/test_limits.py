"""Limits, secrets, and what is left of sessions that have ended."""

import asyncio
import gc

import pytest

from tests.doubles.realtime import desk, until
from understudy.actors.realtime import OpenAIRealtimeModel, RealtimeAgent, RealtimeLimits, RealtimeRunner
from understudy.actors.realtime.local import Gate, LocalRealtimeServer, Reply, Say
from understudy.runtime import AgentError, MemoryStore, ModelError
from understudy.runtime.testing import ManualClock

AGENT = RealtimeAgent("desk", "Answer.")


def test_case_60_limits_end_a_session_in_a_pause(run):
    async def main():
        clock = ManualClock()
        for limits, seconds in (
            (RealtimeLimits(max_responses=2), 0),
            (RealtimeLimits(max_tokens=30), 0),
            (RealtimeLimits(idle_timeout=60), 61),
        ):
            async with desk(AGENT, otherwise=Reply(Say("Yes.")), clock=clock, config={"limits": limits}) as at:
                await at.ask("one")
                await at.ask("two")
                clock.advance(seconds)
                await at.heard.task
                assert isinstance(at.heard.error, AgentError)
                assert at.texts("assistant") == ["Yes.", "Yes."]
        gate = Gate()
        async with desk(AGENT, Reply(Say("One", ms=500), gate, Say("more")), clock=clock, config={"limits": RealtimeLimits(max_duration=10)}) as at:
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
            shown = f"{at.heard.events!r} {at.heard.error!r} {at.heard.error.__cause__!r} {at.heard.error.__context__!r}"
        records = await store.read("understudy:session:s")
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
