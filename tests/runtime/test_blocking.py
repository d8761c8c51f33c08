"""`runner.blocking`: a Runner for synchronous code."""

import asyncio
import inspect
import threading

import pytest

from offbook.actors import Approve, ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointNotFound,
    MemoryStore,
    ResumeError,
    Runner,
    ScriptedModel,
    Session,
    SQLiteStore,
    ToolCalls,
    UsageError,
)
from offbook.runtime.blocking import BlockingRunner, BlockingSession
from offbook.runtime.run.run_options import ResumeOptions, RunnerOptions
from tests.doubles.agents import PlannedAgent

SECONDS = 30


@tool(needs_approval=True)
def pay(euros: int) -> str:
    """Pay."""
    return f"paid {euros}"


def payer():
    def reply(request):
        asked = request.messages[-1].role == "user"
        return ToolCalls(pay={"euros": 5}) if asked else f"Done: {request.messages[-1].text}"

    return ChatModelAgent(name="Payer", model=ScriptedModel([reply] * 20), tools=[pay])


def gated(begun, gate):
    """An agent whose one tool does not end, unless the gate is open when it begins."""

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        if not gate.is_set():
            await asyncio.Event().wait()
        return "waited"

    replies = [
        lambda request: (
            ToolCalls(wait={})
            if request.messages[-1].role == "user"
            else f"Done: {request.messages[-1].text}"
        )
    ]
    return ChatModelAgent(name="Gated", model=ScriptedModel(replies * 20), tools=[wait])


@pytest.mark.parametrize("where", ["default", "system"])
def test_a_synchronous_program_starts_lists_answers_and_forgets(where, tmp_path):
    with SQLiteStore(tmp_path / "runs.db") as store, ActorSystem.in_thread() as system:
        runner = Runner(
            payer(), store=store, durability="step", system=system if where == "system" else None
        )
        blocking = runner.blocking
        assert blocking.query("pay", run_id="a", labels={"shop": "1"}).status == "interrupted"
        started = blocking.start("pay", run_id="b", detached=True)
        assert started.result().status == "interrupted"
        assert [info.id for info in blocking.pending()] == ["b", "a"]
        assert [info.id for info in blocking.runs(labels={"shop": "1"})] == ["a"]
        (waiting,) = blocking.info("a").waiting
        assert blocking.approve(waiting, {"euros": 7}).text == "Done: paid 7"
        denied = blocking.accepted(runner.deny(blocking.info("b").waiting[0], "too much"))
        assert denied.result().status == "completed"
        assert blocking.pending() == blocking.stuck() == []
        blocking.forget("a")
        with pytest.raises(CheckpointNotFound):
            blocking.info("a")
        assert blocking.prune() >= 0


def test_sessions_in_synchronous_code():
    with ActorSystem.in_thread() as system:
        runner = Runner(
            ChatModelAgent(name="A", model=ScriptedModel(["one", "two", "three"])),
            store=MemoryStore(),
            system=system,
        )
        session = runner.blocking.session("ada")
        assert session.query("hello").text == "one"
        assert session.start("again", run_id="t2").result().text == "two"
        assert [message.text for message in runner.blocking.history("ada")] == [
            "hello",
            "one",
            "again",
            "two",
        ]
        assert session.values() == {}
        session.clear()
        assert session.history() == ()
        assert session.run("more", session_values={"x": 1}).text == "three"
        assert session.values() == {"x": 1}
        session.close()
        assert runner.blocking.forget_session("ada") >= 0


def test_an_interrupted_run_is_resumed_in_synchronous_code():
    runner = Runner(payer(), store=MemoryStore())
    asked = runner.query("pay")
    assert asked.result().status == "interrupted"
    (waiting,) = asked.result().interrupts
    assert (
        runner.blocking.resume(asked.checkpoint_id, {waiting.id: Approve()}, timeout=SECONDS).text
        == "Done: paid 5"
    )
    with pytest.raises(CheckpointNotFound):
        runner.blocking.resume("none")


