"""A system inside of somebody else's program: thread pools, other event loops, a FastAPI service
over real HTTP, a real Jupyter kernel.
"""

import asyncio
import concurrent.futures
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvloop

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    AskTimeout,
    HandlerCancelled,
    Restart,
    ThreadActor,
    UsageError,
)
from tests.doubles.actors import Echo
from tests.doubles.notebook import notebook

PROGRAMS = Path(__file__).parents[2] / "programs"
SECONDS = 50  # a program that takes longer hangs


class Doubler(Actor):
    async def on_receive(self, number):
        await asyncio.sleep(0)
        return await self.spawn(Echo).request(2 * number)


class ThreadDoubler(ThreadActor):
    def on_receive(self, number):
        return 2 * number


class Counter(Actor):
    """Counts, and is upset if anybody does it at the same time."""

    def __init__(self):
        super().__init__()
        self.count = 0

    async def on_receive(self, step):
        before = self.count
        await asyncio.sleep(0)
        self.count = before + step
        return self.count


# --- thread pools ---


def test_very_many_threads_ask_one_system():
    with ActorSystem.in_thread() as system, concurrent.futures.ThreadPoolExecutor(32) as pool:
        refs = [system.spawn(kind) for kind in (Doubler, ThreadDoubler)]
        counter = system.spawn(Counter)
        numbers = range(2000)
        for ref in refs:
            assert list(pool.map(ref.ask, numbers)) == [2 * number for number in numbers]
        assert sorted(pool.map(lambda _number: counter.ask(1), numbers)) == [
            number + 1 for number in numbers
        ]


def test_threads_of_a_pool_ask_the_system_of_the_loop_that_they_belong_to(run):
    async def main():
        loop = asyncio.get_running_loop()
        async with ActorSystem() as system:
            counter = system.spawn(Counter)
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                counts = await asyncio.gather(
                    *(loop.run_in_executor(pool, counter.ask, 1) for _ in range(1000))
                )
            assert sorted(counts) == list(range(1, 1001))
            with pytest.raises(UsageError, match="request"):
                counter.ask(1)

    run(main())


def test_threads_spawn_and_stop_at_the_same_time():
    def work(number):
        ref = system.spawn(Doubler, name=f"worker-{number}")
        return ref.ask(number), ref.stop()

    with ActorSystem.in_thread() as system:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert list(pool.map(work, range(1000))) == [
                (2 * number, True) for number in range(1000)
            ]
        assert system.stats().actors == 0


@pytest.mark.slow
def test_many_loops_in_many_threads_request_from_one_system(run):
    def work(number):
        async def main():
            return await asyncio.gather(*(ref.request(number) for _ in range(20)))

        return run(main())

    with ActorSystem.in_thread() as system, concurrent.futures.ThreadPoolExecutor(8) as pool:
        ref = system.spawn(Doubler)
        assert list(pool.map(work, range(50))) == [[2 * number] * 20 for number in range(50)]


def test_each_of_many_threads_has_a_system_on_a_loop_of_its_own(run):
    def work(number):
        async def main():
            async with ActorSystem(f"system-{number}") as system:
                everybody.wait(10)
                assert Echo.start().path in str(system.tree())
                return await system.spawn(Doubler).request(number)

        return run(main())

    everybody = threading.Barrier(8)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [2 * number for number in range(8)]


# --- other event loops ---


class Failing(Actor):
    def on_receive(self, message):
        if message == "fail":
            raise ZeroDivisionError
        return message


