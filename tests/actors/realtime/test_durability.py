"""A session that is spoken outlives its process."""

import asyncio
import json
import sys

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.actors.realtime import OpenAIRealtimeModel, RealtimeAgent, RealtimeRunner
from offbook.actors.realtime.local import Call, Gate, LocalRealtimeServer, Reply, Say
from offbook.runtime import (
    CheckpointError,
    MemoryStore,
    Message,
    RunLost,
    Runner,
    ScriptedModel,
    SessionBusy,
    SQLiteStore,
)
from offbook.runtime.stores import Append
from offbook.runtime.testing import ManualClock
from tests.doubles.realtime import Heard, desk, until

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


def held_texts(server):
    """What the server holds, by text."""
    return [
        one["content"][0].get("text") or one["content"][0].get("transcript")
        for one in server.session.items
        if one["type"] == "message"
    ]


class Stopping(MemoryStore):
    """Does nothing more from one of its records on, as for a process that is killed there."""

    def __init__(self, at=0, *, before=True):
        super().__init__()
        self.at, self.before, self.records, self.stopped, self.claims = (
            at,
            before,
            0,
            asyncio.Event(),
            [],
        )

    async def commit(self, claim, writes, *, then="keep"):
        records = sum(len(one.records) for one in writes if isinstance(one, Append))
        reached = self.at and self.records < self.at <= self.records + records
        if not (reached and self.before):
            await super().commit(claim, writes, then=then)
            self.records += records
        if reached:
            self.at = 0
            self.claims.append(claim)
            self.stopped.set()
            await asyncio.get_running_loop().create_future()


def test_case_56_a_session_that_is_stopped_at_any_record_goes_on_from_it(run):
    async def main():
        ran = []

        @tool
        async def book(place: str, context: ToolContext) -> str:
            """Book."""
            ran.append(context.idempotency_key)
            return f"booked {place}"

        billing = RealtimeAgent("billing", "Bills.", tools=[book])
        triage = RealtimeAgent("triage", "Ask.", tools=[book], handoffs=[billing])

        async def talk(store):
            async with desk(triage, otherwise=answer, store=store, session_id="s") as at:
                playing = asyncio.create_task(at.ask("book it", 2))
                playing.add_done_callback(lambda _: None)
                stopped = asyncio.create_task(store.stopped.wait())
                await asyncio.wait((playing, stopped), return_when=asyncio.FIRST_COMPLETED)
                if not store.stopped.is_set():
                    playing = asyncio.create_task(at.ask("my bill", 2))
                    await asyncio.wait((playing, stopped), return_when=asyncio.FIRST_COMPLETED)
                stopped.cancel()
                playing.cancel()
                await asyncio.gather(playing, stopped, return_exceptions=True)
                if store.claims:
                    await store.revoke(store.claims[0].owner)
                    at.session._core.lifecycle.fatal(RunLost("it was killed"))
                    await at.heard.task

        whole = Stopping()
        await talk(whole)
        assert whole.records > 10
        for before in (True, False):
            for at_record in range(1, whole.records):
                ran.clear()
                store = Stopping(at_record, before=before)
                await talk(store)
                begun = len(ran)
                async with desk(triage, otherwise=answer, store=store, session_id="s") as at:
                    await until(at.session._core.lifecycle.is_pause)
                    await at.ask("are you there?")
                    check_conversation(at.server.session.items)
                    assert held_texts(at.server) == at.texts()
                assert set(ran) <= {"s:realtime:c0"}
                assert len(ran) - begun <= 1

    run(main())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_case_56_a_process_that_is_killed_at_a_write_leaves_a_session_that_goes_on_elsewhere(
    run, tmp_path
):
    async def main():
        async with LocalRealtimeServer(otherwise=answer) as server:
            (folder := tmp_path / "whole").mkdir()
            code, whole = await play(server, folder, 0, "never")
            assert code == 0, whole
            assert whole["agent"] == "billing"
            for when, number in (("before", 3), ("after", 4), ("before", whole["writes"] - 1)):
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
                assert held_texts(server) == [
                    part.get("text") or part.get("transcript") for part in texts
                ]
            assert server.errors == []

    run(main())


@pytest.mark.slow
@pytest.mark.timeout(150)
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
            assert (found["agent"], found["values"], found["pending"]) == (
                "billing",
                {"booked": "Rome", "kept": 1},
                [],
            )
            assert (tmp_path / "log").read_text().split()[-1] == "s:realtime:p"
            check_conversation(server.session.items)

    run(main())


def working():
    ran = []

    @tool
    async def work() -> str:
        """Work."""
        ran.append(1)
        if len(ran) == 1:
            await asyncio.get_running_loop().create_future()
        return "done again"

    return ran, RealtimeAgent("a", tools=[work])


def test_case_57_calls_that_had_begun_are_run_again_or_reported(run):
    async def main():
        for rule, output in (("rerun", "done again"), ("report", "not completed")):
            store, ran, agent = MemoryStore(), *working()
            async with desk(
                agent,
                Reply(Call("work", call_id="c")),
                otherwise=Reply(Say("Done.")),
                store=store,
                session_id="s",
            ) as at:
                await at.session.send_message("go")
                await until(lambda ran=ran: ran)
                at.session._core.lifecycle.fatal(RunLost("as a kill does: nothing more is written"))
                await at.heard.task
            async with desk(
                agent,
                otherwise=Reply(Say("Done.")),
                store=store,
                session_id="s",
                config={"tools_on_resume": rule},
                busy="queue",
            ) as at:
                await at.heard.until_shown("agent_end")
                (call,) = [one for one in at.session.history if one.type == "function_call"]
                assert call.output == output
                assert len(ran) == (2 if rule == "rerun" else 1)

    run(main())


def test_case_57_a_session_of_an_agent_that_is_gone_is_not_connected(run):
    async def main():
        store = MemoryStore()
        async with desk(
            RealtimeAgent("old"), Reply(Say("Yes.")), store=store, session_id="s"
        ) as at:
            await at.ask("hi")
            at.session._core.notes.record_agent("old")
        async with LocalRealtimeServer() as server:
            runner = RealtimeRunner(
                AGENT, model=OpenAIRealtimeModel(base_url=server.base_url, api_key="k"), store=store
            )
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
        replies = (
            Reply(Call("look", call_id="c")),
            Reply(Say("I have found it.")),
            Reply(Say("one two three four", ms=1_000), gate),
        )
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
        async with desk(
            agent, otherwise=Reply(Say("Spoken again.")), store=store, session_id="s", busy="queue"
        ) as at:
            await at.ask("and again")
            assert at.texts() == [
                "look",
                "I have found it.",
                "count",
                "one two",
                "and now?",
                "as text",
                "and again",
                "Spoken again.",
            ]
            assert at.session.usage.requests == 4

    run(main())


def test_a_new_session_begins_with_a_history(run):
    async def main():
        history = [Message.user("My name is Ada."), Message.assistant("Hello Ada.")]
        async with desk(AGENT, otherwise=Reply(Say("You are Ada.")), history=history) as at:
            await at.ask("who am I?")
            texts = [
                one["content"][0].get("text") or one["content"][0].get("transcript")
                for one in at.server.session.items
            ]
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
            count = len(await store.read("offbook:session:s"))
            lease = at.session._core.record.lease
            await store.revoke(lease.claim.owner)
            await at.session.send_message("and now?")
            await at.heard.task
            assert isinstance(at.heard.error, RunLost)
            assert len(await store.read("offbook:session:s")) == count

    run(main())
