"""What every test gets: a loop to run on, and the check that nothing is left of it."""

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pykka
import pytest

from understudy.runtime import directory


def pytest_collection_finish() -> None:
    """What was imported is there to stay: the tests collect garbage thousands of times, and need not look at it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Fails a test that leaves a thread, or an actor in pykka's registry; but for the default system's thread, which is there to stay."""
    before = set(threading.enumerate())
    yield
    pykka.ActorRegistry.stop_all()
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name != "default-loop"]
    for thread in left:
        thread.join(5)  # one that is on its way out is not left
    left = [thread for thread in left if thread.is_alive()]
    assert not left, f"threads left: {left}"
    assert not pykka.ActorRegistry.get_all()
    assert not directory._by_loop or list(directory._by_loop.values()) == [directory._default]


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a loop of its own, and fail if it leaves a task, or if a task or callback has raised."""

    def run_it(coro: Coroutine[Any, Any, Any], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> Any:
        problems: list[dict[str, Any]] = []

        async def main() -> Any:
            asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
            result = await coro
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks left: {left}"
            return result

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            result = runner.run(main())
        gc.collect()  # what was never awaited or retrieved says so when it is collected
        assert not problems, problems
        return result

    return run_it