class Waiting(Actor):
    def __init__(self):
        super().__init__()
        self.under_way = asyncio.Event()

    async def on_receive(self, message):
        self.under_way.set()
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    "loop_factory", [uvloop.new_event_loop, asyncio.SelectorEventLoop], ids=["uvloop", "selector"]
)
def test_all_of_it_works_on_another_loop(run, loop_factory):
    async def main():
        async with ActorSystem() as system:
            assert system.loop is asyncio.get_running_loop()
            assert await asyncio.gather(
                *(system.spawn(Doubler).request(number) for number in range(100))
            ) == [2 * number for number in range(100)]
            assert await system.spawn(ThreadDoubler).request(21) == 42
            assert await system.run_blocking(threading.get_ident) != threading.get_ident()
            echo = system.spawn(Echo)
            assert await asyncio.to_thread(echo.ask, "from a thread") == "from a thread"
            assert await echo.ask("a future", block=False) == "a future"
            failing = system.spawn(Failing, supervision=Restart())
            failing.tell("fail")
            assert await failing.request("!", timeout=10) == "!"
            waiting = system.spawn(Waiting)
            with pytest.raises(AskTimeout):
                await waiting.request("go", timeout=0.01)
            waiting.cancel()
            cancelled = asyncio.ensure_future(waiting.request("again"))
            await asyncio.sleep(0)
            waiting._cell.actor.under_way.clear()
            await waiting._cell.actor.under_way.wait()
            waiting.cancel()
            with pytest.raises(HandlerCancelled):
                await cancelled
            left = asyncio.ensure_future(waiting.request("last"))
            await asyncio.sleep(0)
            assert await echo.stop() is True
            assert (await system.drain(0)).busy == (waiting.path,)
        with pytest.raises(ActorDeadError):
            await left

    run(main(), loop_factory)


# --- a service ---


class Service:
    """A server in a process of its own, what it says, and a way to speak to it."""

    def __init__(self, process):
        self.process = process
        self.said = queue.SimpleQueue()
        self.log = []
        self.readers = [
            threading.Thread(target=self._read_out),
            threading.Thread(target=self._read_log),
        ]
        for reader in self.readers:
            reader.start()
        self.url = f"http://127.0.0.1:{self.hear('port')}"
        self.wait_for_log("startup complete")

    def _read_out(self):
        for line in self.process.stdout:
            self.said.put(line.strip())
        self.said.put(None)

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)
            self.said.put("log")

    def hear(self, word):
        """Wait until it says that, and return the rest of the line."""
        while True:
            line = self._next_said()
            if line.startswith(word + " "):
                return line.removeprefix(word + " ")

    def wait_for_log(self, text):
        while not any(text in line for line in self.log):
            self._next_said()

    def _next_said(self):
        line = self.said.get(timeout=SECONDS)
        if line is None:
            self.readers[1].join(SECONDS)
            raise AssertionError("the service has ended: " + "".join(self.log))
        return line

    def open_the_gate(self):
        self.process.stdin.write("open\n")
        self.process.stdin.flush()


