"""Conversations that last: what is in the store, in which order messages are worked on, and what
each run is given.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from offbook.actors import ChatModelAgent, Sequential, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointError,
    MemoryStore,
    Runner,
    RunStatus,
    ScriptedModel,
    SessionBusy,
    SystemDraining,
    ToolCalls,
    UsageError,
)
from tests.doubles.held_stores import Echo

KINDS = ["memory", "sqlite", "redis", "postgres"]


@asynccontextmanager
async def echoing(store, **options):
    model = Echo()
    async with ActorSystem() as system:
        yield (
            Runner(
                ChatModelAgent(name="A", model=model, output_key="last"),
                system=system,
                store=store,
                **options,
            ),
            model,
        )


def texts(messages):
    return [message.text for message in messages]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("durability", ["none", "interrupt", "step"])
def test_each_message_is_given_what_was_said_before_and_nothing_is_in_memory_between(
    run, store_of, kind, durability
):
    async def main():
        for said in (
            ["1 hi", "3 there"],
            ["5 again"],
        ):  # a second system, as after a new start of the service
            store = store_of(kind, "same")
            async with echoing(store, durability=durability) as (runner, _):
                session = runner.session("user-42")
                for text, answer in zip(
                    ["hi", "there"] if len(said) == 2 else ["again"], said, strict=True
                ):
                    result = await session.query(text)
                    assert result.final_output == answer
                    assert result.session_values == {"last": answer}
                    assert runner.system.stats().actors == 0
                assert texts(await session.history())[-2:] == [text, said[-1]]
                assert await session.values() == {"last": said[-1]}
                before = texts(await session.history())
        assert before == ["hi", "1 hi", "there", "3 there", "again", "5 again"]

    if kind == "memory":
        only = store_of("memory")
        run_with = store_of
        store_of = lambda *_: only  # noqa: E731 -- what lies in memory is there for as long as the store is
        assert run_with is not None
    run(main())


def test_messages_that_are_sent_while_it_works_wait_in_their_order(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            runs = [runner.session("s").query(text) for text in ("wait", "b", "c", "d")]
            await model.asked.wait()
            assert [one.status for one in runs] == [RunStatus.RUNNING] * 4
            model.gate.set()
            assert [(await one).final_output for one in runs] == ["1 wait", "3 b", "5 c", "7 d"]

    run(main())


def test_sessions_do_not_wait_for_one_another(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            slow = runner.session("slow").query("wait")
            await model.asked.wait()
            assert (await runner.session("other").query("x")).final_output == "1 x"
            model.gate.set()
            await slow

    run(main())


def test_a_message_is_refused_while_it_works_if_that_was_chosen(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            slow = runner.session("s").query("wait")
            await model.asked.wait()
            with pytest.raises(SessionBusy, match="session 's' is running another turn"):
                await runner.session("s", busy="reject").query("no")
            model.gate.set()
            await slow
            assert (await runner.session("s", busy="reject").query("yes")).final_output == "3 yes"
            assert texts(await runner.session("s").history()) == ["wait", "1 wait", "yes", "3 yes"]

    run(main())


@pytest.mark.parametrize("where", ["the same system", "another system"])
def test_a_message_may_go_first(run, where):
    async def main():
        store = MemoryStore()
        async with echoing(store) as (runner, model):
            slow = runner.session("s").query("wait")
            await model.asked.wait()
            # Which has a system of its own.
            sender = runner if where == "the same system" else Runner(runner.agent, store=store)
            urgent = await sender.session("s", busy="preempt").query("now")
            assert urgent.final_output == "2 now"
            assert (await slow).status == "cancelled"
            assert "goes first" in str((await slow).error)
            assert texts(await runner.session("s").history()) == ["wait", "now", "2 now"]
            assert [key for key in await store.keys("") if "preempt" in key] == []

    run(main())


def test_of_several_that_go_first_the_last_one_is_answered_and_none_is_lost(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            session = runner.session("s", busy="preempt")
            runs = [session.query(f"wait {number}") for number in range(4)]
            runs.append(session.query("now"))
            results = [await one for one in runs]
            assert [result.status for result in results] == ["cancelled"] * 4 + ["completed"]
            assert texts(await session.history()) == [
                "wait 0",
                "wait 1",
                "wait 2",
                "wait 3",
                "now",
                "5 now",
            ]
            assert not model.gate.is_set()

    run(main())


def test_one_that_waits_may_be_cancelled_and_leaves_no_trace(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            session = runner.session("s")
            slow = session.query("wait")
            await model.asked.wait()
            waiting, last = session.query("never"), session.query("last")
            assert await waiting.cancel()
            model.gate.set()
            assert (await last).final_output == "3 last"
            await slow
            assert texts(await session.history()) == ["wait", "1 wait", "last", "3 last"]

    run(main())


@pytest.mark.parametrize("end", ["cancel", "fail", "timeout"])
def test_what_was_sent_stays_in_the_session_whatever_ends_the_run(run, end):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            session = runner.session("s")
            turn = session.query(
                "fail" if end == "fail" else "wait", timeout=0.05 if end == "timeout" else None
            )
            if end == "cancel":
                await model.asked.wait()
                turn.cancel()
            assert (await turn).status == ("failed" if end == "fail" else "cancelled")
            assert (await session.query("next")).final_output == "2 next"

    run(main())


def pay_agent(model):
    @tool
    def pay(amount: int, context: ToolContext) -> str:
        return f"paid {amount}: {context.interrupt('may I?')}"

    return ChatModelAgent(name="A", model=model, tools=[pay], output_key="last")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_interrupted_turn_goes_on_in_its_session_and_is_there_once(run, durability):
    async def main():
        store = MemoryStore()
        model = ScriptedModel([ToolCalls(pay={"amount": 3}), "done", "more"])
        async with ActorSystem() as system:
            runner = Runner(pay_agent(model), system=system, store=store, durability=durability)
            session = runner.session("s")
            turn = session.query("pay")
            assert (await turn).status == "interrupted"
            assert [message.role for message in await session.history()] == ["user", "assistant"]
            resumed = await runner.resume(turn.checkpoint_id, data="yes")
            assert resumed.final_output == "done"
            assert await session.values() == {"last": "done"}
            await session.query("and?")
            roles = ["user", "assistant", "tool", "assistant", "user"]
            assert [message.role for message in model.requests[-1].messages] == roles
            assert [message.role for message in await session.history()] == [*roles, "assistant"]

    run(main())


def test_a_turn_that_was_left_unanswered_gives_the_next_one_a_valid_history(run):
    async def main():
        model = ScriptedModel([ToolCalls(pay={"amount": 3}), "never mind"])
        async with ActorSystem() as system:
            session = Runner(pay_agent(model), system=system, store=MemoryStore()).session("s")
            await session.query("pay")
            assert (await session.query("forget it")).final_output == "never mind"
            roles = [message.role for message in model.requests[-1].messages]
            assert roles == ["user", "assistant", "tool", "user"]
            assert (
                'waits for an answer to what it asked ("may I?")'
                in model.requests[-1].messages[2].text
            )

    run(main())


def test_a_branch_has_a_history_of_its_own(run):
    async def main():
        model = ScriptedModel([ToolCalls(pay={"amount": 3}), "done", "done otherwise"])
        async with ActorSystem() as system:
            runner = Runner(pay_agent(model), system=system, store=MemoryStore())
            session = runner.session("s")
            turn = session.query("pay")
            await turn
            await runner.resume(turn.checkpoint_id, data="yes")
            before = await session.history()
            assert (
                await runner.resume(f"{turn.checkpoint_id}@1", data="no")
            ).final_output == "done otherwise"
            assert await session.history() == before

    run(main())


def test_what_several_agents_said_is_in_the_session_in_its_order(run):
    async def main():
        agents = [
            ChatModelAgent(name=name, model=ScriptedModel([f"{name}1", f"{name}2"]))
            for name in "AB"
        ]
        async with ActorSystem() as system:
            session = Runner(
                Sequential(name="S", sub_agents=agents), system=system, store=MemoryStore()
            ).session("s")
            await session.query("x")
            await session.query("y")
            assert texts(await session.history()) == ["x", "A1", "B1", "y", "A2", "B2"]

    run(main())


def test_clearing_waits_for_the_turn_at_work_and_forgets_all(run):
    async def main():
        store = MemoryStore()
        async with echoing(store, durability="none") as (runner, model):
            session = runner.session("s")
            slow = session.query("wait")
            await model.asked.wait()
            clearing = asyncio.create_task(session.clear())
            model.gate.set()
            await slow
            await clearing
            assert (await session.history(), await session.values(), await store.keys("")) == (
                (),
                {},
                [],
            )
            assert (await session.query("new")).final_output == "1 new"

    run(main())


def test_closing_waits_for_what_was_sent_and_takes_nothing_more(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            session = runner.session("s")
            slow = session.query("wait")
            await model.asked.wait()
            closing = asyncio.create_task(session.close())
            await asyncio.sleep(0)
            assert not closing.done()
            model.gate.set()
            await closing
            assert slow.status is RunStatus.COMPLETED
            with pytest.raises(UsageError, match="is closed"):
                session.query("more")

    run(main())


def test_session_values_of_a_run_go_before_those_of_the_session(run):
    async def main():
        async with ActorSystem() as system:
            agent = ChatModelAgent(
                name="A", instruction="for {who}", model=ScriptedModel(["1", "2"])
            )
            session = Runner(agent, system=system, store=MemoryStore()).session("s")
            await session.query("x", session_values={"who": "Ann", "kept": 1})
            await session.query("y", session_values={"who": "Bob"})
            assert agent.model.requests[-1].messages[0].text == "for Bob"
            assert await session.values() == {"who": "Bob", "kept": 1}

    run(main())


def test_a_value_that_cannot_be_kept_is_refused_where_it_is_given(run):
    async def main():
        async with ActorSystem() as system:

            @tool
            def bad(context: ToolContext) -> str:
                context.session["lock"] = object()
                return "never"

            agent = ChatModelAgent(
                name="A", model=ScriptedModel([ToolCalls(bad={}), "done"]), tools=[bad]
            )
            runner = Runner(agent, system=system, store=MemoryStore())
            with pytest.raises(CheckpointError, match="the session value 'x' cannot be stored"):
                runner.session("s").query("x", session_values={"x": object()})
            result = await runner.session("s").query("x")
            assert "the session value 'lock' cannot be stored" in result.events[1].message.text

    run(main())


@pytest.mark.parametrize(
    "session_id",
    [
        "a/b",
        "ü 🎭",
        "a\nb",
        "x@2",
        "offbook:run:1",
        "'; DROP TABLE x; --",
        "%_*?[a]",
        " ",
        "a\x00b",
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_odd_characters_in_an_id_are_that_and_nothing_else(run, store_of, kind, session_id):
    async def main():
        async with echoing(store_of(kind)) as (runner, _):
            await runner.session(session_id).query("x")
            assert texts(await runner.session(session_id).history()) == ["x", "1 x"]
            assert await runner.session(session_id + "b").history() == ()

    run(main())


@pytest.mark.parametrize(
    ("session_id", "says"),
    [
        ("", "not empty"),
        (None, "not empty"),
        (7, "not empty"),
        ("\ud800", "surrogate"),
        ("x" * 1025, "at most 1024 bytes, got 1025"),
    ],
)
def test_an_id_that_cannot_be_one_is_refused(session_id, says):
    with pytest.raises(UsageError, match=says):
        Runner(ChatModelAgent(name="A", model=ScriptedModel([])), store=MemoryStore()).session(
            session_id
        )


def test_bad_input_says_what_to_do():
    runner = Runner(ChatModelAgent(name="A", model=ScriptedModel([])), store=MemoryStore())
    with pytest.raises(UsageError, match="'queue', 'reject' or 'preempt'"):
        runner.session("s", busy="wait")
    with pytest.raises(UsageError, match=r"keep_last\(n\)"):
        runner.session("s", policy=3)
    with pytest.raises(UsageError, match="the Runner has no store"):
        Runner(runner.agent).session("s")
    with pytest.raises(UsageError, match="text must be a string, got 3"):
        runner.session("s").query(3)


def test_one_that_waits_for_its_turn_when_the_system_is_drained_is_refused(run):
    async def main():
        async with echoing(MemoryStore()) as (runner, model):
            slow = runner.session("s").query("wait")
            await model.asked.wait()
            waiting = runner.session("s").query("later")
            draining = asyncio.create_task(runner.system.drain(5))
            await asyncio.sleep(0)
            assert (await waiting).status == "drained"
            model.gate.set()
            assert (await draining).drained
            assert (await slow).status == "completed"
            with pytest.raises(SystemDraining):
                await runner.session("s").query("too late")

    run(main())
