"""Several processes that use one store at once; and a process that was forked."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from offbook.runtime import SQLiteStore, UsageError

# Newer Pythons warn of what is tested here: that a process is forked which has threads.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]

PROGRAM = Path(__file__).parents[2] / "programs" / "store_user.py"
PROCESSES = 3
SHARED = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])


@pytest.fixture
def at_once():
    """Run that many processes that all begin at the same moment, and return what each says."""

    def start(recipe, action):
        command = [sys.executable, "-W", "error", str(PROGRAM), json.dumps(recipe), action]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [
            subprocess.Popen([*command, f"p{number}"], **pipes) for number in range(PROCESSES)
        ]
        try:
            for process in processes:
                assert process.stdout.readline() == "ready\n"
            for process in processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            said = [process.stdout.readline() for process in processes]
            for process in processes:
                process.communicate(timeout=40)
            assert [process.returncode for process in processes] == [0] * PROCESSES
            return [json.loads(text) for text in said]
        finally:
            for process in processes:
                process.kill()
                process.communicate()

    return start


@SHARED
@pytest.mark.parametrize("action", ["append", "first_use"])
def test_appends_of_several_processes_interleave_only_whole(
    run, store_of, store_recipe, at_once, kind, action
):
    sizes = at_once(store_recipe(kind, "shared"), action)

    async def main():
        return await store_of(kind, "shared").read("journal")

    records = [record.decode().split() for record in run(main())]
    assert sorted(size for of_one in sizes for size in of_one) == list(
        range(3, len(records) + 1, 3)
    )
    for first in range(0, len(records), 3):
        (name, turn, _part) = records[first]
        assert records[first : first + 3] == [[name, turn, str(part)] for part in range(3)]
    for number, of_one in enumerate(sizes):
        turns = [int(turn) for name, turn, part in records if name == f"p{number}" and part == "0"]
        assert turns == list(range(len(of_one)))
        assert [records[size - 1] for size in of_one] == [
            [f"p{number}", str(turn), "2"] for turn in turns
        ]


@SHARED
@pytest.mark.parametrize("action", ["create", "claim"])
def test_of_several_processes_one_wins(run, store_of, store_recipe, at_once, kind, action):
    won = at_once(store_recipe(kind, "shared"), action)
    store = store_of(kind, "shared")

    async def main():
        epochs = [epoch for of_one in won for epoch in of_one if epoch] if action == "claim" else []
        assert len(set(epochs)) == len(epochs)
        for turn, of_all in enumerate(zip(*won, strict=True)):
            assert sum(map(bool, of_all)) == 1
            key, (winner,) = (
                f"key {turn}",
                [f"p{number}" for number, has in enumerate(of_all) if has],
            )
            assert (await store.get(key)).decode() == winner

    run(main())


def in_a_fork(function):
    """What a function says in a process that was forked from this one, which ends without clearing
    up.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = function()
        except BaseException as error:
            said = repr(error)
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


@SHARED
def test_a_forked_process_uses_a_connection_of_its_own(store_of, kind):
    store = store_of(kind)

    async def write(name):
        await store.set(name, b"v")
        assert await store.append("journal", [name.encode()]) >= 1
        return await store.keys()

    def child():
        first = asyncio.run(write("child"))
        store.close()
        return first

    assert asyncio.run(write("before")) == ["before", "journal"]
    assert in_a_fork(child) == ["before", "child", "journal"]
    assert in_a_fork(lambda: asyncio.run(write("other"))) == ["before", "child", "journal", "other"]
    assert asyncio.run(write("after")) == ["after", "before", "child", "journal", "other"]
    assert asyncio.run(store.read("journal")) == [b"before", b"child", b"other", b"after"]


def test_a_database_in_memory_is_not_there_in_a_forked_process():
    with SQLiteStore(":memory:") as store:
        asyncio.run(store.set("key", b"v"))

        def child():
            with pytest.raises(
                UsageError, match=r"belongs to the parent process.*Pass the path of a file to both"
            ):
                asyncio.run(store.get("key"))
            return True

        assert in_a_fork(child) is True
        assert asyncio.run(store.get("key")) == b"v"
