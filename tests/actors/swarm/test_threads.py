"""Where Swarm may be called, where what it calls runs, and that nothing is left of it."""

import asyncio
import gc
import logging
import signal
import sqlite3
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from offbook.actors.swarm import Agent, Swarm
from offbook.runtime import Actor, ActorSystem, RunCancelled, ThreadActor
from offbook.runtime.actor import current as directory
from offbook.runtime.run import run_factory
from tests.doubles.swarm_clients import USER, AsyncScriptedClient, ScriptedClient, call, reply

MANY = 100


def here():
    return threading.get_ident()


async def there():
    return threading.get_ident()


class Endless:
    """A client for any number of runs: it has a function called once, and then says what that
    returned.
    """

    def __init__(self, meet=lambda: None):
        self.chat = self.completions = self
        self.meet = meet

    def create(self, *, messages, **request):
        self.meet()
        last = messages[-1]
        return ScriptedClient(
            last["content"] if last["role"] == "tool" else reply("", call("function"))
        ).create(**request)


def last_of(response):
    return response.messages[-1]["content"]


def in_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


def thread_of_functions(client):
    """Run it here.

    Returns where the client was called, and where two functions, of which one is a coroutine
    function.
    """
    client.left.extend([reply("", call("here"), call("there")), "done"])
    response = Swarm(client).run(Agent(functions=[here, there]), USER)
    return set(client.threads), *(
        int(message["content"]) for message in response.messages if message["role"] == "tool"
    )


@pytest.mark.parametrize("called", [lambda function, *args: function(*args), in_thread])
def test_functions_and_a_synchronous_client_are_called_in_the_thread_of_the_caller(called):
    def main():
        client, sync, coroutine = thread_of_functions(ScriptedClient())
        return client == {sync} == {threading.get_ident()} and coroutine != threading.get_ident()

    assert called(main)


def test_what_belongs_to_the_caller_s_thread_can_be_used():
    database = sqlite3.connect(":memory:")
    database.execute("create table purchases (item)")

    def buy(item):
        database.execute("insert into purchases values (?)", (item,))

    Swarm(ScriptedClient(reply("", call("buy", item="tea")), "done")).run(
        Agent(functions=[buy]), USER
    )
    assert database.execute("select item from purchases").fetchall() == [("tea",)]
    database.close()


@pytest.mark.parametrize("kind", [ScriptedClient, AsyncScriptedClient])
@pytest.mark.parametrize("with_system", [False, True])
def test_it_may_be_called_where_an_event_loop_is_running(kind, with_system, run):
    async def main():
        client, sync, coroutine = thread_of_functions(kind())
        assert sync == threading.get_ident() != coroutine
        assert client == {sync if kind is ScriptedClient else coroutine}

    async def in_system():
        async with ActorSystem():
            await main()

    run(in_system() if with_system else main())


def test_arun_blocks_neither_the_loop_nor_leaves_it(run):
    async def main():
        client = ScriptedClient(reply("", call("here"), call("there")), "done")
        response = await Swarm(client).arun(Agent(functions=[here, there]), USER)
        sync, coroutine = (
            int(message["content"]) for message in response.messages if message["role"] == "tool"
        )
        assert coroutine == threading.get_ident()
        assert threading.get_ident() not in {sync, *client.threads}

    run(main())


def test_a_hundred_callers_are_at_work_at_once():
    """Each waits for all the others in its client and in its function, and none for a thread."""
    meeting = threading.Barrier(MANY, timeout=30)
    swarm = Swarm(Endless(meeting.wait))

    def function():
        meeting.wait()
        return threading.current_thread().name

    def one():
        return (
            last_of(swarm.run(Agent(functions=[function]), USER)) == threading.current_thread().name
        )

    with ThreadPoolExecutor(MANY) as pool:
        assert all(pool.map(lambda _: one(), range(MANY)))


def test_a_hundred_runs_are_under_way_at_once_on_one_loop(run):
    async def main():
        waiting, all_here = 0, asyncio.Event()

        async def function(context_variables):
            nonlocal waiting
            waiting += 1
            if waiting == MANY:
                all_here.set()
            await all_here.wait()
            return context_variables["number"]

        swarm = Swarm(Endless())
        runs = [
            swarm.arun(Agent(functions=[function]), USER, {"number": number})
            for number in range(MANY)
        ]
        assert [last_of(response) for response in await asyncio.gather(*runs)] == [
            str(number) for number in range(MANY)
        ]

    run(main())


