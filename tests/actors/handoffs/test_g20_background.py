"""Agents that work in the background (G20): each outcome reaches the session that started them
once, whoever has ended or was lost by then.
"""

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    CheckpointNotFound,
    MemoryStore,
    Message,
    ResumeError,
    Runner,
    RunStatus,
    ToolCall,
    UsageError,
)
from offbook.runtime.stores import RunQuery
from offbook.runtime.stores.run_entries import TIMER
from tests.doubles.snapshots import Snapshots


class Boss:
    """Calls the tools that the user names, and otherwise repeats what it hears last."""

    def __init__(self):
        self.heard = []

    async def generate(self, request):
        last = request.messages[-1]
        self.heard.append((last.role, last.text))
        if last.role == "user" and last.text.startswith("call "):
            _, name, arguments = last.text.split(" ", 2)
            call = ToolCall(f"c{len(self.heard)}", name, arguments)
            return Message.assistant("", tool_calls=(call,))
        return Message.assistant(f"heard {last.text}")


class Worker(Agent):
    """Works until its gate is opened."""

    gate: asyncio.Event
    at_work: asyncio.Event

    def __init__(self, name="Researcher"):
        super().__init__(name=name, description="researches")
        self.gate, self.at_work, self.heard = asyncio.Event(), asyncio.Event(), []

    async def run(self, input, context):
        self.heard.append(input.messages[-1].text)
        self.at_work.set()
        await self.gate.wait()
        if "fail" in input.messages[-1].text:
            raise ValueError("no library today")
        yield AgentEvent.say(f"found {input.messages[-1].text}")


RESEARCH = 'call Researcher {"request": "whales"}'


@asynccontextmanager
async def office(store, worker, *, attends=True, **options):
    boss = Boss()
    agent = ChatModelAgent(
        name="Boss", model=boss, tools=[worker.as_tool(background=True, **options)]
    )
    async with ActorSystem() as system:
        runner = Runner(agent, system=system, store=store, durability="step")
        if attends:
            async with runner.attending(every=0.05, recover_every=600.0):
                yield runner, boss
        else:
            yield runner, boss


async def until(condition):
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.005)


async def reports(session):
    return [one.text for one in await session.history() if one.text.startswith("[Task ")]


async def reported(session, count=1):
    async def is_so():
        return len(await reports(session)) >= count

    await until(is_so)
    return await reports(session)


def test_g20_the_call_is_answered_at_once_and_the_end_is_reported_to_the_session(run, store):
    async def main():
        worker = Worker()
        async with office(store, worker) as (runner, boss):
            session = runner.session("s")
            turn = session.query(RESEARCH)
            result = await turn
            (task,) = await session.tasks()
            assert task.id in boss.heard[-1][1]
            assert "works on it in the background" in result.final_output
            await worker.at_work.wait()
            assert (task.agent, task.status.value in ("running", "pending")) == ("Researcher", True)
            assert task.parent == turn.id
            worker.gate.set()
            (report,) = await reported(session)
            assert report == f"[Task {task.id} of Researcher] It has completed: found whales"
            await until(lambda: _is_last(session, f"heard {report}"))
            (task,) = await session.tasks()
            assert task.status is RunStatus.COMPLETED
            assert (await session.task(task.id).result()).final_output == "found whales"
            assert await store.run_entries(RunQuery((TIMER,))) == []

    run(main())


async def _is_last(session, text):
    history = await session.history()
    return bool(history) and history[-1].text == text


def test_g20_a_running_turn_hears_the_end_of_its_task(run, store_of):
    async def main():
        worker, gate = Worker(), asyncio.Event()
        worker.gate.set()

        @tool
        async def work() -> str:
            """Work."""
            await gate.wait()
            return "done"

        class Busy(Boss):
            async def generate(self, request):
                reply = await super().generate(request)
                if request.messages[-1].role == "tool" and len(self.heard) == 2:
                    return Message.assistant("", tool_calls=(ToolCall("w", "work", "{}"),))
                return reply

        boss = Busy()
        agent = ChatModelAgent(
            name="Boss", model=boss, tools=[worker.as_tool(background=True), work]
        )
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store_of("sqlite"), durability="step")
            session = runner.session("s")
            async with runner.attending(every=0.02):
                turn = session.query(RESEARCH)

                async def has_posts():
                    return bool(await session.inbox())

                await until(has_posts)
                gate.set()
                result = await turn
            assert [event.text for event in result.events if event.post] == [boss.heard[-1][1]]
            assert boss.heard[-1][1].endswith("It has completed: found whales")

    run(main())


