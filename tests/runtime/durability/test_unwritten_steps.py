"""A step that cannot be written is not repeated without end: the run fails, or is set aside, with
an error that names the call and the reason.
"""

import logging
import os
import sqlite3

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    RunLost,
    Runner,
    ScriptedModel,
    SQLiteStore,
    StoreError,
    ToolCalls,
    ValueRefused,
)
from offbook.runtime.durability import lease
from tests.doubles.watched_stores import WatchedStore


def refunding(size=400_000):
    """An agent with a tool that must not be called without end, and how often it was called."""
    calls = []

    @tool
    def refund() -> str:
        calls.append("refund")
        return os.urandom(size // 2).hex()

    def reply(request):
        return "done" if request.messages[-1].role == "tool" else ToolCalls("refund")

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 40), tools=[refund]), calls


async def prepared(tmp_path):
    store = SQLiteStore(tmp_path / "runs.db")
    await store.set("a key", b"v")
    return store, store._worker()._backend._opened.connection


def fill_up(connection):
    """Leave room for small things."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 30}")


def test_a_step_that_finds_no_room_is_tried_three_times_and_set_aside(run, tmp_path, caplog):
    async def main():
        store, connection = await prepared(tmp_path)
        agent, calls = refunding()
        async with store, ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            fill_up(connection)
            result = await runner.query("go", run_id="r")
            assert isinstance(result.error, StoreError)
            looks = 0
            while found := await runner.recover():
                looks += 1
                assert looks < 10
                for one in found:
                    await one
            assert len(calls) == 3
            info = await runner.info("r")
            assert info.status == "stuck"
            assert "tool 'refund'" in info.error
            assert "disk is full" in info.error
            (said,) = [
                record.getMessage()
                for record in caplog.records
                if record.levelno >= logging.ERROR and "is stuck, because" in record.getMessage()
            ]
            assert "the result of tool 'refund' could not be written" in said
            assert "disk is full" in said
            connection.execute("PRAGMA max_page_count = 1000000")
            again = await runner.retry("r")
            assert (await again).status == "completed"
            assert len(calls) == 4

    run(main())


def test_an_attempt_that_has_recorded_something_counts_from_one_again(run, tmp_path):
    async def main():
        store, connection = await prepared(tmp_path)
        agent, calls = refunding()
        async with store, ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            fill_up(connection)
            await runner.query("go", run_id="r")
            for _ in range(1):
                (again,) = await runner.recover()
                await again
            connection.execute("PRAGMA max_page_count = 1000000")
            (again,) = await runner.recover()
            assert (await again).status == "completed"
            assert (len(calls), await runner.recover()) == (3, [])

    run(main())


@pytest.mark.parametrize("what", ["the result of a tool", "the last answer"])
def test_a_value_that_the_store_does_not_take_is_the_runs_failure_at_once(
    run, tmp_path, caplog, what
):
    async def main():
        store, connection = await prepared(tmp_path)
        agent, calls = (
            refunding(200_000)
            if what == "the result of a tool"
            else (ChatModelAgent(name="A", model=ScriptedModel(["x" * 200_000] * 9)), None)
        )
        async with store, ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
            result = await runner.query("go", run_id="r")
            assert result.status == "failed"
            assert isinstance(result.error, ValueRefused)
            assert "larger than SQLite accepts" in str(result.error)
            assert await runner.recover() == []
            info = await runner.info("r")
            assert info.status == "failed"
            assert calls in (["refund"], None)
            named = "tool 'refund'" if calls else "agent 'A'"
            assert any(
                named in record.getMessage()
                for record in caplog.records
                if record.levelno >= logging.ERROR
            )

    run(main())


class AwayStore(WatchedStore):
    """It fails at each call while `is_away` says so."""

    def is_away(self):
        return False

    async def before(self, call):
        if self.is_away():
            raise OSError("away")


def test_what_could_not_be_given_back_counts_when_it_is(run):
    """The store is away when the step is written, and when the run is given back."""

    async def main():
        store, seen = AwayStore(), []
        agent, calls = refunding(100)
        async with ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            store.is_away = lambda: bool(calls)
            result = await runner.query("go", run_id="r")
            assert result.status == "failed"
            store.is_away = lambda: False
            (again,) = await runner.recover(where=lambda found: seen.append(found) or True)
            assert [
                (one.unwritten, "tool 'refund'" in one.failure, "away" in one.failure)
                for one in seen
            ] == [(1, True, True)]
            assert (await again).status == "completed"

    run(main())


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_store_that_is_not_there_before_a_call_is_not_the_runs_failure(run, monkeypatch, at_once):
    """Before a call, the store is asked whether the run is still this process's.

    It is away just then, and back when the run ends.
    """
    monkeypatch.setattr(lease, "FRESH_SECONDS", 0.0)

    class NotAsked(WatchedStore):
        times = at_once

        async def before(self, call):
            if call.method == "commit" and not call.about[1:] and self.times:
                self.times -= 1
                raise OSError("away")

    async def main():
        store, calls = NotAsked(), []

        @tool
        def refund(number: int) -> str:
            calls.append(number)
            return "done"

        def reply(request):
            return (
                "done"
                if request.messages[-1].role == "tool"
                else ToolCalls(*(("refund", {"number": number}) for number in range(at_once)))
            )

        agent = ChatModelAgent(name="A", model=ScriptedModel([reply] * 9), tools=[refund])
        async with ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            result = await runner.query("go", run_id="r")
            assert isinstance(result.error, RunLost)
            assert "away" in str(result.error) or "was unreachable" in str(result.error)
            assert (calls, store.times) == ([], 0)
            (again,) = await runner.recover()
            assert (await again).status == "completed"
            assert sorted(calls) == list(range(at_once))

    run(main())


def test_a_question_that_cannot_be_written_is_not_shown(run):
    """It would have a number under which another process writes something else."""

    class NotSaved(WatchedStore):
        times = 1

        async def before(self, call):
            if call.has("leave") and call.records and self.times:
                self.times -= 1
                raise OSError("away")

    async def main():
        store, calls = NotSaved(), []

        @tool(needs_approval=True)
        def refund() -> str:
            calls.append("refund")
            return "done"

        def reply(request):
            return "done" if request.messages[-1].role == "tool" else ToolCalls("refund")

        agent = ChatModelAgent(name="A", model=ScriptedModel([reply] * 9), tools=[refund])
        async with ActorSystem() as system:
            runner = Runner(agent, store=store, durability="step", system=system)
            result = await runner.query("go", run_id="r")
            assert (result.status, type(result.error), store.times) == ("failed", StoreError, 0)
            assert not [event for event in result.events if event.action is not None]
            (again,) = await runner.recover()
            assert (await again).status == "interrupted"
            (waiting,) = (await runner.info("r")).waiting
            assert (await runner.approve(waiting)).status == "completed"
            assert calls == ["refund"]

    run(main())
