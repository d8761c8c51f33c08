"""`service()`: the block that a service needs around its Runner, on an event loop and without
one.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Runner,
    ScriptedModel,
    SQLiteStore,
    StoreError,
    ToolCalls,
    UsageError,
    service,
)
from tests.doubles.agents import PlannedAgent

PROGRAM = Path(__file__).parents[1] / "programs" / "serviced.py"
SECONDS = 30


def gated(begun, gate):
    """An agent whose one tool waits for the gate."""

    @tool
    async def work() -> str:
        """Work."""
        begun.set()
        await gate.wait()
        return "worked"

    replies = [
        lambda request: (
            ToolCalls(work={})
            if request.messages[-1].role == "user"
            else f"Done: {request.messages[-1].text}"
        )
    ]
    return ChatModelAgent(name="Gated", model=ScriptedModel(replies * 20), tools=[work])


def test_it_enters_a_system_drains_and_closes_the_store(run, tmp_path):
    async def main():
        begun, gate = asyncio.Event(), asyncio.Event()
        store = SQLiteStore(tmp_path / "runs.db")
        async with service(gated(begun, gate), store=store) as runner:
            assert isinstance(runner.system, ActorSystem)
            assert runner.durability == "step"
            asked = runner.query("go", run_id="a", detached=True)
            await begun.wait()
            asyncio.get_running_loop().call_later(0, gate.set)  # within the drain
        assert asked.status == "drained"
        assert not runner.system.is_running
        with pytest.raises(UsageError, match="closed"):
            await store.get("x")

        # Recovers at once.
        async with service(gated(begun, gate), store=SQLiteStore(tmp_path / "runs.db")) as runner:
            assert (await runner.attach("a")).text == "Done: worked"

    run(main())


def test_a_service_that_is_not_entered_says_how_to_get_its_runner():
    made = service(ChatModelAgent(name="A", model=ScriptedModel([])), store=MemoryStore())
    with pytest.raises(AttributeError, match=r"async with service\(...\) as runner:.*runner.query"):
        made.query("q")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        made.nothing  # noqa: B018 -- reading it is the test


def test_a_scope_of_anyio_that_is_cancelled_drains_it(run, tmp_path):
    """Such a scope cancels anew whatever is awaited in it, also while the block is being left."""

    async def main():
        begun, gate = asyncio.Event(), asyncio.Event()
        asked = []

        async def serve():
            agent = gated(begun, gate)
            async with service(agent, store=SQLiteStore(tmp_path / "runs.db")) as runner:
                asked.append(runner.query("go", run_id="a", detached=True))
                await asyncio.Event().wait()

        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            await begun.wait()
            group.cancel_scope.cancel()
            asyncio.get_running_loop().call_later(0.05, gate.set)  # within the drain
        assert asked[0].status == "drained"
        async with SQLiteStore(tmp_path / "runs.db") as store:
            info = await Runner(gated(begun, gate), store=store).info("a")
            assert (info.status, info.attempts) == ("drained", 0)

    run(main())


def test_a_drain_that_is_cut_short_still_leaves_the_system_and_frees_its_runs(run, tmp_path):
    async def main():
        begun, ends, drains = asyncio.Event(), asyncio.Event(), asyncio.Event()
        entered = []

        async def serve():
            agent = gated(begun, asyncio.Event())
            async with service(agent, store=SQLiteStore(tmp_path / "runs.db")) as runner:
                entered.append(runner.system)
                runner.query("go", run_id="a", detached=True)
                await ends.wait()

        serving = asyncio.create_task(serve())
        await begun.wait()
        (system,) = entered
        drain = system.drain

        async def drained(timeout):
            drains.set()
            return await drain(timeout)

        system.drain = drained
        ends.set()
        await drains.wait()
        serving.cancel()
        await asyncio.wait((serving,))
        assert not system.is_running
        async with SQLiteStore(tmp_path / "runs.db") as store:
            (key,) = await store.orphans("offbook:open:")
            assert await store.holder(key) is None

    run(main())


def test_it_uses_the_system_that_runs_on_this_loop_and_leaves_it_to_its_owner(run):
    async def main():
        async with ActorSystem() as system:
            async with service(PlannedAgent("A", "hello"), store=MemoryStore()) as runner:
                assert runner.system is system
                assert (await runner.query("hi")).text == "hello"
            assert system.is_running
            assert not system.roots

    run(main())


def test_the_last_service_that_uses_a_store_closes_it(run, tmp_path):
    async def main():
        store = SQLiteStore(tmp_path / "runs.db")
        async with service(PlannedAgent("A", "hello"), store=store) as one:
            async with service(PlannedAgent("B", "hello"), store=store) as other:
                assert one.system is other.system
            assert (await one.query("hi")).text == "hello"
        with pytest.raises(UsageError, match="closed"):
            await store.get("x")

    run(main())


def test_it_prunes_now_and_then(run):
    async def main():
        pruned = asyncio.Event()

        class Store(MemoryStore):
            async def prune(self, older_than=None):
                pruned.set()
                return await super().prune(older_than)

        async with service(PlannedAgent("A", "hello"), store=Store(), prune_every=0.01):
            await asyncio.wait_for(pruned.wait(), SECONDS)

    run(main())


def test_without_a_loop_it_has_a_thread_of_its_own(tmp_path):
    desk = service(PlannedAgent("A", "hello"), store=SQLiteStore(tmp_path / "runs.db"), keep="all")
    with desk as runner:
        assert runner.blocking.query("hi", run_id="a").text == "hello"
        assert runner.system.dispatcher.thread != threading.get_ident()
        assert [info.id for info in runner.blocking.runs()] == ["a"]
        with pytest.raises(UsageError, match="entered already"):
            desk.open()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("service")]
    with pytest.raises(UsageError, match="stopped"):
        runner.query("hi", run_id="b")


def test_what_cannot_be_served_is_an_error_before_it_starts(run, tmp_path):
    agent = PlannedAgent("A", "hello")
    with pytest.raises(UsageError, match=r"store must be a store\. Pass SQLiteStore\('runs.db'\)"):
        service(agent, store="runs.db")
    for name in ("recover_every", "prune_every", "drain_timeout"):
        with pytest.raises(UsageError, match=name):
            service(agent, store=MemoryStore(), **{name: -1})
    with pytest.raises(TypeError, match="Did you mean 'streaming'"):
        service(agent, store=MemoryStore(), streamin=True)

    async def main():
        with (
            pytest.raises(UsageError, match="Write `async with service"),
            service(agent, store=MemoryStore()),
        ):
            pass
        (tmp_path / "none").write_text("this is no database")
        with pytest.raises(StoreError):
            async with service(agent, store=SQLiteStore(tmp_path / "none")):
                raise AssertionError
        desk = service(agent, store=MemoryStore())
        async with desk:
            with pytest.raises(UsageError, match="entered already"):
                await desk.__aenter__()

    run(main())
    with pytest.raises(StoreError), service(agent, store=SQLiteStore(tmp_path / "none")):
        raise AssertionError


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("recover_evry", "recover_every"),
        ("drain_timeot", "drain_timeout"),
        ("streamin", "streaming"),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_is_meant(wrong, right):
    with pytest.raises(
        TypeError,
        match=rf"service\(\) got an unexpected keyword argument '{wrong}'. Did you mean '{right}'",
    ):
        service(PlannedAgent("A", "hello"), store=MemoryStore(), **{wrong: 1})


def test_a_signal_that_somebody_else_handles_is_left_alone(run):
    async def main():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        async with service(PlannedAgent("A", "hello"), store=MemoryStore()):
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
        try:
            before = signal.getsignal(signal.SIGTERM)
            async with service(PlannedAgent("A", "hello"), store=MemoryStore()):
                assert signal.getsignal(signal.SIGTERM) is before
            assert signal.getsignal(signal.SIGTERM) is before
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)

    run(main())


ENDS = {
    "block": (143, "left"),
    "stack": (-signal.SIGTERM, None),
    "with": (143, "left"),
    "open": (143, None),
    "awaits": (143, "left"),
    "follows": (143, "left"),
    "group": (143, "left"),
    "asks": (143, "left"),
}


@pytest.mark.parametrize("kind", ENDS)
def test_sigterm_drains_and_ends_the_process(kind, tmp_path):
    path = str(tmp_path / "runs.db")
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), kind, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGTERM)
    said, errors = process.communicate(timeout=SECONDS)
    code, left = ENDS[kind]
    assert (process.returncode, said.split() or [None]) == (code, [left])
    assert errors == ""
    with SQLiteStore(path) as store:
        runner = Runner(PlannedAgent("Desk", ""), store=store)
        info = runner.blocking.info("a")
        assert (info.status, info.attempts) == ("drained", 0)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "end", path, "quick"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    # The call in progress was recorded: it is not made again.
    assert (done.returncode, done.stdout, done.stderr) == (0, "Done: worked\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_of_a_process_with_an_open_service_leaves_it_alone(tmp_path):
    code = """if True:
        import os, sys
        from offbook import *
        desk = service(ChatModelAgent(name="A", model=ScriptedModel(["one", "two"])), store=SQLiteStore(sys.argv[1]))
        runner = desk.open()
        print(runner.blocking.query("x").text, flush=True)
        if os.fork() == 0:
            try:
                runner.blocking.query("x")
            except UsageError as error:
                print("fork" in str(error), flush=True)
            sys.exit()
        os.wait()
        print(runner.blocking.query("x").text)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(tmp_path / "runs.db")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["one", "True", "two"], "")