def test_runs_with_a_synchronous_client_share_the_threads_of_one_swarm(run):
    async def main():
        before = threading.active_count()
        most = 0

        def look():
            nonlocal most
            most = max(most, threading.active_count() - before)

        swarm = Swarm(Endless(look))
        await asyncio.gather(*[swarm.arun(Agent(functions=[]), USER) for _ in range(MANY)])
        assert 0 < most < MANY / 2

    run(main())


def ask(text):
    """A swarm whose client says that."""
    return Swarm(ScriptedClient(text)), Agent(), USER


def test_a_function_may_call_swarm_again():
    def blocking():
        swarm, *given = ask("inner")
        return last_of(swarm.run(*given))

    async def coroutine():
        swarm, *given = ask("inner")
        return last_of(await swarm.arun(*given))

    async def blocking_its_loop():
        swarm, *given = ask("inner")
        return last_of(swarm.run(*given))

    functions = [blocking, coroutine, blocking_its_loop]
    response = Swarm(
        ScriptedClient(reply("", *(call(one.__name__) for one in functions)), "done")
    ).run(Agent(functions=functions), USER)
    assert [message["content"] for message in response.messages] == [
        "",
        "inner",
        "inner",
        "inner",
        "done",
    ]


def test_an_actor_may_call_swarm(run):
    class Loop(Actor):
        def on_receive(self, message):
            swarm, *given = ask("said")
            return last_of(swarm.run(*given))

    class Thread(Loop, ThreadActor):
        pass

    async def main():
        async with ActorSystem(slow_handler=60) as system:
            return [await system.spawn(kind).request("go") for kind in (Loop, Thread)]

    assert run(main()) == ["said", "said"]


def test_a_function_may_run_an_event_loop_of_its_own():
    def function():
        return asyncio.run(there())

    assert last_of(Swarm(Endless()).run(Agent(functions=[function]), USER)) == str(
        threading.get_ident()
    )


def test_whoever_is_cancelled_takes_the_run_along(run):
    async def main():
        at_work, ended = asyncio.Event(), asyncio.Event()

        async def function():
            at_work.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        swarm = Swarm(Endless())
        task = asyncio.create_task(swarm.arun(Agent(functions=[function]), USER))
        await at_work.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended.is_set()
        assert all(not system.roots for system in run_factory._systems.values())

    run(main())


def test_an_interrupt_from_the_keyboard_while_a_coroutine_is_awaited_ends_the_run():
    ended = threading.Event()

    async def function():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        Swarm(Endless()).run(Agent(functions=[function]), USER)
    assert ended.is_set()


def test_it_lives_in_the_system_that_there_is():
    with ActorSystem.in_thread() as system:
        client, sync, coroutine = thread_of_functions(AsyncScriptedClient())
        assert client == {coroutine} == {system.dispatcher.thread}
        assert sync == threading.get_ident()


@pytest.mark.parametrize("waits_in", ["coroutine", "thread"])
def test_a_run_whose_system_is_left_is_cancelled(waits_in):
    at_work, go_on = threading.Event(), threading.Event()

    async def coroutine():
        at_work.set()
        await asyncio.Event().wait()

    def thread():
        at_work.set()
        go_on.wait()

    def main():
        Swarm(ScriptedClient(reply("", call(waits_in)), "done")).run(
            Agent(functions=[coroutine, thread]), USER
        )

    with ThreadPoolExecutor(1) as pool:
        with ActorSystem.in_thread():
            called = pool.submit(main)
            at_work.wait()
        go_on.set()
        with pytest.raises(RunCancelled):
            called.result()


def test_nothing_is_left_of_a_run(caplog):
    # Pytest retains each record, with its traceback.
    caplog.set_level(logging.CRITICAL, logger="offbook.run")

    def main():
        agent, swarm = (
            Agent(functions=[here]),
            Swarm(ScriptedClient(reply("", call("here")), "done")),
        )
        swarm.run(agent, USER)
        with pytest.raises(ZeroDivisionError):
            Swarm(ScriptedClient(reply("", call("fail")))).run(Agent(functions=[fail]), USER)
        system = directory.current_system()
        assert not system.roots
        assert not [thread for thread in threading.enumerate() if "worker" in thread.name]
        return weakref.ref(swarm)

    def fail():
        return 1 / 0

    left = main()
    gc.collect()
    assert left() is None