@pytest.mark.parametrize("how", ["recover", "recover_every", "retry"])
def test_what_another_system_left_is_recovered_in_synchronous_code(how, tmp_path):
    with SQLiteStore(tmp_path / "runs.db") as store:
        gate, begun = threading.Event(), threading.Event()
        with ActorSystem.in_thread() as system:
            left = Runner(gated(begun, gate), store=store, durability="step", system=system).query(
                "go", run_id="a", detached=True
            )
            assert begun.wait(SECONDS)
        gate.set()
        assert left.status == "drained"
        runner = Runner(gated(begun, gate), store=store, durability="step")
        match how:
            case "recover":
                assert [run.result().text for run in runner.blocking.recover()] == ["Done: waited"]
            case "recover_every":
                with runner.blocking.recover_every(30):
                    assert runner.attach("a").result().text == "Done: waited"
            case "retry":
                with pytest.raises(ResumeError, match="no stuck run"):
                    runner.blocking.retry("a")


def test_what_recover_returns_on_a_loop_that_ends_is_given_back(tmp_path):
    """Neither cancelled nor failed: the next `recover` continues it, and this was no attempt."""
    with SQLiteStore(tmp_path / "runs.db") as store:
        gate, begun = threading.Event(), threading.Event()
        runner = Runner(gated(begun, gate), store=store, durability="step")

        async def begin():
            runner.query("go", run_id="a", detached=True)
            assert await asyncio.to_thread(begun.wait, SECONDS)

        asyncio.run(begin())
        for is_let in (False, True):
            begun.clear()

            async def recover(is_let=is_let):
                found = await runner.recover()
                if is_let:  # so far that its tool is under way
                    assert await asyncio.to_thread(begun.wait, SECONDS)
                return found

            (left,) = asyncio.run(recover())
            result = left.result()
            assert result.status == "drained"
            assert "recover() continues the run" in str(result.error)
            assert "supervisor" not in str(result.error)
            assert runner.blocking.info("a").status == "drained"
            assert runner.blocking.info("a").attempts == 0
        gate.set()
        (again,) = runner.blocking.recover()
        assert again.result().text == "Done: waited"


def test_on_an_event_loop_it_says_what_to_write(run):
    async def main():
        runner = Runner(PlannedAgent("A", "hello"), store=MemoryStore())
        calls = {
            "query": lambda: runner.blocking.query("x"),
            "pending": runner.blocking.pending,
            "recover_every": lambda: runner.blocking.recover_every(3),
            "session": lambda: runner.blocking.session("s").history(),
        }
        for name, call in calls.items():
            with pytest.raises(
                UsageError, match=rf"runner\.blocking\.{name}.*blocks its thread.*Write `a"
            ):
                call()

    run(main())


def parameters(method):
    return [
        (one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()
    ]


@pytest.mark.parametrize(
    "name",
    [
        "runs",
        "info",
        "pending",
        "stuck",
        "forget",
        "forget_session",
        "prune",
        "retry",
        "session",
        "approve",
        "deny",
        "query",
    ],
)
def test_each_method_takes_what_the_runners_takes(name):
    assert parameters(getattr(BlockingRunner, name)) == parameters(getattr(Runner, name))


@pytest.mark.parametrize("name", ["query", "run", "history", "values", "clear", "close"])
def test_each_method_of_a_session_takes_what_the_sessions_takes(name):
    assert parameters(getattr(BlockingSession, name)) == parameters(getattr(Session, name))


def test_the_options_that_are_passed_on_are_all_known():
    def named(method, *others):
        return {one for one in inspect.signature(method).parameters if one not in ("self", *others)}

    assert set(ResumeOptions.__annotations__) == named(Runner.resume, "checkpoint_id", "targets")
    assert set(RunnerOptions.__annotations__) == named(Runner.__init__, "agent", "system", "store")
