"""Time that outlives a process (G21): deadlines of interrupts, sleeps and reminders take effect
once, in whichever process attends.
"""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
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

SOON = timedelta(seconds=0.15)
LATER = timedelta(hours=1)


@pytest.fixture(params=["interrupt", "step"])
def durability(request):
    return request.param


class Model:
    """Calls the tool once, and answers with its result."""

    async def generate(self, request):
        last = request.messages[-1]
        if last.role == "tool":
            return Message.assistant(f"heard {last.text}")
        return Message.assistant("", tool_calls=(ToolCall("c", "act", "{}"),))


def agent_of(act):
    return ChatModelAgent(name="A", model=Model(), tools=[act])


@asynccontextmanager
async def runner_of(agent, store, **options):
    async with ActorSystem() as system:
        yield Runner(agent, system=system, store=store, keep="all", **options)


async def ended(runner, run_id):
    """Wait until a run that another caller resumes has ended."""
    async with asyncio.timeout(20):
        while (info := await runner.info(run_id)).ended is None:
            await asyncio.sleep(0.01)
    return info, await runner.attach(run_id)


async def timers(store):
    return await store.run_entries(RunQuery((TIMER,)))


def asking(deadline, default):
    @tool(name="act")
    def act(context: ToolContext) -> str:
        """Act."""
        return repr(context.interrupt("may I?", deadline=deadline, default=default))

    return agent_of(act)


def test_g21_an_interrupt_that_nobody_answers_in_time_gets_its_default(run, store, durability):
    async def main():
        async with runner_of(asking(SOON, {"ok": False}), store, durability=durability) as runner:
            started = runner.query("go")
            waiting = await started
            assert waiting.status is RunStatus.INTERRUPTED
            (context,) = waiting.interrupts
            assert context.default == {"ok": False}
            assert context.deadline > datetime.now(UTC)
            assert (await runner.info(started.id)).waiting[0].deadline == context.deadline
            async with runner.attending(every=0.05):
                _, result = await ended(runner, started.id)
            assert result.final_output == "heard {'ok': False}"
            assert await timers(store) == []
            with pytest.raises(ResumeError):
                await runner.resume(context.id and started.checkpoint_id, data="late").accepted()

    run(main())


def test_g21_an_answer_before_the_deadline_counts_and_removes_the_timer(run, store, durability):
    async def main():
        async with runner_of(asking(SOON, "default"), store, durability=durability) as runner:
            started = runner.query("go")
            await started
            assert len(await timers(store)) == 1
            result = await runner.resume(started.checkpoint_id, data="mine")
            assert result.final_output == "heard 'mine'"
            assert await timers(store) == []
            async with runner.attending(every=0.02):
                await asyncio.sleep(0.3)  # past the deadline
            assert (await runner.info(started.id)).status is RunStatus.COMPLETED

    run(main())


@pytest.mark.parametrize(
    ("on_timeout", "expected"), [("approve", "heard done"), ("deny", "nobody approved it within")]
)
def test_g21_an_approval_that_nobody_gives_is_decided_as_the_tool_says(
    run, store_of, on_timeout, expected
):
    made = []

    @tool(name="act", needs_approval=True, approval_timeout=0.1, on_timeout=on_timeout)
    def act() -> str:
        """Act."""
        made.append(1)
        return "done"

    async def main():
        async with runner_of(agent_of(act), store_of("sqlite"), durability="step") as runner:
            started = runner.query("go")
            assert (await started).status is RunStatus.INTERRUPTED
            async with runner.attending(every=0.05):
                _, result = await ended(runner, started.id)
            assert expected in result.final_output
            assert made == [1] * (on_timeout == "approve")

    run(main())


def test_g21_a_tool_sleeps_without_a_process_and_goes_on_when_it_is_due(run, store, durability):
    slept = []

    @tool(name="act")
    async def act(context: ToolContext) -> str:
        """Act."""
        await context.sleep(SOON)
        await context.sleep(SOON)
        slept.append(1)
        return "awake"

    async def main():
        async with runner_of(agent_of(act), store, durability=durability) as runner:
            started = runner.query("go")
            assert (await started).status is RunStatus.INTERRUPTED
            assert runner.system.stats().actors == 0
        async with runner_of(agent_of(act), store, durability=durability) as runner:
            async with runner.attending(every=0.05):
                _, result = await ended(runner, started.id)
            assert result.final_output == "heard awake"
            assert slept == [1]
            assert await timers(store) == []

    run(main())