def test_g20_a_failure_and_a_stop_are_reported_too(run, store):
    async def main():
        worker = Worker()
        async with office(store, worker) as (runner, _):
            session = runner.session("s")
            await session.query('call Researcher {"request": "fail"}')
            worker.gate.set()
            (report,) = await reported(session)
            assert "It has ended as failed: ValueError: no library today" in report
            worker.gate.clear()
            worker.at_work.clear()
            await session.query(RESEARCH)
            await worker.at_work.wait()
            (task,) = [one for one in await session.tasks() if one.ended is None]
            await session.task(task.id).stop()
            assert "It has ended as cancelled" in (await reported(session, 2))[-1]

    run(main())


def test_g20_a_question_of_a_task_is_reported_and_its_answer_goes_to_the_task(run, store):
    class Asks(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("which whales?")
                return
            yield AgentEvent.say(f"found {context.resume.data}")

    async def main():
        async with office(store, Asks(name="Researcher")) as (runner, _):
            session = runner.session("s")
            await session.query(RESEARCH)
            (question,) = await reported(session)
            assert question.endswith("It waits for an answer from outside: which whales?")
            (waiting,) = await runner.pending()
            assert waiting.agent == "Researcher"
            result = await runner.resume(waiting.checkpoint_id, data="blue ones")
            assert result.final_output == "found blue ones"
            assert (await reported(session, 2))[1].endswith("It has completed: found blue ones")
            assert await store.run_entries(RunQuery((TIMER,))) == []

    run(main())


def test_g20_a_call_that_is_quick_enough_is_answered_with_the_result_and_not_reported(run, store):
    async def main():
        worker = Worker()
        worker.gate.set()
        boss = Boss()
        agent = ChatModelAgent(
            name="Boss", model=boss, tools=[worker.as_tool(background_after=5.0)]
        )
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            session = runner.session("s")
            async with runner.attending(every=0.02):
                assert (await session.query(RESEARCH)).final_output == "heard found whales"
                await asyncio.sleep(0.1)  # time in which it would be reported
            assert await reports(session) == []
            assert await store.run_entries(RunQuery((TIMER,))) == []

    run(main())


def test_g20_a_call_that_takes_too_long_is_handed_to_the_background(run, store_of):
    async def main():
        worker, boss = Worker(), Boss()
        agent = ChatModelAgent(
            name="Boss", model=boss, tools=[worker.as_tool(background_after=0.05)]
        )
        async with ActorSystem() as system:
            store = store_of("sqlite")
            runner = Runner(agent, system=system, store=store, durability="step")
            session = runner.session("s")
            async with runner.attending(every=0.02):
                assert "has started" in (await session.query(RESEARCH)).final_output
                worker.gate.set()
                assert (await reported(session))[0].endswith("found whales")
            assert worker.heard == ["whales"]

    run(main())


def test_g20_the_model_asks_for_sends_to_waits_for_and_stops_tasks_of_its_session_only(
    run, store_of
):
    async def main():
        heard, gate = [], asyncio.Event()

        @tool
        async def read() -> str:
            """Read."""
            await gate.wait()
            return "read"

        class Reader:
            async def generate(self, request):
                heard.append(request.messages[-1].text)
                if heard[-1] == "whales":
                    return Message.assistant("", tool_calls=(ToolCall("r", "read", "{}"),))
                return Message.assistant(f"found {heard[-1]}")

        worker = ChatModelAgent(name="Researcher", model=Reader(), tools=[read])
        async with office(store_of("sqlite"), worker) as (runner, _):
            session = runner.session("s")
            await session.query(RESEARCH)
            (task,) = await session.tasks()

            async def asks(name, **more):
                arguments = ", ".join(f'"{key}": {value}' for key, value in more.items())
                text = f'call {name} {{"task_id": "{task.id}"{", " if more else ""}{arguments}}}'
                return (await session.query(text)).final_output

            async def is_reading():
                return heard == ["whales"]

            await until(is_reading)
            assert await asks("task_status") == "heard running"
            assert await asks("task_send", text='"only Europe"') == "heard sent"
            other = await runner.session("other").query(
                f'call task_status {{"task_id": "{task.id}"}}'
            )
            assert "of this session" in other.final_output
            gate.set()
            await reported(session)
            assert heard[-1] == "only Europe"
            assert await asks("task_wait", seconds=5) == "heard completed: found only Europe"
            assert await asks("task_stop") == "heard it has ended already"

    run(main())


def test_g20_a_task_that_is_started_by_a_tool_or_a_custom_agent_is_reported(run, store_of):
    worker = Worker()
    worker.gate.set()

    @tool
    async def delegate(context: ToolContext) -> str:
        """Delegate."""
        return await context.start(worker, "by a tool")

    class Starts(Agent):
        async def run(self, input, context):
            if input.messages[-1].text.startswith("[Task"):
                yield AgentEvent.say("thanks")
                return
            await context.start(worker, "by an agent")
            yield AgentEvent.say("started")

    async def main():
        for agent in (
            ChatModelAgent(name="Boss", model=Boss(), tools=[delegate]),
            Starts(name="Starter"),
        ):
            async with ActorSystem() as system:
                runner = Runner(agent, system=system, store=store_of("sqlite"), durability="step")
                session = runner.session("s")
                async with runner.attending(every=0.02):
                    await session.query("call delegate {}")
                    (report,) = await reported(session)
                    assert "found by a" in report
                assert len(await session.tasks()) == 1

    run(main())


@pytest.mark.parametrize("ends_first", ["task", "parent"])
def test_g20_each_outcome_arrives_once_whenever_the_process_ends(run, ends_first):
    """From what is in the store after each step, another process goes on with both."""

    async def main():
        store, worker = Snapshots(), Worker()
        if ends_first == "task":
            worker.gate.set()
        rows = []
        take = store.after

        async def after(call):
            before = len(store.taken)
            await take(call)
            if len(store.taken) > before:  # with the rows that a snapshot leaves out
                rows.append([row for row, *_ in store._runs._entries.values() if not row.claim])

        store.after = after
        async with office(store, worker) as (runner, _):
            session = runner.session("s")
            await session.query(RESEARCH)
            worker.gate.set()
            (report,) = await reported(session)
            await until(lambda: _is_last(session, f"heard {report}"))
        for number, ((call, content), others) in enumerate(zip(store.taken, rows, strict=True)):
            left, again = Snapshots(content), Worker()
            again.gate.set()
            await left.commit(None, others)
            if not any(key.startswith("offbook:journal:") for key in content):
                continue
            async with office(left, again, attends=False) as (runner, _):
                session = runner.session("s")
                # What no attending process does: a timer that waits for a minute is due now.
                async with runner.attending(every=0.02, recover_every=600.0):

                    async def is_quiet(session=session, runner=runner, left=left):
                        await _make_due(left)
                        return not (
                            await left.run_entries(RunQuery((TIMER,)))
                            or await session.inbox()
                            or await runner.runs(["running", "pending", "drained"])
                        )

                    async def is_over(is_quiet=is_quiet):
                        # Twice: what was begun while it looked is seen the second time.
                        return await is_quiet() and await is_quiet()

                    await until(is_over)
                said = await reports(session)
                tasks = await session.tasks()
                assert len(tasks) == 1, (number, call)
                assert said == [report], (number, call, said)

    run(main())


async def _make_due(store):
    """Have the timers of tasks look now."""
    for row in await store.run_entries(RunQuery((TIMER,))):
        soon = row.replace(started=row.started - int(timedelta(hours=1).total_seconds() * 1e6))
        held = store._runs._entries.get(row.key)
        if held is not None:
            store._runs._entries[row.key] = (soon, *held[1:])


def test_g20_there_is_a_bound_on_tasks_and_the_model_reads_why(run, store_of):
    async def main():
        worker = Worker()
        async with office(store_of("sqlite"), worker) as (runner, _boss):
            session = runner.session("s")
            for _ in range(8):
                assert "has started" in (await session.query(RESEARCH)).final_output
            refused = await session.query(RESEARCH)
            assert "there are 8 tasks of this session that have not ended already" in (
                refused.final_output
            )
            assert len(await session.tasks()) == 8
            await session.clear()
            worker.gate.set()

    run(main())


def test_bad_input_of_background_tasks_is_told(run):
    worker = Worker()
    for wrong, says in (
        ({"full_history": True}, "for calls that are waited for"),
        ({"background_after": 0}, "background_after must be"),
    ):
        with pytest.raises(UsageError, match=says):
            worker.as_tool(background=True, **wrong)

    async def main():
        async with office(MemoryStore(), worker) as (runner, _):
            result = await runner.query(RESEARCH)
            assert "belongs to no session" in repr(result.error or result.final_output)
            with pytest.raises(CheckpointNotFound, match="no task"):
                await runner.session("s").task("task-never").info()
            with pytest.raises(UsageError, match="does not know"):
                await runner.session("s").task("task-never").stop()
        names = [one.name for one in runner.agent.tools]
        assert names == ["Researcher", "task_status", "task_send", "task_wait", "task_stop"]
        bare = ChatModelAgent(
            name="B", model=Boss(), tools=[worker.as_tool(background=True, controls=False)]
        )
        assert [one.name for one in bare.tools] == ["Researcher"]

    run(main())


def test_g20_two_agents_may_start_each_other_and_each_report_reaches_its_starter(run, store_of):
    class Ping(Boss):
        async def generate(self, request):
            reply = await super().generate(request)
            if request.messages[-1].text == "ping":
                call = ToolCall("p", "Pong", '{"request": "pong"}')
                return Message.assistant("", tool_calls=(call,))
            return reply

    async def main():
        ping = ChatModelAgent(name="Ping", model=Ping())
        pong = ChatModelAgent(
            name="Pong", model=Boss(), tools=[ping.as_tool(background=True, name="Again")]
        )
        boss = ChatModelAgent(
            name="Boss",
            model=Ping(),
            tools=[pong.as_tool(background=True), ping.as_tool(background=True)],
        )
        async with ActorSystem() as system:
            runner = Runner(boss, system=system, store=store_of("sqlite"), durability="step")
            session = runner.session("s")
            async with runner.attending(every=0.02):
                await session.query("ping")
                (report,) = await reported(session)
            assert report.endswith("It has completed: heard pong")

    run(main())


def test_g20_a_call_that_was_answered_in_time_is_answered_again_after_a_crash(run):
    """The process ends after the report was given up, and before the result was recorded."""

    async def main():
        worker, store = Worker(), Snapshots()
        worker.gate.set()

        def boss_of(worker):
            return ChatModelAgent(
                name="Boss", model=Boss(), tools=[worker.as_tool(background_after=5.0)]
            )

        async with ActorSystem() as system:
            runner = Runner(boss_of(worker), system=system, store=store, durability="step")
            await runner.session("s").query(RESEARCH)
        contents = [content for call, content in store.taken if call.has("put", ":answered")]
        assert len(contents) == 1
        left, again = Snapshots(contents[0]), Worker()
        again.gate.set()
        ended = [row for row, *_ in store._runs._entries.values() if row.key.startswith("task-")]
        await left.commit(None, ended)
        async with ActorSystem() as system:
            runner = Runner(boss_of(again), system=system, store=left, durability="step")
            (recovered,) = await runner.recover()
            assert (await recovered).final_output == "heard found whales"
            assert again.heard == []

    run(main())


def test_g20_several_calls_of_one_reply_do_not_exceed_the_bound_together(run, store_of):
    class Eager(Boss):
        async def generate(self, request):
            reply = await super().generate(request)
            if request.messages[-1].text == "all":
                calls = [
                    ToolCall(f"e{number}", "Researcher", f'{{"request": "{number}"}}')
                    for number in range(12)
                ]
                return Message.assistant("", tool_calls=tuple(calls))
            return reply

    async def main():
        worker = Worker()
        agent = ChatModelAgent(name="Boss", model=Eager(), tools=[worker.as_tool(background=True)])
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store_of("sqlite"), durability="step")
            session = runner.session("s")
            await session.query("all")
            assert len(await session.tasks()) == 8
            texts = [one.text for one in await session.history() if one.role == "tool"]
            assert sum("was not started" in text for text in texts) == 4
            await session.clear()
            worker.gate.set()

    run(main())


