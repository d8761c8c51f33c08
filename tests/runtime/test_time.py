"""Everything that waits takes the system's clock."""

import ast
import asyncio
from pathlib import Path

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    ActorSystem,
    FailoverModel,
    LimitedModel,
    Message,
    ModelError,
    RetryModel,
    Runner,
    ScriptedModel,
)
from offbook.runtime.backoff import Backoff
from offbook.runtime.clock import Deadline, sleep
from offbook.runtime.testing import ManualClock

ROOT = Path(__file__).parents[2]

# Where the real time is meant, and why. A file that needs it no more leaves the list.
REAL = {
    "actors/demo/trip.py": "a demonstration that one can follow",
    "actors/demo/worker.py": "another process, which is waited for",
    "actors/realtime/openai_realtime.py": "the network's time",
    "runtime/cli/doctor.py": "the network's time, and whether clocks agree",
    "runtime/cli/live_stats.py": "the user's time",
    "runtime/console/answer_log.py": "time stamps",
    "runtime/console/model_calls.py": "time stamps",
    "runtime/observe/timeline.py": "time stamps, for what waits now",
    "runtime/stores/memory.py": "time stamps of fencing tokens",
    "runtime/console/now.py": "rates that a person reads",
    "runtime/durability/journal.py": "time stamps",
    "runtime/observe/otlp_export.py": "the network's time, while a program ends",
    "runtime/run/run.py": "time stamps",
    "runtime/run/watched_system.py": "measures",
    "runtime/telemetry/opening.py": "time stamps",
    "runtime/a2a/push/policy.py": "the network's time",
    "runtime/a2a/push/sender.py": "the network's time",
    "runtime/a2a/server/gate.py": "the network's time",
    "runtime/clock.py": "the source of all time",
    "runtime/actor/future.py": "a thread that blocks has no loop, and no clock",
    "runtime/actor/ref.py": (
        "a caller in another thread, or on another loop, where the system's clock must not be used"
    ),
    "runtime/actor/thread_cell.py": "a thread that blocks",
    "runtime/actor/waiting.py": "a thread that blocks",
    "runtime/cli/copies.py": "progress that a person reads",
    "runtime/durability/copies/store_marks.py": "time stamps",
    "runtime/durability/run_row.py": "time stamps",
    "runtime/durability/store_access.py": "the network's time, which does not stand still",
    "runtime/mcp/connection.py": "the network's time",
    "runtime/models/openai_events.py": "the network's time",
    "runtime/models/wire/aiohttp_transport.py": "the network's time",
    "runtime/models/wire/client.py": "the network's time",
    "runtime/data/events.py": "time stamps",
    "runtime/run/run_progress.py": "time stamps",
    "runtime/services.py": "the end of the process, which must come",
    "runtime/stores/postgres/client.py": "a thread that blocks",
    "runtime/stores/postgres/listening.py": "a thread that blocks",
    "runtime/stores/postgres/store.py": "a thread that blocks",
    "runtime/stores/sqlite/listening.py": "a thread that blocks",
    "runtime/stores/sqlite/owners.py": "a thread that blocks",
    "runtime/stores/sqlite/state.py": "the time that processes share",
    "runtime/stores/sqlite/store.py": "a thread that blocks",
    "runtime/stores/sqlite/tables.py": "how long a step of a prune may take",
    "runtime/stores/store_thread.py": "a thread that blocks",
    "runtime/system/loop_bridge.py": "a thread that blocks",
    "runtime/system/monitor.py": "how often the log warns of what has taken real time",
    "runtime/system/workers.py": "threads that block, and the end of the process, which must come",
}
REAL_ROOMS = {"runtime/cluster": "the time of machines that may be gone: it must not stand still"}
FORBIDDEN = {
    "asyncio": {"sleep", "timeout", "timeout_at", "wait_for"},
    "time": {"sleep", "time", "monotonic", "time_ns", "monotonic_ns"},
}


