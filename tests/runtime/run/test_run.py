"""A run from outside: iterated, awaited, blocked on, left, from every kind of code."""

import asyncio
import subprocess
import sys
import threading

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Message,
    RunCancelled,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from offbook.runtime.run import run_factory


class Counter(Agent):
    """Says the numbers, as many as it is told, and notes how far it came."""

    def __init__(self, most, name="counter"):
        super().__init__(name=name)
        self.most = most
        self.said = []

    async def run(self, input, context):
        for number in range(self.most):
            self.said.append(number)
            yield AgentEvent.say(str(number))


class Waiting(Agent):
    """Waits until somebody lets it go on, or cancels it."""

    def __init__(self, name="waiting"):
        super().__init__(name=name)
        self.started = threading.Event()
        self.ended = []

    async def run(self, input, context):
        try:
            yield AgentEvent.say("here")
            self.started.set()
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            self.ended.append(type(error).__name__)
            raise


def texts(events):
    return [event.message.text for event in events if event.message is not None]


def test_its_events_come_one_by_one(run):
    async def main():
        return [event async for event in Runner(Counter(3)).query("go")]

    events = run(main())
    assert texts(events) == ["0", "1", "2"]
    assert [event.seq for event in events] == [1, 2, 3]
    assert {event.agent_name for event in events} == {"counter"}
    assert (
        len({event.run_id for event in events})
        == len({event.invocation_id for event in events})
        == 1
    )


def test_awaiting_it_gives_the_result(run):
    async def main():
        a_run = Runner(Counter(2)).query("go")
        assert a_run.status is RunStatus.RUNNING
        result = await a_run
        assert a_run.status == result.status == "completed"
        assert (await a_run) is result
        return result

    result = run(main())
    assert result.final_message == Message.assistant("1")
    assert result.final_output == "1"
    assert texts(result.events) == ["0", "1"]
    assert result.last_agent == "counter"
    assert result.error is None
    result.raise_for_error()


def test_it_blocks_a_program_without_a_loop():
    a_run = Runner(Counter(2)).query("go")
    assert a_run.status == "pending"
    assert a_run.result().final_output == "1"
    assert texts(Runner(Counter(200)).query("go")) == [str(number) for number in range(200)]


def test_in_a_coroutine_blocking_is_refused_with_what_to_write_instead(run):
    async def main():
        a_run = Runner(Counter(2)).query("go")
        with pytest.raises(UsageError, match="await run"):
            a_run.result()
        with pytest.raises(UsageError, match="async for event in run"):
            list(a_run)
        await a_run

    run(main())


def test_result_gives_up_after_its_timeout_and_the_run_goes_on():
    agent = Waiting()
    a_run = Runner(agent).query("go")
    with pytest.raises(TimeoutError, match="and continues"):
        a_run.result(timeout=0.05)
    assert a_run.status == "running"
    a_run.cancel()
    assert a_run.result().status == "cancelled"


def test_many_threads_use_one_runner_at_once():
    runner = Runner(Counter(20))
    results = []

    def work(number):
        for _ in range(5):
            results.append(texts(runner.query(str(number))) == [str(one) for one in range(20)])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 40


def test_one_runner_serves_several_loops_one_after_the_other(run):
    runner = Runner(Counter(2))

    async def main():
        return (await runner.query("go")).final_output

    assert [run(main()) for _ in range(3)] == ["1", "1", "1"]
    assert len([loop for loop in run_factory._systems if loop.is_closed()]) == 1


def test_a_run_in_the_system_of_another_thread_is_awaited_and_iterated_from_here(run):
    with ActorSystem.in_thread() as system:
        runner = Runner(Counter(150), system=system)

        async def main():
            assert texts([event async for event in runner.query("go")]) == [
                str(number) for number in range(150)
            ]
            return (await runner.query("go")).final_output

        assert run(main()) == "149"
        assert runner.query("go").result().final_output == "149"
        assert texts(runner.query("go"))[-1] == "149"


def test_leaving_the_iteration_cancels_the_run(run):
    async def main():
        agent = Waiting()
        a_run = Runner(agent).query("go")
        async for _ in a_run:
            break
        result = await a_run
        assert result.status == "cancelled"
        assert agent.ended in (["CancelledError"], ["GeneratorExit"])
        with pytest.raises(RunCancelled, match="gone away"):
            result.raise_for_error()

    run(main())


def test_leaving_the_iteration_in_a_thread_cancels_the_run():
    agent = Waiting()
    a_run = Runner(agent).query("go")
    for _ in a_run:
        break
    assert a_run.result().status == "cancelled"


def test_a_run_that_nobody_looks_at_comes_to_its_end(run):
    async def main():
        agent = Counter(5000)
        async with ActorSystem() as system:
            Runner(agent, system=system, event_buffer=4).query("go")
            await system.drain(5)
        assert len(agent.said) == 5000

    run(main())


def test_closing_it_cancels_and_waits(run):
    async def main():
        agent = Waiting()
        a_run = Runner(agent).query("go")
        await a_run.aclose()
        assert a_run.status == "cancelled"
        await a_run.aclose()

    run(main())


