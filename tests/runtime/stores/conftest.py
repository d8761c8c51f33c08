"""What the tests of the stores share: the kinds of stores, and one of each."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from offbook.runtime import SQLiteStore
from tests.doubles.machines import Machine
from tests.programs.servers import RedisServer

KINDS = ("memory", "sqlite", "redis", "postgres")


@pytest.fixture(params=KINDS)
def store_kind(request: pytest.FixtureRequest) -> str:
    """The kind of store of a test that holds for each."""
    return request.param


@pytest.fixture
def own_redis() -> Iterator[Callable[..., RedisServer]]:
    """A Redis that a test may do with what it likes: called with the server's options, any number
    of times.
    """
    servers: list[RedisServer] = []

    def start(*options: str) -> RedisServer:
        servers.append(RedisServer(*options))
        return servers[-1].start()

    yield start
    for server in servers:
        server.remove()


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """Ask again and again, until something holds that only time brings about."""

    async def wait(ask: Callable[[], Any], *, seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not await ask():
                await asyncio.sleep(0.01)

    return wait


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def on(tmp_path: Any, machine: Machine) -> Iterator[Callable[..., SQLiteStore]]:
    """A store on that machine, in the same file each time."""
    made: list[SQLiteStore] = []

    def make(**options: Any) -> SQLiteStore:
        cls = type("OnMachine", (SQLiteStore,), {"_machine": staticmethod(lambda: machine)})
        made.append(cls(tmp_path / "runs.db", **options))
        return made[-1]

    yield make
    for store in made:
        store.close()
