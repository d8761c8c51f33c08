"""What a program sees where a run meets asyncio's own functions, pickle, and the end of its
loop.
"""

import asyncio
import copy
import logging
import pickle
import subprocess
import sys

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import MemoryStore, ModelError, Runner, ScriptedModel, SQLiteStore
from tests.doubles.agents import PlannedAgent

SECONDS = 50


def test_wait_is_a_coroutine_for_what_takes_no_other_awaitable(run):
    runner = Runner(PlannedAgent("A", "hello"))

    async def main():
        assert (await asyncio.create_task(runner.query("x").wait())).text == "hello"
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(runner.query("x").wait()) for _ in range(3)]
        assert [task.result().text for task in tasks] == ["hello"] * 3
        refused = runner.query("x")
        with pytest.raises(
            TypeError,
            match=r"a coroutine was expected, got <Run .*; run\.wait\(\) is its coroutine>",
        ):
            asyncio.create_task(refused)  # noqa: RUF006 -- none is made
        await refused

    run(main())
    assert asyncio.run(runner.query("x").wait()).text == "hello"


def test_a_task_that_waits_for_a_run_cancels_it(run):
    async def main():
        begun = asyncio.Event()

        async def wait(_context):
            begun.set()
            await asyncio.Event().wait()

        asked = Runner(PlannedAgent("A", wait, "hello")).query("x")
        task = asyncio.create_task(asked.wait())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asked.wait_ended()
        assert asked.status == "cancelled"

    run(main())


def test_a_result_has_the_id_of_its_run_also_where_it_comes_from_a_store(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            runner = Runner(PlannedAgent("A", "hello"), store=store, durability="step")
            asked = runner.query("x")
            assert (await asked).run_id == asked.id
            assert (await runner.query("x", run_id="named")).run_id == "named"
            assert (
                await Runner(PlannedAgent("A", "hello"), store=store, durability="step").query(
                    "x", run_id="named"
                )
            ).run_id == "named"
            assert (await runner.attach("named")).run_id == "named"

    run(main())


def test_what_cannot_be_pickled_says_what_to_do(run, tmp_path):
    agent = ChatModelAgent(name="A", model=ScriptedModel(["hello"]))

    async def main():
        asked = Runner(PlannedAgent("A", "hello")).query("x")
        with SQLiteStore(tmp_path / "runs.db") as store:
            for thing, advice in (
                (store, "Make the store in each process"),
                (MemoryStore(), "For several processes, use SQLiteStore"),
                (agent, "make or import the agent of that name in each process"),
                (Runner(agent), "Make a Runner in each process"),
                (asked, r"runner\.attach\(run\.id\)"),
            ):
                with pytest.raises(
                    TypeError, match=f"a {type(thing).__name__} cannot be pickled: .*{advice}"
                ):
                    pickle.dumps(thing)
        await asked

    run(main())
    assert copy.copy(agent).name == "A"  # within a process it is copied as before


def test_a_failure_of_the_provider_stays_a_warning(run, caplog):
    class Away:
        async def generate(self, request):
            raise ModelError("the provider is away") from ConnectionError("refused")

    async def main():
        with caplog.at_level(logging.WARNING, logger="offbook"):
            await Runner(ChatModelAgent(name="A", model=Away())).query("x")

    run(main())
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)


PROGRAM = """if True:
    import asyncio, logging, sys
    from offbook import *
    logging.basicConfig(level=logging.WARNING)

    @tool
    async def slow() -> str:
        "Take long."
        await asyncio.Event().wait()

    agent = ChatModelAgent(name="A", tools=[slow], model=ScriptedModel([ToolCalls("slow")] * 99))
    runner = Runner(agent, store=SQLiteStore(sys.argv[1]), durability=sys.argv[2])

    async def leave(turns):
        runner.query("x", detached=True)
        for _ in range(turns):
            await asyncio.sleep(0)

    async def cancelled(turns):
        task = asyncio.create_task(runner.query("x").wait())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()

    for turns in range(40):  # the end comes in the middle of each step of the beginning, the first write among them
        asyncio.run(leave(turns))
        asyncio.run(cancelled(turns))
"""


@pytest.mark.parametrize("durability", ["step", "interrupt"])
def test_a_loop_that_ends_at_any_step_of_a_beginning_is_quiet(durability, tmp_path):
    command = [
        sys.executable,
        "-X",
        "dev",
        "-W",
        "error",
        "-c",
        PROGRAM,
        str(tmp_path / "runs.db"),
        durability,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0
    for word in ("Task was destroyed", "never awaited", "Traceback", "ERROR"):
        assert word not in done.stderr, done.stderr
