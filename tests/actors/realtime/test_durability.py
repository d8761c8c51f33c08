"""A session that is spoken outlives its process."""

import asyncio
import gc
import json
import sys

import pytest

from tests.doubles.realtime import Heard, desk, until
from understudy.actors import ChatModelAgent, tool
from understudy.actors.realtime import OpenAIRealtimeModel, RealtimeAgent, RealtimeLimits, RealtimeRunner
from understudy.actors.realtime.local import Call, Gate, LocalRealtimeServer, Reply, Say
from understudy.runtime import (
    AgentError,
    CheckpointError,
    MemoryStore,
    Message,
    ModelError,
    Runner,
    RunLost,
    ScriptedModel,
    SessionBusy,
    SQLiteStore,
)
from understudy.runtime.testing import ManualClock

PROGRAM = "tests/programs/realtime_killed.py"
AGENT = RealtimeAgent("desk", "Answer.")


def answer(session, options):
    """What the model says: by what was said last."""
    last = session.items[-1] if session.items else {"type": "none"}
    text = str(last.get("output") or (last.get("content") or [{}])[0].get("text"))
    call_id = f"c{sum(one['type'] == 'function_call' for one in session.items)}"
    if text == "book it":
        return Reply(Call("book", '{"place": "Rome"}', call_id))
    if text == "my bill":
        return Reply(Call("transfer_to_billing", "{}", call_id))
    if text == "pay":
        return Reply(Call("pay", "{}", "p"))
    return Reply(Say(f"about {text}"))


async def play(server, tmp_path, kill_at, when):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        PROGRAM,
        server.base_url,
        str(tmp_path / "s.db"),
        str(tmp_path / "log"),
        str(kill_at),
        when,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode, json.loads(out) if out and process.returncode == 0 else err.decode()


def check_conversation(items):
    """What has to hold of what a server holds: one output for each call, no item twice."""
    assert len({one["id"] for one in items}) == len(items)
    calls = [one["call_id"] for one in items if one["type"] == "function_call"]
    outputs = [one["call_id"] for one in items if one["type"] == "function_call_output"]
    assert len(set(calls)) == len(calls)
    assert sorted(outputs) == sorted(calls)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_case_56_a_session_that_is_killed_at_any_write_goes_on_elsewhere(run, tmp_path):
    async def main():
        async with LocalRealtimeServer(otherwise=answer) as server:
            (folder := tmp_path / "whole").mkdir()
            code, whole = await play(server, folder, 0, "never")
            assert code == 0, whole
            assert whole["agent"] == "billing"
            tries = 0
            for when, step in (("before", 1), ("after", 2)):
                for number in range(1, whole["writes"] + 1, step):
                    tries += 1
                    (folder := tmp_path / f"{when}{number}").mkdir()
                    code, _ = await play(server, folder, number, when)
                    assert code == -9
                    code, found = await play(server, folder, 0, "resume")
                    assert code == 0, found
                    check_conversation(server.session.items)
                    log = folder / "log"
                    keys = log.read_text().split() if log.exists() else []
                    assert len(set(keys)) <= 1
                    assert len(keys) <= 2
                    texts = [one["content"][0] for one in found["history"] if one["type"] == "message"]
                    said = [part.get("text") or part.get("transcript") for part in texts]
                    held = [one["content"][0].get("text") or one["content"][0].get("transcript") for one in server.session.items if one["type"] == "message"]
                    assert held == said
            assert tries > 10
            assert server.errors == []

    run(main())


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_case_57_approvals_the_agent_in_charge_and_values_survive_the_kill(run, tmp_path):
    async def main():
        async with LocalRealtimeServer(otherwise=answer) as server:
            code, _ = await play(server, tmp_path, 0, "never")
            assert code == 0
            code, _ = await play(server, tmp_path, 0, "asks")
            assert code == -9
            connections = len(server.sessions)
            code, error = await play(server, tmp_path, 0, "unknown")
            assert code == 1
            assert "CheckpointError" in error
            assert "billing" in error
            assert len(server.sessions) == connections  # nothing was connected
            code, found = await play(server, tmp_path, 0, "approve")
            assert code == 0, found
            assert (found["agent"], found["values"], found["pending"]) == ("billing", {"booked": "Rome", "kept": 1}, [])
            assert (tmp_path / "log").read_text().split()[-1] == "s:realtime:p"
            check_conversation(server.session.items)

    run(main())


def test_case_57_calls_that_had_begun_are_run_again_or_reported(run):
    async def main():
        for rule, output in (("rerun", "done again"), ("report", "not completed")):
            store, ran = MemoryStore(), []

            @tool
            async def work() -> str:
                """Work."""
                ran.append(1)
                if len(ran) == 1:
                    await asyncio.get_running_loop().create_future()
                return "done again"

            agent = RealtimeAgent("a", tools=[work])
            async with desk(agent, Reply(Call("work", call_id="c")), otherwise=Reply(Say("Done.")), store=store, session_id="s") as at:
                await at.session.send_message("go")
                await until(lambda: ran)
                at.session._core.fatal(RunLost("as a kill does: nothing more is written"))
                await at.heard.task
            async with desk(agent, otherwise=Reply(Say("Done.")), store=store, session_id="s", config={"tools_on_resume": rule}, busy="queue") as at:
                await at.heard.until_shown("agent_end")
                (call,) = [one for one in at.session.history if one.type == "function_call"]
                assert call.output == output
                assert len(ran) == (2 if rule == "rerun" else 1)

    run(main())