def test_it_ends_at_its_timeout_with_one_error_event(run):
    async def main():
        agent = Waiting()
        events = [event async for event in Runner(agent).query("go", timeout=0.02)]
        assert [type(event.error) for event in events] == [type(None), RunCancelled]
        assert "0.02 s" in str(events[-1].error)
        assert events[-1].error.run == events[-1].run_id
        assert agent.ended == ["CancelledError"]

    run(main())


def test_what_was_cancelled_stays_cancelled_for_all_under_it(run):
    async def main():
        agents = [Waiting(f"w{number}") for number in range(3)]
        a_run = Runner(Parallel(name="all", sub_agents=agents)).query("go")
        seen = 0
        async for _ in a_run:
            seen += 1
            if seen == 3:
                handle = a_run.cancel()
        result = await a_run
        assert result.status == "cancelled"
        assert "cancel() was called" in str(result.error)
        assert await handle is True
        assert [agent.ended for agent in agents] == [["CancelledError"]] * 3

    run(main())


def test_leaving_the_system_ends_its_runs(run):
    async def main():
        agent = Waiting()
        async with ActorSystem() as system:
            a_run = Runner(agent, system=system).query("go")
            await asyncio.to_thread(agent.started.wait)
        result = await a_run
        assert result.status == "cancelled"
        assert agent.ended == ["CancelledError"]

    run(main())


def test_a_system_that_is_not_running_is_said_where_the_run_is_awaited(run):
    async def main():
        async with ActorSystem() as system:
            pass
        with pytest.raises(UsageError, match="stopped"):
            await Runner(Counter(1), system=system).query("go")

    run(main())


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"timeout": 0}, "timeout must be .* above 0, .* got 0"),
        ({"options": 3}, "3"),
        ({"options": [3]}, "3"),
    ],
)
def test_bad_options_are_refused_at_once(options, what):
    with pytest.raises((UsageError, TypeError), match=what):
        Runner(Counter(1)).query("go", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"event_buffer": 0},
        {"max_transfers": -1},
        {"durability": "x"},
        {"system": 3},
        {"hooks": object()},
    ],
    ids=lambda options: next(iter(options)),
)
def test_bad_settings_of_a_runner_are_refused_at_once(options):
    with pytest.raises(UsageError):
        Runner(Counter(1), **options)


def test_messages_may_be_a_text_a_message_or_several(run):
    async def main():
        model = ScriptedModel(["a", "b", "c"])
        runner = Runner(ChatModelAgent(name="a", model=model))
        for given in ("hi", Message.user("hi"), [Message.user("hi"), Message.assistant("yes")]):
            await runner.run(given)
        assert [len(request.messages) for request in model.requests] == [1, 1, 2]
        with pytest.raises(UsageError, match="must contain Messages"):
            runner.run([{"role": "user"}])

    run(main())


def test_context_variables_of_the_caller_reach_the_agent(run):
    import contextvars

    tenant = contextvars.ContextVar("tenant", default="nobody")

    class Asks(Agent):
        async def run(self, input, context):
            yield AgentEvent.say(tenant.get())

    async def main():
        tenant.set("ada")
        return (await Runner(Asks(name="a")).query("go")).final_output

    assert run(main()) == "ada"


def test_whoever_is_cancelled_while_awaiting_it_takes_it_along(run):
    async def main():
        agent = Waiting()
        a_run = Runner(agent).query("go")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(a_run, 0.02)
        assert (await a_run).status == "cancelled"
        assert agent.ended == ["CancelledError"]

    run(main())


def test_the_events_of_an_agent_tool_that_nobody_sees_leave_no_gap(run):
    async def main():
        inner = ChatModelAgent(name="inner", description="i", model=ScriptedModel(["in"]))
        outer = ChatModelAgent(
            name="outer",
            model=ScriptedModel([ToolCalls(inner={"request": "x"}), "out"]),
            tools=[inner.as_tool()],
        )
        events = [event async for event in Runner(outer).query("go")]
        assert [event.seq for event in events] == [1, 2, 3]

    run(main())


LEFT = """
import asyncio
from offbook.actors import Agent, Parallel
from offbook.runtime import AgentEvent, Runner

class Waits(Agent):
    async def run(self, input, context):
        try:
            yield AgentEvent.say("x")
            await asyncio.sleep(100)
        finally:
            print("closed")

async def main():
    run = Runner(Parallel(name="p", sub_agents=[Waits(name="a"), Waits(name="b")])).query("x")
    await asyncio.sleep(0.01)
    return run

print(asyncio.run(main()).status.value)
"""


def test_a_program_that_ends_while_a_run_is_under_way_ends_it_without_a_word():
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-c", LEFT],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert ended.stdout.split()[:2] == ["closed", "closed"]
    assert ended.stderr == ""


def test_a_cancel_that_comes_too_late_says_so(run):
    async def main():
        a_run = Runner(Counter(1)).query("go")
        await a_run
        assert await a_run.cancel() is False
        with pytest.raises(UsageError, match="immediate"):
            a_run.cancel("some day")

    run(main())
    a_run = Runner(Counter(1)).query("go")
    a_run.result()
    assert a_run.cancel().result() is False