def test_g21_a_custom_agent_sleeps_and_an_answer_wakes_it(run, store_of):
    class Sleeper(Agent):
        async def run(self, input, context):
            await context.sleep(SOON)
            yield AgentEvent.say("awake")
            await context.sleep(LATER)
            yield AgentEvent.say("woken")

    async def main():
        store = store_of("sqlite")
        async with runner_of(Sleeper(name="S"), store, durability="step") as runner:
            started = runner.query("go")
            assert (await started).status is RunStatus.INTERRUPTED
            async with runner.attending(every=0.05), asyncio.timeout(20):
                while True:
                    info = await runner.info(started.id)
                    if info.waiting and info.waiting[0].deadline > datetime.now(UTC) + SOON:
                        break
                    await asyncio.sleep(0.01)
            result = await runner.resume(info.checkpoint_id)
            assert result.final_output == "woken"
            assert await timers(store) == []

    run(main())


def test_g21_a_reminder_is_heard_when_it_is_due_and_not_before(run, store):
    class Repeats:
        async def generate(self, request):
            return Message.assistant(f"heard {request.messages[-1].text}")

    async def main():
        async with runner_of(ChatModelAgent(name="A", model=Repeats()), store) as runner:
            session = runner.session("s")
            posted = await session.post("in a moment", id="r", not_before=SOON)
            assert not posted.duplicate
            assert (await session.post("in a moment", id="r", not_before=SOON)).duplicate
            await session.post("tomorrow", id="t", not_before=timedelta(days=1))
            await session.post("now")
            assert [(one.id == "r", one.message.text) for one in await session.inbox()] == [
                (False, "now"),
                (True, "in a moment"),
                (False, "tomorrow"),
            ]
            assert (await session.query("hello")).final_output == "heard hello"
            async with runner.attending(every=0.05), asyncio.timeout(20):
                while len(await session.history()) < 5:
                    await asyncio.sleep(0.01)
            assert [one.text for one in await session.history() if one.role == "user"] == [
                "now",
                "hello",
                "in a moment",
            ]
            assert await session.withdraw("t")
            assert not await session.withdraw("t")
            assert await session.inbox() == []
            assert await timers(store) == []

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g21_a_deadline_takes_effect_once_whenever_the_process_ends(run, durability):
    async def main():
        store = Snapshots()
        async with runner_of(asking(SOON, "default"), store, durability=durability) as runner:
            started = runner.query("go", checkpoint_id="c")
            await started
            async with runner.attending(every=0.02):
                await ended(runner, started.id)
        contents = [content for _, content in store.taken]
        assert any("c" in content for content in contents)
        rows = [row for row, *_ in store._runs._entries.values() if row.status == TIMER]
        assert rows == []

    run(main())


def test_g21_several_processes_attend_and_each_timer_acts_once(run, store_of):
    made = []

    @tool(name="act")
    async def act(context: ToolContext) -> str:
        """Act."""
        answer = context.interrupt("may I?", deadline=SOON, default="default")
        made.append(context.run.run_id)
        return answer

    async def main():
        async with ActorSystem() as system:
            one, two = (
                Runner(
                    agent_of(act),
                    system=system,
                    store=store_of("sqlite", "same"),
                    durability="step",
                    keep="all",
                )
                for _ in range(2)
            )
            runs = [one.query("go") for _ in range(10)]
            await asyncio.gather(*runs)
            async with one.attending(every=0.02), two.attending(every=0.02):
                for started in runs:
                    _, result = await ended(one, started.id)
                    assert result.final_output == "heard default"
            assert sorted(made) == sorted(started.id for started in runs)

    run(main())


def test_g21_a_timer_that_cannot_be_read_holds_back_nothing(run, store_of):
    class Repeats:
        async def generate(self, request):
            return Message.assistant(f"heard {request.messages[-1].text}")

    async def main():
        store = store_of("sqlite")
        async with runner_of(ChatModelAgent(name="A", model=Repeats()), store) as runner:
            past = datetime.now(UTC) - LATER
            await runner.session("damaged").post("never", not_before=past)
            (row,) = await timers(store)
            await store.commit(None, [row.replace(value=b"damaged")])
            await runner.session("s").post("posted")
            await runner.session("t").post("due", not_before=past)
            async with runner.attending(every=0.05), asyncio.timeout(20):
                for session_id in "st":
                    while len(await runner.session(session_id).history()) < 2:
                        await asyncio.sleep(0.01)
            assert [one.key for one in await timers(store)] == [row.key]

    run(main())


def test_bad_input_of_time_is_told(run):
    async def main():
        async with runner_of(asking(LATER, None), MemoryStore()) as runner:
            session = runner.session("s")
            naive = datetime(2027, 1, 1)
            with pytest.raises(UsageError, match="with a time zone"):
                await session.post("x", not_before=naive)
            with pytest.raises(UsageError, match="must be a timedelta"):
                await session.post("x", not_before=5)
            for wrong, says in (
                ({"deadline": naive}, "with a time zone"),
                ({"default": 1}, "default needs a deadline"),
            ):

                @tool(name="act")
                def act(context: ToolContext, wrong=wrong) -> str:
                    """Act."""
                    return context.interrupt("?", **wrong)

                failing = Runner(
                    ChatModelAgent(name="A", model=Model(), tools=[act], on_tool_error="raise"),
                    store=MemoryStore(),
                )
                result = await failing.query("go")
                assert says in repr(result.error)
            result = await Runner(asking(LATER, None)).query("go")
            assert "needs a store" in repr(result.error or result.final_output)
            with pytest.raises(UsageError, match="approval_timeout must be"):
                tool(lambda: 1, name="x", approval_timeout=0)
            with pytest.raises(UsageError, match="'deny' or 'approve'"):
                tool(lambda: 1, name="x", on_timeout="maybe")

    run(main())