def test_case_57_a_session_of_an_agent_that_is_gone_is_not_connected(run):
    async def main():
        store = MemoryStore()
        async with desk(RealtimeAgent("old"), Reply(Say("Yes.")), store=store, session_id="s") as at:
            await at.ask("hi")
            at.session._core.record_agent("old")
        async with LocalRealtimeServer() as server:
            runner = RealtimeRunner(AGENT, model=OpenAIRealtimeModel(base_url=server.base_url, api_key="k"), store=store)
            with pytest.raises(CheckpointError, match="'old'"):
                await runner.run(session_id="s").__aenter__()
            assert server.sessions == []

    run(main())


def test_case_58_a_text_agent_reads_what_was_spoken_and_the_other_way_round(run):
    async def main():
        store = MemoryStore()
        clock, gate = ManualClock(), Gate()

        @tool
        def look() -> str:
            """Look."""
            return "found"

        agent = RealtimeAgent("desk", tools=[look])
        replies = (Reply(Call("look", call_id="c")), Reply(Say("I have found it.")), Reply(Say("one two three four", ms=1_000), gate))
        async with desk(agent, *replies, store=store, session_id="s", clock=clock) as at:
            await at.ask("look", 2)
            clock.advance(10)
            await at.session.send_message("count")
            await at.heard.until(lambda: len(at.heard.of("audio")) == 12)
            clock.advance(0.5)
            await at.session.interrupt()
            await at.heard.until_shown("agent_end", 3)
        model = ScriptedModel([Message.assistant("as text")])
        text = Runner(ChatModelAgent(name="desk", model=model), store=store).session("s")
        await text.query("and now?")
        asked = [(one.role, one.text) for one in model.requests[0].messages]
        assert asked == [
            ("user", "look"),
            ("assistant", ""),
            ("tool", "found"),
            ("assistant", "I have found it."),
            ("user", "count"),
            ("assistant", "one two"),
            ("user", "and now?"),
        ]
        await text.close()
        async with desk(agent, otherwise=Reply(Say("Spoken again.")), store=store, session_id="s", busy="queue") as at:
            await at.ask("and again")
            assert at.texts() == ["look", "I have found it.", "count", "one two", "and now?", "as text", "and again", "Spoken again."]
            assert at.session.usage.requests == 4

    run(main())


def test_a_new_session_begins_with_a_history(run):
    async def main():
        history = [Message.user("My name is Ada."), Message.assistant("Hello Ada.")]
        async with desk(AGENT, otherwise=Reply(Say("You are Ada.")), history=history) as at:
            await at.ask("who am I?")
            texts = [one["content"][0].get("text") or one["content"][0].get("transcript") for one in at.server.session.items]
            assert texts == ["My name is Ada.", "Hello Ada.", "who am I?", "You are Ada."]

    run(main())


def test_case_59_one_process_at_a_time_has_the_session(run):
    async def main():
        store = MemoryStore()
        async with desk(AGENT, otherwise=Reply(Say("Yes.")), store=store, session_id="s") as at:
            await at.ask("hi")
            with pytest.raises(SessionBusy):
                await at.runner.run(session_id="s").__aenter__()
            waiting = asyncio.create_task(at.runner.run(session_id="s", busy="queue").__aenter__())
            await asyncio.sleep(0)
            assert not waiting.done()
            await at.session.close()
            second = await waiting
            heard = Heard(second)
            third = await at.runner.run(session_id="s", busy="preempt").__aenter__()
            await heard.task
            assert isinstance(heard.error, RunLost)
            count = len(at.server.sent(connection=1))
            await third.send_message("and now?")
            await at.server.until(lambda: len(at.server.responses) == 2)
            assert len(at.server.sent(connection=1)) == count
            await third.close()

    run(main())


def test_case_59_a_lost_lease_ends_the_session_which_writes_and_sends_nothing_more(run, tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "s.db")
        async with desk(AGENT, otherwise=Reply(Say("Yes.")), store=store, session_id="s") as at:
            await at.ask("hi")
            await until(lambda: not at.session._core.record.is_pending)
            count = len(await store.read("understudy:session:s"))
            lease = at.session._core.record.lease
            await store.revoke(lease.claim.owner)
            await at.session.send_message("and now?")
            await at.heard.task
            assert isinstance(at.heard.error, RunLost)
            assert len(await store.read("understudy:session:s")) == count

    run(main())


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
def test_case_60_a_thousand_sessions_leave_nothing_behind(run):
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
            before = await some(100)
            after = await some(800)
            assert after - before < 800
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