@contextmanager
def serving(loop, patience=0):
    command = [sys.executable, PROGRAMS / "http_service.py", loop, str(patience)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        service = Service(process)
        yield service
    finally:
        process.kill()
        process.wait()
        for reader in service.readers:
            reader.join()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def service(request):
    with serving(request.param) as service:
        yield service


def client_of(service):
    return httpx.AsyncClient(
        base_url=service.url,
        timeout=SECONDS,
        limits=httpx.Limits(max_connections=None),
        trust_env=False,
    )


def test_concurrent_requests_ask_actors(run, service):
    async def main():
        async with client_of(service) as client:
            counts = await asyncio.gather(
                *(client.get(path) for path in ["/count", "/count-in-thread"] * 25)
            )
            assert sorted(reply.json() for reply in counts) == list(range(1, 51))
            echoes = await asyncio.gather(*(client.get(f"/echo/{number}") for number in range(50)))
            assert [reply.json() for reply in echoes] == [str(number) for number in range(50)]
            assert (await client.get("/stats")).json() == {"Counter": 1}

    run(main())


def test_a_service_that_is_told_to_stop_answers_what_is_under_way_and_ends(run, service):
    async def main():
        async with client_of(service) as client:
            replies = [asyncio.ensure_future(client.get(f"/wait/{number}")) for number in range(20)]
            await asyncio.to_thread(lambda: [service.hear("waiting") for _ in replies])
            service.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(service.wait_for_log, "Shutting down")
            service.open_the_gate()
            done = await asyncio.gather(*replies)
            assert [(reply.status_code, reply.json()) for reply in done] == [
                (200, str(number)[::-1]) for number in range(20)
            ]

    run(main())
    assert service.hear("drained") == "True"
    assert service.hear("left") == "0"
    assert service.process.wait(SECONDS) == 0
    assert not any("Traceback" in line for line in service.log), "".join(service.log)


def test_a_service_that_is_told_to_stop_does_not_wait_for_ever(run):
    """With a request whose actor will never reply: the server gives it up, and nobody hangs."""

    async def main():
        async with client_of(service) as client:
            reply = asyncio.ensure_future(client.get("/wait/forever"))
            await asyncio.to_thread(service.hear, "waiting")
            service.process.send_signal(signal.SIGTERM)
            with pytest.raises(httpx.HTTPError):
                (await reply).raise_for_status()

    with serving("asyncio", patience=1) as service:
        run(main())
        assert service.hear("left") == "0"
        assert service.process.wait(SECONDS) == 0


def test_a_draining_service_refuses_new_work_and_ends_the_old(run, service):
    async def main():
        async with client_of(service) as client:
            old = asyncio.ensure_future(client.get("/wait/old"))
            await asyncio.to_thread(service.hear, "waiting")
            assert (await client.post("/drain")).status_code == 200
            refused = await client.get("/echo/new")
            assert refused.status_code == 503
            assert "accepts no new work" in refused.json()["error"]
            assert (await client.get("/count")).json() == 1
            service.open_the_gate()
            assert (await old).json() == "dlo"

    run(main())


# --- a notebook ---

DEFINITIONS = """
import asyncio
from offbook.runtime import Actor, ActorSystem, ThreadActor

class Ticker(Actor):
    def __init__(self):
        super().__init__()
        self.ticks = 0
    async def on_receive(self, message):
        await asyncio.sleep(0)
        self.ticks += 1
        return self.ticks

class Blocking(ThreadActor):
    def on_receive(self, message):
        return message * 2
"""


@pytest.mark.slow
def test_a_notebook_uses_a_system_across_its_cells(tmp_path):
    shown = notebook(
        [
            DEFINITIONS,
            "system = await ActorSystem('notebook').__aenter__()",
            "ref = system.spawn(Ticker); await ref.request('one')",
            "for _ in range(10): ref.tell('tick')",
            "await ref.request('last')",
            "await asyncio.gather(*(Ticker.start().request('x') for _ in range(5)))",
            "await system.spawn(Blocking).request('ab')",
            "ref.ask('blocking')",
            "await ref.proxy().ticks",
            "1 / 0",
            "ref.is_alive(), len(system.tree().children), system.stats().by_class['Ticker']",
            "await system.__aexit__(None, None, None)",
            "ref.is_alive(), [task for task in asyncio.all_tasks() if task.get_name() in "
            "('Ticker', 'Blocking')]",
        ],
        tmp_path,
    )
    assert shown[:7] == ["", "", "1", "", "12", "[1, 1, 1, 1, 1]", "'abab'"]
    assert shown[7].startswith("UsageError")
    assert "await ref.request" in shown[7]
    assert shown[8:] == [
        "12",
        "ZeroDivisionError: division by zero",
        "(True, 7, 6)",
        "",
        "(False, [])",
    ]


def test_a_notebook_starts_a_system_stops_it_and_starts_it_again(tmp_path):
    cycle = [
        "await system.start()",
        "ref = Ticker.start(); await ref.request('x')",
        "await ref.stop(), await system.stop(), system.state.value",
    ]
    shown = notebook(
        [
            DEFINITIONS,
            "system = ActorSystem()",
            *cycle,
            *cycle,
            "await system.start()",
            "await system.start()",
        ],
        tmp_path,
    )
    assert shown[:-1] == ["", "", *(["", "1", "(True, None, 'stopped')"] * 2), ""]
    assert shown[-1].startswith("UsageError")


@pytest.mark.slow
def test_a_notebook_whose_kernel_is_shut_down_with_a_system_in_it_ends(tmp_path):
    shown = notebook(
        [
            DEFINITIONS,
            "system = ActorSystem(); await system.start()",
            "await system.spawn(Blocking).request('ab')",
            "Ticker.start().tell('x')",
        ],
        tmp_path,
    )
    assert shown == ["", "", "'abab'", ""]


@pytest.mark.slow
def test_a_notebook_may_have_a_system_in_a_thread_and_ask_it_without_await(tmp_path):
    shown = notebook(
        [
            DEFINITIONS,
            "threaded = ActorSystem.in_thread(); system = threaded.open()",
            "system.spawn(Ticker).ask('x')",
            "threaded.close()",
        ],
        tmp_path,
    )
    assert shown == ["", "", "1", ""]
