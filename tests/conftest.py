"""What every test gets: a loop to run on, the check that nothing is left of it, stores of every
kind, with the servers that they need; agents with a plan.
"""

import asyncio
import gc
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pykka
import pytest
from hypothesis import settings

from offbook import runtime
from offbook.runtime.actor import current as directory
from tests import reading
from tests.doubles.agents import PlannedAgent
from tests.programs.servers import PostgresServer, RedisServer

# Where all that has to pass is run, it is the same each time; at a desk, each run looks for
# something new. How long an example takes depends on what else the machine does.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# The programs that tests start import the product hundreds of times: they read its byte code, and
# what begins writes it, whatever is usual at this desk; as do the tests themselves.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that starts the tests in the background, or under nohup, has them ignore SIGINT, and every
# process that they start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the soak test and the storms go on, and with which dice."""
    parser.addoption(
        "--soak-seconds", type=float, default=15.0, help="how long the soak test goes on"
    )
    parser.addoption("--soak-seed", type=int, default=None, help="with which dice: a failure says")
    parser.addoption(
        "--runs-of-each",
        type=int,
        default=1_000,
        help="how many runs of each kind are made in search of reference cycles",
    )
    parser.addoption(
        "--storm-seconds", type=float, default=8.0, help="how long a storm goes on, on each store"
    )
    parser.addoption("--storm-seed", type=int, default=None, help="with which dice: a failure says")
    parser.addoption(
        "--storm-store",
        choices=("sqlite", "redis", "postgres"),
        default=None,
        help="on which store, if not on each",
    )


_imported = 0
"""How many modules there were when what had been imported was frozen."""


def freeze_what_stays() -> None:
    """What was imported is there to stay: the tests collect garbage thousands of times, and need
    not look at it each time.
    """
    global _imported
    _imported = len(sys.modules)
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    freeze_what_stays()


@pytest.fixture(scope="module", autouse=True)
def what_stays_is_frozen() -> Iterator[None]:
    """What the tests of a file keep, such as the sources that they have parsed, stays, too."""
    yield
    freeze_what_stays()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Fails a test that leaves a thread, or an actor in pykka's registry; but for the default
    system's thread, which is there to stay.
    """
    before = set(threading.enumerate())
    yield
    pykka.ActorRegistry.stop_all()
    left = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name != "default-loop"
    ]
    for thread in left:
        thread.join(20)  # one that is on its way out is not left, also on a machine that stalls
    left = [thread for thread in left if thread.is_alive()]
    assert not left, f"threads left: {left}"
    assert not pykka.ActorRegistry.get_all()
    assert not directory._by_loop or list(directory._by_loop.values()) == [directory._default]
    if len(sys.modules) > _imported + 10:  # a library that is imported late
        freeze_what_stays()


def _closes_a_model(task: asyncio.Task[Any]) -> bool:
    """A model that was not closed is closed when it is collected, at whatever moment; a loop that
    ends meanwhile lets that come to its end.
    """
    return getattr(task.get_coro(), "__qualname__", "").startswith("_close_soon.")


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a loop of its own, and fail if it leaves a task, or if a task or callback
    has raised.
    """

    def run_it(
        coro: Coroutine[Any, Any, Any],
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> Any:
        problems: list[dict[str, Any]] = []

        async def main() -> Any:
            asyncio.get_running_loop().set_exception_handler(
                lambda _loop, context: problems.append(context)
            )
            result = await coro
            left = {
                task
                for task in asyncio.all_tasks() - {asyncio.current_task()}
                if not _closes_a_model(task)
            }
            assert not left, f"tasks left: {left}"
            return result

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            result = runner.run(main())
        gc.collect()  # what was never awaited or retrieved says so when it is collected
        assert not problems, problems
        return result

    return run_it


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Coroutine[Any, Any, None]]:
    """Let the loop run until something holds."""

    async def wait(condition: Callable[[], object]) -> None:
        while not condition():
            await asyncio.sleep(0)

    return wait


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis of this session, started when a test first asks for it.

    Who stops it starts it again.
    """
    server = RedisServer().start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL of this session, started when a test first asks for it.

    Who stops it starts it again.
    """
    server = PostgresServer().start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def namespaces() -> Iterator[int]:
    """Numbers for what must not meet."""
    return itertools.count(1)


@pytest.fixture
def store_recipe(
    request: pytest.FixtureRequest, tmp_path: Any, namespaces: Iterator[int]
) -> Callable[..., tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """How to make a store of a kind, "memory", "sqlite", "redis" or "postgres": its class's name
    and the arguments, also for another process.

    Each namespace of a test is empty at first; stores with the same one have the same data, but for
    those in memory. Without one it is a fresh one.
    """
    test = next(namespaces)

    def recipe(
        kind: str, namespace: str | None = None, **options: Any
    ) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
        own = f"t{test}_{namespace}_" if namespace else f"t{next(namespaces)}_"
        if kind == "memory":
            return "MemoryStore", (), options
        if kind == "sqlite":
            return "SQLiteStore", (str(tmp_path / f"{own}.db"),), options
        if kind == "redis":
            return (
                "RedisStore",
                (request.getfixturevalue("redis_server").url,),
                {"prefix": f"{own}:", **options},
            )
        assert kind == "postgres"
        return (
            "PostgresStore",
            (request.getfixturevalue("postgres_server").dsn,),
            {"prefix": own, **options},
        )

    return recipe


@pytest.fixture
def store_of(store_recipe: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """Make a store of a kind, as `store_recipe` has it; all are closed at the end of the test."""
    made: list[Any] = []

    def make(kind: str, namespace: str | None = None, **options: Any) -> Any:
        name, args, kwargs = store_recipe(kind, namespace, **options)
        store = getattr(runtime, name)(*args, **kwargs)
        made.append(store)
        return store

    yield make
    for store in made:
        store.close()


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres", "encrypted"])
def store(request: pytest.FixtureRequest, store_of: Callable[..., Any]) -> Any:
    """An empty store of every kind, and an encrypted one."""
    if request.param == "encrypted":
        return runtime.encrypted(store_of("sqlite"), keys=bytes(range(32)))
    return store_of(request.param)


@pytest.fixture
def actor() -> type[PlannedAgent]:
    """`actor("A", "hello", Exit())`: an agent that does just that."""
    return PlannedAgent


@pytest.fixture
def lines() -> Callable[[Any], list[str]]:
    """Events, or the result that holds them, as lines."""
    return lambda source: [
        reading.line(event)
        for event in (source.events if isinstance(source, runtime.RunResult) else source)
    ]


@pytest.fixture
def asked() -> Callable[[Any], list[str]]:
    """Messages that an agent or a model was given, as lines."""
    return reading.asked
