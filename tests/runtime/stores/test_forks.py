"""A process that is forked: no child has a connection of its parent's, and none hangs.

Each is a real one, in `tests/programs/forking.py`.
"""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs.servers import complaints

ROOT = Path(__file__).parents[3]
SHARED = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])


@pytest.fixture
def started():
    """Start the program. What it has started with it is ended after the test."""
    processes = []

    def start(name, recipe=None):
        command = [
            sys.executable,
            "-X",
            "faulthandler",
            "-W",
            "ignore::DeprecationWarning",
            "-m",
            "tests.programs.forking",
            name,
            *([json.dumps(recipe)] if recipe else []),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def said_by(process):
    try:
        out, err = process.communicate(timeout=50)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)  # each process says where its threads are
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0, err[-3000:]
    assert complaints(err) == ""
    found = {}
    for line in out.splitlines():
        found.update(json.loads(line))
    return found


def test_a_file_is_whole_though_a_child_goes_on_beside_other_processes_when_its_parent_has_ended(
    started, store_recipe
):
    recipe = store_recipe("sqlite", "shared")
    child = started("goes_on", recipe)
    assert child.stdout.readline() == '{"child": "writes"}\n'
    for _ in range(5):
        assert said_by(started("use", recipe)) == {}
    written = said_by(child)["written"]
    connection = sqlite3.connect(recipe[1][0])
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    found = dict(connection.execute("SELECT key, records FROM items").fetchall())
    connection.close()
    assert found == {b"journal": 300, b"of child": written}


@SHARED
def test_a_child_that_is_forked_while_the_store_writes_uses_it(started, store_recipe, kind):
    found = said_by(started("while_writing", store_recipe(kind)))
    assert found == {"codes": [0] * 20, "inherited": [], "lost": 0, "of_children": 20}


@SHARED
def test_what_is_watched_is_told_after_a_fork(started, store_recipe, kind):
    assert said_by(started("watched", store_recipe(kind))) == {"code": 0, "told": True}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_g13_the_death_of_a_parent_shows_at_once_while_its_child_lives(
    run, started, store_of, store_recipe, until, kind
):
    process = started("owner", store_recipe(kind, "shared"))
    child = json.loads(process.stdout.readline())["child"]

    async def main():
        async with store_of(kind, "shared") as store:
            assert await store.holder("run") == "parent"
            process.kill()
            process.wait()
            async with asyncio.timeout(10):
                while await store.holder("run") is not None:  # until the server has noticed
                    await asyncio.sleep(0)
            os.kill(child, 0)  # it lives

    run(main())


def test_a_child_that_is_forked_while_other_threads_begin_runs_begins_its_own(started):
    assert said_by(started("beginning")) == {"codes": [0] * 20}


def test_a_fork_while_another_thread_makes_the_default_system_returns(started):
    assert said_by(started("making_the_default")) == {"codes": [0]}


def test_a_child_is_told_at_once_that_a_system_is_its_parents(started):
    found = said_by(started("parents_system"))
    assert {
        name: text
        for name, text in found["said"].items()
        if not (text.startswith("UsageError: ") and "before this process was forked" in text)
    } == {}
    assert (found["code"], found["own"], found["parent"]) == (
        0,
        "completed",
        ["cancelled", "completed"],
    )


def test_a_child_is_told_that_a_store_in_memory_is_its_parents(started):
    found = said_by(started("in_memory"))
    assert found["said"].startswith("UsageError: MemoryStore.get: ")
    assert "forked" in found["said"]
    assert (found["code"], found["parent"]) == (0, "v")