def test_g21_reminders_that_were_missed_are_heard_in_the_order_of_their_times(run, store_of):
    class Repeats:
        async def generate(self, request):
            return Message.assistant("heard")

    async def main():
        async with runner_of(
            ChatModelAgent(name="A", model=Repeats()), store_of("sqlite")
        ) as runner:
            session, now = runner.session("s"), datetime.now(UTC)
            for number in range(450):
                at = now - timedelta(seconds=1000 - number)
                await session.post(str(number), not_before=at)
            async with runner.attending(every=0.05), asyncio.timeout(30):
                while await session.inbox() or await timers(runner.store):
                    await asyncio.sleep(0.02)
            said = [one.text for one in await session.history() if one.role == "user"]
            assert said == [str(number) for number in range(450)]

    run(main())


def test_g21_a_deadline_in_a_session_that_is_busy_holds_back_nothing(run, durability):
    async def main():
        gate, at_work = asyncio.Event(), asyncio.Event()

        class Busy(Model):
            async def generate(self, request):
                last = request.messages[-1]
                if last.text == "work":
                    at_work.set()
                    await gate.wait()
                if last.text in ("work", "hello"):
                    return Message.assistant(f"heard {last.text}")
                return await super().generate(request)

        agent = ChatModelAgent(name="A", model=Busy(), tools=[asking(SOON, "no").tools[0]])
        async with runner_of(agent, MemoryStore(), durability=durability) as runner:
            session, other = runner.session("s"), runner.session("t")
            paused = await session.query("go")
            turn = session.query("work")
            await at_work.wait()
            async with asyncio.timeout(20):
                async with runner.attending(every=0.02):
                    await asyncio.sleep(2 * SOON.total_seconds())
                    await other.post("hello")
                    try:
                        async with asyncio.timeout(5):
                            while len(await other.history()) < 2:
                                await asyncio.sleep(0.01)
                    finally:
                        gate.set()
                await turn
                _, result = await ended(runner, paused.run_id)
                assert result.final_output == "heard 'no'"
            assert await timers(runner.store) == []

    run(main())


def test_g21_an_answer_after_the_deadline_is_refused_also_if_nobody_has_attended(run, durability):
    async def main():
        calls = []

        @tool(name="act", needs_approval=True, approval_timeout=0.1)
        def act() -> str:
            """Act."""
            calls.append(1)
            return "done"

        async with runner_of(agent_of(act), MemoryStore(), durability=durability) as runner:
            paused = await runner.query("go")
            await asyncio.sleep(0.12)
            with pytest.raises(ResumeError, match="deadline"):
                await runner.approve(paused.interrupts[0])
            async with runner.attending(every=0.02):
                _, result = await ended(runner, paused.run_id)
            assert "nobody approved it" in result.final_output
            assert calls == []

    run(main())


def test_g21_a_sleep_that_is_over_may_be_woken_where_nobody_attends(run, durability):
    async def main():
        @tool(name="act")
        async def act(context: ToolContext) -> str:
            """Act."""
            await context.sleep(timedelta(seconds=0.1))
            return "awake"

        async with runner_of(agent_of(act), MemoryStore(), durability=durability) as runner:
            await runner.query("go")
            await asyncio.sleep(0.12)
            (waiting,) = await runner.pending()
            result = await runner.resume(waiting.checkpoint_id)
            assert result.final_output == "heard awake"

    run(main())


def test_g21_many_timers_that_cannot_act_yet_hold_back_no_other(run, monkeypatch):
    monkeypatch.setattr("offbook.runtime.durability.timers._AT_ONCE", 2)

    async def main():
        gate, awake = asyncio.Event(), []

        @tool(name="act")
        async def act(context: ToolContext) -> str:
            """Act."""
            await context.sleep(timedelta(seconds=0.05))
            awake.append(1)
            await gate.wait()
            return "done"

        async with runner_of(agent_of(act), MemoryStore()) as runner:
            for _ in range(5):
                await runner.query("go")
            await runner.session("s").post("call the bank", not_before=timedelta(seconds=0.1))
            damaged = [
                row.replace(key=f"{row.key}x", value=b"x") for row in await timers(runner.store)
            ]
            await runner.store.commit(None, damaged)
            async with runner.attending(every=0.02), asyncio.timeout(20):
                while len(awake) < 6:  # the reminder starts a turn that calls the tool, too
                    await asyncio.sleep(0.01)
                gate.set()

    run(main())
