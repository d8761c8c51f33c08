"""A service under load for as long as one likes: nothing is left of it, nothing grows, and each
session holds what was sent.

A minute of it is a part of what has to pass: `pytest tests/test_soak.py --soak-seconds 60`.
"""

import asyncio
import gc
import logging
import random
import sqlite3
import threading
import time
import weakref
from contextlib import closing
from pathlib import Path

import pytest

from offbook.runtime import ActorSystem, SQLiteStore
from tests.doubles.watched_stores import unfinished
from tests.soak import FailingStore, Load

SENDERS = 24
ROUNDS = 6
SLACK = 800
"""Objects by which two looks may differ: what is kept for speed fills up slowly, and the queues of
a loop are now longer, now shorter.
"""


def files():
    return len(list(Path("/proc/self/fd").iterdir()))


def objects():
    """How many objects there are, but for dead weak references: a connection of SQLite keeps those
    of up to 200 cursors that are gone.
    """
    for _ in range(3):
        gc.collect()
    return sum(not (isinstance(one, weakref.ref) and one() is None) for one in gc.get_objects())


def threads_but_workers(system):
    """How many threads there are, but for those that wait for work: they are as many as were needed
    at once, and end when they are not needed.
    """
    return (
        sum(
            not thread.name.startswith(f"{system.name}-worker-") for thread in threading.enumerate()
        )
        + system.stats().worker_threads
    )


async def soak(path, seconds, seed):
    dice = random.Random(seed)
    store = FailingStore(SQLiteStore(path), dice, 0.0)
    sizes, done, tasks = [], {}, asyncio.all_tasks()
    async with store.store, ActorSystem() as system:
        for _ in range(ROUNDS):
            load = Load(system, store, dice)
            store.share = 0.01
            end = time.monotonic() + seconds / ROUNDS
            await asyncio.gather(
                *(load.work(lambda end=end: time.monotonic() > end) for _ in range(SENDERS))
            )
            await load.end_unfinished()
            await load.check_sessions()
            for _ in range(1000):  # the last lease may be on its way back
                stats = system.stats()
                if not stats.actors:
                    break
                await asyncio.sleep(0.001)
            assert stats.actors == 0, f"actors left: {stats}"
            assert asyncio.all_tasks() == tasks
            assert await unfinished(store) == []
            await load.forget_runs()
            assert await store.keys("") == []
            for name, count in load.done.items():
                done[name] = done.get(name, 0) + count
            del load, stats
            sizes.append((objects(), files(), threads_but_workers(system)))
    return sizes, done, store.failures


@pytest.mark.slow
def test_g05_under_load_nothing_is_left_nothing_grows_and_nothing_is_lost(
    run, tmp_path, pytestconfig, caplog
):
    # What is logged is kept by the test, and would grow.
    caplog.set_level(logging.CRITICAL, "offbook")
    seconds, seed = pytestconfig.getoption("--soak-seconds"), pytestconfig.getoption("--soak-seed")
    seed = random.randrange(10**6) if seed is None else seed
    print(f"--soak-seed {seed}")
    path = tmp_path / "soak.db"
    sizes, done, failures = run(soak(str(path), seconds, seed))
    print(done, failures, sizes)
    for what in (
        "run completed",
        "resumed",
        "went on",
        "left",
        "said",
        "store failed",
        "recovered: completed",
    ):
        assert done.get(what), f"nothing came of {what!r}: {done}"
    assert failures > 10
    warm, last = sizes[1], sizes[-1]
    assert last[0] <= warm[0] + SLACK, f"objects grow: {sizes}"
    # A thread that is about to end may be counted, or not.
    _, files, threads = map(max, zip(*sizes[:3], strict=True))
    assert last[1] <= files, f"files grow: {sizes}"
    assert last[2] <= threads, f"threads grow: {sizes}"
    with closing(sqlite3.connect(path)) as connection:
        for table in ("items", "contents", "records"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        (leases,) = connection.execute("SELECT count(*) FROM claims").fetchone()
        assert leases < failures, (
            "only those are left, until they expire, that the store failed to take back"
        )
