"""The worker threads of a system: as many as are needed, up to a bound; calls that do not return
are left behind.
"""

import asyncio
import contextlib
import threading
import weakref

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, Message, Runner, ScriptedModel, ToolCall
from offbook.runtime.system import workers as room
from offbook.runtime.system.blocking_call import BlockingCall


def threads_of(system):
    return [
        thread
        for thread in threading.enumerate()
        if thread.name.startswith(f"{system.name}-worker")
    ]


async def end(tasks, gate):
    """Cancel them, and let the threads go."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    gate.set()


def test_forty_calls_that_block_run_at_once(run):
    """They meet: with fewer threads than calls, none would get through."""
    meeting = threading.Barrier(40)

    async def main():
        async with ActorSystem() as system:
            assert (
                len(
                    set(
                        await asyncio.gather(
                            *(system.run_blocking(meeting.wait, 20) for _ in range(40))
                        )
                    )
                )
                == 40
            )

    run(main())


def test_a_full_pool_lets_calls_wait_and_says_how_many(run, until):
    gate, begun = threading.Event(), []

    def hold(number):
        begun.append(number)
        gate.wait(20)
        return number

    async def main():
        async with ActorSystem(worker_threads=3) as system:
            calls = [
                asyncio.ensure_future(system.run_blocking(hold, number)) for number in range(10)
            ]
            await until(lambda: len(begun) == 3)
            stats = system.stats()
            assert (stats.worker_threads, stats.waiting_calls) == (3, 7)
            for call in calls[7:]:
                call.cancel()  # they never begin
            await asyncio.gather(*calls[7:], return_exceptions=True)
            assert system.stats().waiting_calls == 4
            gate.set()
            assert await asyncio.gather(*calls[:7]) == list(range(7))
            assert sorted(begun) == list(range(7))
            assert len(threads_of(system)) <= 3
            await until(lambda: not system.stats().worker_threads)
            assert system.stats().waiting_calls == 0

    run(main())


def test_without_another_word_two_hundred_may_block_at_once(run):
    async def main():
        async with ActorSystem() as system:
            meeting = threading.Barrier(200)
            await asyncio.gather(*(system.run_blocking(meeting.wait, 20) for _ in range(200)))
            await asyncio.gather(*(system.run_blocking(int) for _ in range(300)))
            assert len(threads_of(system)) == 200

    run(main())


def test_threads_without_work_end_after_a_while(run, until, monkeypatch):
    monkeypatch.setattr(room, "_IDLE_SECONDS", 0.01)

    async def main():
        async with ActorSystem() as system:
            # A thread that is about to end may be given a call at this very moment.
            for _ in range(20):
                meeting = threading.Barrier(3)
                await asyncio.gather(*(system.run_blocking(meeting.wait, 20) for _ in range(3)))
                await until(lambda: not threads_of(system))
            for number in range(200):
                assert await system.run_blocking(lambda: number) == number  # noqa: B023 -- it is called before the next one

    run(main())


def test_a_call_that_was_given_up_takes_no_thread_from_others(run, until):
    gate, begun = threading.Event(), []

    def hold():
        begun.append(threading.current_thread())
        gate.wait(20)

    async def main():
        async with ActorSystem(worker_threads=2) as system:
            hung = [asyncio.ensure_future(system.run_blocking(hold)) for _ in range(2)]
            await until(lambda: len(begun) == 2)
            waiting = asyncio.ensure_future(system.run_blocking(threading.current_thread))
            await end(hung, threading.Event())
            assert await waiting not in begun
            meeting = threading.Barrier(2)
            await asyncio.gather(*(system.run_blocking(meeting.wait, 20) for _ in range(2)))
            assert len(threads_of(system)) == 4
            gate.set()
            await until(lambda: len(threads_of(system)) <= 3)
            assert (
                len(
                    set(
                        await asyncio.gather(
                            *(system.run_blocking(threading.get_ident) for _ in range(50))
                        )
                    )
                )
                <= 3
            )

    run(main())


def test_leaving_waits_for_calls_that_return_in_time(run, errors):
    gate, ended = threading.Event(), []

    def finish():
        gate.wait(20)
        ended.append(True)

    async def main():
        async with ActorSystem(stop_timeout=20) as system:
            begun = asyncio.Event()
            call = asyncio.ensure_future(system.run_named(finish, "finish", begun.set))
            await begun.wait()
            call.cancel()
            asyncio.get_running_loop().call_later(0.01, gate.set)
        assert ended == [True]
        assert threads_of(system) == []

    run(main())
    assert errors() == []


def test_leaving_waits_for_a_thread_that_has_its_last_result_still_to_deliver(run, monkeypatch):
    deliver = BlockingCall.deliver

    def late(call):
        room_to_leave.wait(20)
        deliver(call)

    monkeypatch.setattr(BlockingCall, "deliver", late)
    gate, room_to_leave = threading.Event(), threading.Event()

    async def main():
        async with ActorSystem(stop_timeout=20) as system:
            begun = asyncio.Event()
            call = asyncio.ensure_future(system.run_named(gate.wait, "finish", begun.set))
            await begun.wait()
            call.cancel()
            asyncio.get_running_loop().call_later(0.01, gate.set)
            opening = threading.Timer(0.05, room_to_leave.set)
            opening.start()
        assert threads_of(system) == []
        opening.join()

    run(main())


def test_leaving_names_what_does_not_return_and_leaves_it_behind(run, errors):
    gate = threading.Event()

    async def main():
        system = ActorSystem(stop_timeout=0.02)
        # A system may be entered again: what was left behind is not its own any more.
        for _ in range(2):
            async with system:
                begun = asyncio.Event()
                call = asyncio.ensure_future(
                    system.run_named(lambda: gate.wait(20), "charging the card", begun.set)
                )
                await begun.wait()
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
        async with system:
            assert system.stats().worker_threads == 0
            assert await system.run_blocking(lambda: "fine") == "fine"
            gate.set()
            assert await system.run_blocking(lambda: "fine") == "fine"

    run(main())
    assert [text.partition(" within")[0] for text in errors()] == [
        "charging the card has not returned from its thread"
    ] * 2


@pytest.mark.parametrize("raised", [StopIteration, GeneratorExit])
def test_what_no_future_can_hold_is_an_ordinary_failure(run, raised):
    def odd():
        raise raised

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(RuntimeError, match=raised.__name__) as caught:
                await system.run_blocking(odd)
            assert isinstance(caught.value.__cause__, raised)

    run(main())


def test_an_idle_thread_keeps_nothing_of_its_last_call_alive(run, until):
    class Thing:
        pass

    async def main():
        async with ActorSystem() as system:
            given = Thing()
            made = await system.run_blocking(lambda thing: Thing(), given)
            seen = [weakref.ref(given), weakref.ref(made)]
            del given, made
            await until(lambda: not any(ref() for ref in seen))
            assert len(threads_of(system)) == 1

    run(main())


def test_where_no_thread_can_be_started_the_error_is_the_callers(run, monkeypatch):
    async def main():
        async with ActorSystem() as system:
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", cannot)
                with pytest.raises(RuntimeError, match="can't start new thread"):
                    await system.run_blocking(int)
            meeting = threading.Event()
            busy = asyncio.ensure_future(system.run_blocking(meeting.wait, 20))
            await asyncio.sleep(0)
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", cannot)
                later = asyncio.ensure_future(system.run_blocking(threading.get_ident))
                await asyncio.sleep(0)
                meeting.set()
                assert await later  # made by the thread that there was
            await busy

    def cannot(thread):
        raise RuntimeError("can't start new thread")

    run(main())


def nested(depth, system):
    """An agent whose plain `def` tool waits for another such agent, and so on."""

    @tool
    def ask() -> str:
        """Ask the next one."""
        if depth == 0:
            return "the last"
        return Runner(nested(depth - 1, system), system=system).query("go").result(20).final_output

    class Said(ScriptedModel):
        async def generate(self, request):
            last = request.messages[-1]
            return (
                Message.assistant(last.text)
                if last.role == "tool"
                else Message.assistant("", [ToolCall("c", "ask", "{}")])
            )

    return ChatModelAgent(name=f"a{depth}", model=Said(), tools=[ask])


@pytest.mark.parametrize(("runs", "depth", "threads"), [(20, 1, 4), (4, 4, 2), (1, 3, 1)])
def test_threads_that_wait_for_runs_of_their_own_system_do_not_use_up_the_others(
    run, runs, depth, threads
):
    async def main():
        async with ActorSystem(worker_threads=threads) as system:
            results = await asyncio.wait_for(
                asyncio.gather(*(_play(nested(depth, system), system) for _ in range(runs))), 30
            )
            assert [result.final_output for result in results] == ["the last"] * runs
            assert await system.run_blocking(lambda: "well") == "well"
            assert system.workers._lent == 0

    run(main())


@pytest.mark.slow
def test_two_hundred_runs_whose_tools_wait_for_other_runs_are_done(run):
    async def main():
        async with ActorSystem() as system:
            results = await asyncio.wait_for(
                asyncio.gather(*(_play(nested(1, system), system) for _ in range(300))), 60
            )
            assert [result.final_output for result in results] == ["the last"] * 300

    run(main())


def test_beyond_a_bound_a_tool_that_waits_is_refused_with_what_to_write(run, monkeypatch):
    monkeypatch.setattr(room, "_MOST_LENT", 2)

    async def main():
        async with ActorSystem(worker_threads=1) as system:
            return await asyncio.wait_for(_play(nested(5, system), system), 30)

    result = run(main())
    assert "Make the tool `async def` and write `await run`" in result.final_output


async def _play(agent, system):
    return await Runner(agent, system=system).query("go")