@pytest.mark.parametrize("how", ["stop", "clear", "the model"])
def test_g20_a_task_that_waits_for_an_answer_is_stopped_and_its_deadline_is_gone(run, store, how):
    made = []

    @tool(needs_approval=True, approval_timeout=0.3, on_timeout="approve")
    def pay() -> str:
        """Pay."""
        made.append(1)
        return "paid"

    class Payer:
        async def generate(self, request):
            if request.messages[-1].role == "tool":
                return Message.assistant(f"heard {request.messages[-1].text}")
            return Message.assistant("", tool_calls=(ToolCall("p", "pay", "{}"),))

    async def main():
        worker = ChatModelAgent(name="Researcher", model=Payer(), tools=[pay])
        async with office(store, worker, attends=False) as (runner, _):
            session = runner.session("s")
            await session.query(RESEARCH)

            async def waits():
                return bool(await runner.pending())

            await until(waits)
            (task,) = await session.tasks()
            (waiting,) = await runner.pending()
            if how == "stop":
                assert await session.task(task.id).stop()
                assert not await session.task(task.id).stop()
            elif how == "clear":
                await session.clear()
            else:
                said = await session.query(f'call task_stop {{"task_id": "{task.id}"}}')
                assert said.final_output == "heard stopped"
            assert (await session.task(task.id).info()).status is RunStatus.CANCELLED
            with pytest.raises(ResumeError):
                await runner.approve(waiting.waiting[0]).accepted()
            async with runner.attending(every=0.02):
                if how != "clear":
                    assert "It has ended as cancelled" in (await reported(session))[0]
                await asyncio.sleep(0.5)  # past its deadline
            assert made == []
            assert await store.run_entries(RunQuery((TIMER,))) == []

    run(main())
