"""Owners in a file: who is dead, which clock it goes by, and that there is no instant between the
look and the write.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from offbook.runtime import SQLiteStore
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Put
from offbook.runtime.stores.sqlite.owners import Owners
from offbook.runtime.stores.sqlite.state import State

# Newer Pythons warn of what is tested here: that a process is forked which has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

PROGRAM = """
import asyncio, os, sys
from offbook.runtime import SQLiteStore
from offbook.runtime.stores import Put
async def main():
    store = SQLiteStore(sys.argv[1])
    await store.keep_alive("other", 600, first=True)
    await store.claim("run", "other", [Put("run", b"mark")])
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    os._exit(0)
asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def other(path):
    """Another process that is an owner, and has claimed "run". Returns it."""
    started = []

    def start(*arguments):
        command = [sys.executable, "-c", PROGRAM, str(path), *arguments]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()


def killed(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def beside(path):
    return sorted(found.name for found in path.parent.glob(f"{path.name}-owner-*"))


@pytest.mark.parametrize("asked", ["claim", "holder", "orphans", "prune"])
def test_g13_an_owner_whose_process_was_killed_is_dead_at_once_and_for_good(
    run, path, other, asked
):
    async def main():
        process = other()
        async with SQLiteStore(path) as store:
            await store.keep_alive("me", 60, first=True)
            assert (
                await store.claim("run", "me"),
                await store.holder("run"),
                await store.orphans(),
            ) == (None, "other", [])
            killed(process)
            assert len(beside(path)) == 2
            if asked == "claim":
                assert (await store.claim("run", "me")).attempts == 2
            elif asked == "holder":
                assert await store.holder("run") is None
            elif asked == "orphans":
                assert await store.orphans() == ["run"]
            else:
                await store.prune()
            assert not await store.keep_alive("other", 60)
            assert len(beside(path)) == 1
        assert beside(path) == []

    run(main())


def test_g13_a_process_that_is_stopped_is_not_dead(run, path, other):
    async def main():
        process = other()
        process.send_signal(signal.SIGSTOP)
        async with SQLiteStore(path) as store:
            await store.keep_alive("me", 60, first=True)
            assert (
                await store.claim("run", "me"),
                await store.holder("run"),
                await store.orphans(),
            ) == (None, "other", [])

    run(main())


def test_g13_a_file_that_has_vanished_or_is_another_one_proves_nothing(run, path, other):
    async def main():
        process = other()
        (name,) = beside(path)
        killed(process)
        file = path.with_name(name)
        async with SQLiteStore(path) as store:
            file.rename(path.with_name("kept"))
            assert await store.holder("run") == "other"
            file.write_bytes(b"")
            assert await store.holder("run") == "other"
            path.with_name("kept").rename(file)
            assert await store.holder("run") is None

    run(main())


def test_files_of_owners_are_there_as_long_as_they_are(run, path):
    async def main():
        async with SQLiteStore(path) as store, SQLiteStore(path) as same:
            for name in ("a", "b", "c"):
                await store.keep_alive(name, 60, first=True)
            await same.keep_alive("a", 60, first=True)
            assert len(beside(path)) == 3
            await store.claim("run", "a")
            assert await same.holder("run") == "a"
            await store.revoke("a")
            await same.revoke("b")  # by another: what is locked stays until its process lets go
            assert len(beside(path)) == 2
        assert beside(path) == []
        path.with_name(f"{path.name}-owner-0123456789abcdef").write_bytes(b"")
        async with SQLiteStore(path) as store:
            await store.prune()
            assert beside(path) == []

    run(main())


def test_g13_leases_go_by_the_time_of_the_machine_and_not_by_that_on_the_wall(run, on, machine):
    async def main():
        store = on()
        await store.keep_alive("a", 30, first=True)
        await store.keep_alive("b", 600, first=True)
        claim = await store.claim("run", "a")
        for step in (3600, -7200, 10**9, -(10**9)):
            machine.at += step
            assert await store.claim("run", "b") is None
            await store.commit(claim, [Put("v", b"1")])
        machine.up += 29.9
        assert await store.holder("run") == "a"
        machine.up += 0.2
        with pytest.raises(WriteRefused) as caught:
            await store.commit(claim, [Put("v", b"2")])
        assert caught.value.reason == "owner"
        assert await store.claim("run", "b")

    run(main())


@pytest.mark.parametrize(
    ("was", "name", "up", "over"),
    [
        ("first", "next", 1001.0, True),
        ("first", "next", 5.0, True),
        ("", "", 5.0, True),
        ("", "first", 1001.0, False),
        ("first", "", 1001.0, False),
    ],
)
def test_g13_an_owner_of_an_earlier_start_of_the_machine_is_over(
    run, on, machine, was, name, up, over
):
    async def main():
        machine.name = was
        first = on()
        await first.keep_alive("a", 30, first=True)
        await first.claim("run", "a", [Put("run", b"v")])
        machine.starts_again(up=up, name=name)
        second = on()
        assert await second.holder("run") == (None if over else "a")
        assert await second.orphans() == (["run"] if over else [])

    run(main())


class Gate:
    def __init__(self):
        self.reached, self.opened = threading.Event(), threading.Event()

    def wait(self):
        self.reached.set()
        assert self.opened.wait(20)


@pytest.mark.parametrize("point", ["after the look", "before the commit"])
def test_g13_no_claimer_gets_between_the_look_and_the_write(run, on, machine, monkeypatch, point):
    gate, look, end = Gate(), Owners._look, State.end

    async def main():
        slow, quick = on(), on()
        await slow.keep_alive("slow", 30, first=True)
        await quick.keep_alive("quick", 600, first=True)
        claim = await slow.claim("run", "slow", [Append("j", (b"1",), 0)])

        def held(self, *arguments):
            look(self, *arguments)
            gate.wait()

        if point == "after the look":
            monkeypatch.setattr(Owners, "_look", held)
        else:
            state = slow._worker()._backend._open()._state

            def held_at_the_end(self):
                if self is state:
                    gate.wait()
                end(self)

            monkeypatch.setattr(State, "end", held_at_the_end)
        writing = asyncio.create_task(slow.commit(claim, [Append("j", (b"2",), 1)]))
        await asyncio.to_thread(gate.reached.wait, 10)
        machine.passes(31)  # it is stopped there, until its time is over
        claiming = asyncio.create_task(quick.claim("run", "quick"))
        await asyncio.sleep(0.1)
        assert not claiming.done()
        gate.opened.set()
        await writing
        taken = await claiming
        assert taken.epoch > claim.epoch
        assert await quick.read("j") == [
            b"1",
            b"2",
        ]  # what the claimer reads is all that there will be of the other
        with pytest.raises(WriteRefused):
            await slow.commit(claim, [Append("j", (b"3",), 2)])
        assert await quick.read("j") == [b"1", b"2"]

    run(main())


def test_g13_who_was_stopped_before_the_look_writes_nothing(run, on, machine):
    async def main():
        slow, quick = on(), on()
        await slow.keep_alive("slow", 30, first=True)
        await quick.keep_alive("quick", 600, first=True)
        claim = await slow.claim("run", "slow")
        machine.passes(31)
        await quick.claim("run", "quick")
        await slow.keep_alive("slow", 30)
        with pytest.raises(WriteRefused) as caught:
            await slow.commit(claim, [Put("v", b"x")])
        assert caught.value.reason == "epoch"
        assert await quick.keys() == []

    run(main())


def test_orphans_are_found_without_reading_the_values_of_others(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            await store.commit(
                None,
                [
                    Put(f"{place}:{index:06}", b"v")
                    for place in ("a", "z")
                    for index in range(50_000)
                ],
            )
            await store.commit(None, [Put(f"open:{index}", b"v") for index in range(5)])
            assert len(await store.orphans("open:")) == 5
            steps = 0

            def count():
                nonlocal steps
                steps += 1

            connection = store._worker()._backend._opened.connection
            connection.set_progress_handler(count, 100)
            assert await store.orphans("open:", 3) == ["open:0", "open:1", "open:2"]
            connection.set_progress_handler(None, 0)
            assert steps < 20  # hundreds of instructions: thousands would be read otherwise

    run(main())