def real_time(path):
    """The lines of a file that wait for the real time, or read it.

    `perf_counter` measures, which is free; `asyncio.sleep(0)` waits for no time.
    """
    tree = ast.parse(path.read_text())
    no_time = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and [ast.unparse(arg) for arg in node.args] == ["0"]
    }
    no_time |= {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "asyncio.timeout"
        and [ast.unparse(arg) for arg in node.args] == ["None"]
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in FORBIDDEN.get(node.value.id, ())
            and id(node) not in no_time
        ):
            yield node.lineno
        elif (
            isinstance(node, ast.ImportFrom)
            and not node.level
            and {alias.name for alias in node.names} & FORBIDDEN.get(node.module, set())
        ):
            yield node.lineno


def test_what_waits_takes_the_systems_clock():
    found = {
        str(path.relative_to(ROOT)): [*real_time(path)]
        for room in ("actors", "runtime")
        for path in (ROOT / room).rglob("*.py")
    }
    meant = {*REAL, *(name for name in found for room in REAL_ROOMS if name.startswith(f"{room}/"))}
    assert {name: lines for name, lines in found.items() if lines and name not in meant} == {}
    assert [name for name in REAL if not found.get(name)] == [], "in the list without a need"


def busy():
    return ModelError("busy", kind="rate_limit", retryable=True)


def retrying():
    return RetryModel(
        ScriptedModel([busy(), "at last"]), backoff=Backoff(initial=60, maximum=60, jitter=0)
    )


MODELS = {
    "RetryModel": retrying,
    "LimitedModel": lambda: LimitedModel(limited_once(), requests_per_minute=1),
    "FailoverModel": lambda: FailoverModel(
        [ScriptedModel([ModelError("gone", kind="other")]), retrying()]
    ),
    "ScriptedModel": lambda: ScriptedModel(["at last"], delay=60),
}


def limited_once():
    return ScriptedModel([lambda _request: Message.assistant("at last")] * 2)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("streaming", [False, True])
def test_models_find_the_clock_of_the_system_that_runs(run, until, name, streaming):
    clock = ManualClock()

    async def main():
        async with ActorSystem(clock=clock) as system:
            runner = Runner(
                ChatModelAgent(name="A", model=MODELS[name]()), system=system, streaming=streaming
            )
            if name == "LimitedModel":
                await runner.query("the first goes through at once")
            waiting = runner.query("go")
            await until(lambda: clock.pending)
            assert clock.pending == (60,)
            clock.advance(60)
            assert (await waiting).final_output == "at last"

    run(main())


def test_a_run_is_given_its_time_by_the_same_clock(run, until):
    clock = ManualClock()

    async def main():
        async with ActorSystem(clock=clock) as system:
            waiting = Runner(
                ChatModelAgent(name="A", model=ScriptedModel(["late"], delay=60)), system=system
            ).query("go", timeout=30)
            await until(lambda: len(clock.pending) == 2)
            clock.advance(30)
            assert (await waiting).status != "completed"
        await sleep(0)  # the system was left: the loop has its own time again

    run(main())


def test_a_deadline_ends_its_block_and_nothing_else(run):
    async def main():
        clock = ManualClock()
        async with Deadline(5, clock) as deadline:
            deadline.stop()
            clock.advance(100)
            await asyncio.sleep(0)
            deadline.start()
            clock.advance(4)
            await asyncio.sleep(0)
        deadline.start()
        assert clock.pending == ()
        assert not deadline.expired
        with pytest.raises(TimeoutError):
            async with Deadline(5, clock) as deadline:
                asyncio.get_running_loop().call_soon(clock.advance, 5)
                await asyncio.get_running_loop().create_future()
        assert deadline.expired
        with pytest.raises(TimeoutError, match="its own"):
            async with Deadline(5, clock) as deadline:
                raise TimeoutError("its own")
        assert not deadline.expired
        assert asyncio.current_task().cancelling() == 0

    run(main())
