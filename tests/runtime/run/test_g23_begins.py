"""G23: what was asked for begins, or the caller is told why not."""

import asyncio
import gc
import logging
import threading
import warnings

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointNotFound,
    MemoryStore,
    Runner,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from tests.doubles.agents import PlannedAgent

SECONDS = 30


def paying(done):
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        done.set()
        return "paid"

    replies = [ToolCalls(("pay", {})), "done"]
    return ChatModelAgent(name="A", model=ScriptedModel(replies), tools=[pay])


def saying(done):
    async def set_it(_context):
        done.set()

    return PlannedAgent("A", "hello", set_it)


ASKED = {
    "detached": lambda runner: runner.query("go", detached=True),
    "named": lambda runner: runner.query("go", run_id="r"),
    "in a session": lambda runner: runner.session("s").query("go", detached=True),
}
ANSWERED = {
    "approve": lambda runner, result: runner.approve(result.interrupts[0]),
    "deny": lambda runner, result: runner.deny(result.interrupts[0]),
}


def in_a_thread(function):
    """What a function returns in a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("where", ["default", "system"])
@pytest.mark.parametrize("asked", ASKED)
def test_g23_a_detached_or_named_run_begins_in_a_thread_without_a_loop(where, asked):
    done = threading.Event()
    with ActorSystem.in_thread() as system:
        runner = Runner(
            saying(done), store=MemoryStore(), system=system if where == "system" else None
        )
        run_id = in_a_thread(lambda: ASKED[asked](runner).id)  # the Run itself is dropped
        assert done.wait(SECONDS)
        assert runner.attach(run_id).result().status == "completed"


@pytest.mark.parametrize("answer", ["approve", "deny"])
def test_g23_an_answer_is_taken_in_a_thread_without_a_loop(answer):
    done = threading.Event()
    runner = Runner(paying(done), store=MemoryStore(), durability="step", keep=600.0)
    asked = runner.query("go")
    result = asked.result()
    assert result.status == "interrupted"
    in_a_thread(lambda: ANSWERED[answer](runner, result).id)
    assert runner.attach(asked.id, wait=True).result().status == "completed"
    assert done.is_set() == (answer == "approve")


def test_g23_a_run_that_is_resumed_in_a_thread_without_a_loop_begins():
    done = threading.Event()

    async def ask(context):
        if context.resume is None:
            return context.interrupt("what?")
        done.set()
        return None

    runner = Runner(PlannedAgent("A", ask), store=MemoryStore())
    result = runner.query("go", checkpoint_id="c").result()
    assert result.status == "interrupted"
    in_a_thread(lambda: runner.resume("c", data=1).id)
    assert done.wait(SECONDS)


def test_g23_a_run_that_was_never_started_warns_when_it_is_collected():
    runner = Runner(PlannedAgent("A", "hello"), store=MemoryStore())
    with pytest.warns(
        RuntimeWarning, match=r"run \w+ of 'A' was never started, .*Call its result\(\)"
    ):
        runner.query("go")  # and it is dropped


def test_g23_runs_that_were_started_do_not_warn(run):
    runner = Runner(PlannedAgent("A", "hello"), store=MemoryStore())

    async def main():
        runner.query("go")
        await runner.query("go")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main())
        runner.query("go").result()
        runner.query("go").start()
        list(runner.query("go"))
        gc.collect()


@pytest.mark.parametrize("on", ["a loop", "no loop"])
def test_g23_why_a_run_did_not_begin_is_logged_if_its_caller_has_dropped_it(run, until, caplog, on):
    runner = Runner(PlannedAgent("A", "hello"), store=MemoryStore())

    def said():
        gc.collect()  # from Python 3.13 on, the error's traceback holds the run in a circle
        return [
            record
            for record in caplog.records
            if record.levelno == logging.ERROR and "was not started" in record.getMessage()
        ]

    async def on_a_loop():
        runner.resume("nope", data=1)
        async with asyncio.timeout(SECONDS):
            await until(said)

    if on == "a loop":
        run(on_a_loop())
    else:
        runner.resume("nope", data=1)
        run(until(said))
    assert len(said()) == 1
    assert "nope" in said()[0].getMessage()


def test_g23_why_a_run_did_not_begin_is_raised_once_if_its_caller_has_kept_it(caplog):
    runner = Runner(PlannedAgent("A", "hello"), store=MemoryStore())
    with pytest.raises(CheckpointNotFound):
        runner.resume("nope", data=1).result()
    gc.collect()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_g23_a_system_that_is_stopped_is_an_error_where_the_run_is_asked_for():
    with ActorSystem.in_thread() as system:
        runner = Runner(PlannedAgent("A", "hello"), system=system)
    with pytest.raises(UsageError, match="stopped"):
        runner.query("go", detached=True)


class Alarm(BaseException):
    """What a signal handler or a library for time limits raises."""


@pytest.mark.parametrize("error", [Alarm, SystemExit, TimeoutError, KeyboardInterrupt])
@pytest.mark.parametrize("how", ["result", "for"])
def test_an_exception_that_leaves_the_wait_for_a_run_ends_it(error, how):
    raised_by_alarm(error, how, detached=False)


@pytest.mark.parametrize("error", [Alarm, KeyboardInterrupt])
def test_an_exception_that_leaves_the_wait_for_a_detached_run_does_not_end_it(error):
    raised_by_alarm(error, "result", detached=True)


def raised_by_alarm(error, how, *, detached):
    """A signal handler raises in the main thread, while it waits for a run."""
    import signal

    begun, ended, gate, raised = (threading.Event() for _ in range(4))

    async def wait(_context):
        begun.set()
        try:
            while not gate.is_set():
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    def handle(_number, frame):
        if (
            frame.f_code is threading.Event.wait.__code__
            or frame.f_code is threading.Condition.wait.__code__
        ):
            raised.set()
            raise error("enough")

    def kill():
        begun.wait(SECONDS)
        while not raised.wait(0.01):
            signal.pthread_kill(main, signal.SIGUSR1)

    runner = Runner(PlannedAgent("A", wait))
    run = runner.query("go", detached=detached)
    former = signal.signal(signal.SIGUSR1, handle)
    main = threading.main_thread().ident
    killer = threading.Thread(target=kill)
    try:
        with pytest.raises(error, match="enough"):
            killer.start()
            if how == "result":
                run.result()
            else:
                events = iter(run)
                for _event in events:
                    pass
    finally:
        killer.join()
        signal.signal(signal.SIGUSR1, former)
    if detached:
        gate.set()
        assert run.result().status == "completed"
    else:
        assert ended.wait(SECONDS)
        assert run.result().status == "cancelled"


def test_a_wait_that_runs_out_of_its_own_time_leaves_the_run(run):
    gate = threading.Event()

    async def wait(_context):
        while not gate.is_set():
            await asyncio.sleep(0.01)

    asked = Runner(PlannedAgent("A", wait)).query("go")
    with pytest.raises(TimeoutError, match="has not ended within"):
        asked.result(timeout=0.05)
    gate.set()
    assert asked.result().status == "completed"
