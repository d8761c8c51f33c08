"""Ids are never given twice: not by a program that seeds its generator, not by processes that were
forked, not by threads that draw at once.
"""

import ast
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from offbook.runtime.data import chat
from offbook.runtime.data.chat import Message, new_id

ROOT = Path(__file__).parents[3]

# What may draw from a generator that can be seeded, and why.
RANDOM = {
    "runtime/backoff.py": "the jitter of delays",
    "runtime/models/retry.py": "the jitter of waits that a provider asks for",
}

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def test_an_id_has_24_digits():
    assert re.fullmatch("[0-9a-f]{24}", new_id())


def test_a_program_that_seeds_its_generator_gets_other_ids_in_each_life():
    program = """if True:
        import random
        random.seed(0)
        from offbook.runtime.data.chat import Message, new_id
        random.seed(0)
        print(*[new_id() for _ in range(300)], Message.user("x").id)
    """
    lives = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        ).stdout.split()
        for _ in range(2)
    ]
    assert len({*lives[0], *lives[1]}) == 602


def ids_of_a_fork(count):
    """What a forked process draws."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, " ".join(new_id() for _ in range(count)).encode())
        finally:
            os._exit(0)
    return drawn_by(child, reading, writing)


def drawn_by(child, reading, writing):
    os.close(writing)
    with os.fdopen(reading) as source:
        drawn = source.read().split()
    os.waitpid(child, 0)
    return drawn


@pytest.mark.slow
@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_forked_processes_draw_ids_of_their_own_while_threads_draw():
    over, drawn = threading.Event(), [[], []]

    def draw(mine):
        while not over.is_set():
            mine.append(new_id())

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in drawn]
    for thread in threads:
        thread.start()
    try:
        forked = [ids_of_a_fork(200) for _ in range(20)]
    finally:
        over.set()
        for thread in threads:
            thread.join(20)
    whole = [name for part in (*forked, *drawn, [new_id() for _ in range(300)]) for name in part]
    assert [len(part) for part in forked] == [200] * 20
    assert len(set(whole)) == len(whole)


@forks
@pytest.mark.filterwarnings("ignore:This process")
def test_a_fork_in_the_middle_of_a_draw_leaves_nothing_to_both(monkeypatch):
    """As of a signal's handler: what the operating system has given by then is in the memory of
    both processes.
    """
    reading, writing = os.pipe()
    urandom, parent, children = os.urandom, os.getpid(), []

    def urandom_and_fork(size):
        entropy = urandom(size)
        monkeypatch.undo()
        children.append(os.fork())
        return entropy

    chat._drawn.clear()
    monkeypatch.setattr(os, "urandom", urandom_and_fork)
    new_id()
    mine = [new_id() for _ in range(200)]
    if os.getpid() != parent:
        try:
            os.write(writing, " ".join(mine).encode())
        finally:
            os._exit(0)
    theirs = drawn_by(*children, reading, writing)
    assert len({*mine, *theirs}) == 400


def test_threads_never_get_the_same_id():
    start, drawn = threading.Barrier(8), []

    def draw():
        start.wait(20)
        drawn.extend([new_id() for _ in range(5_000)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(drawn)) == len(drawn) == 40_000


def test_messages_have_ids_of_their_own():
    assert len({Message.user("x").id for _ in range(500)}) == 500


def test_nothing_takes_its_ids_from_a_generator_that_can_be_seeded():
    found = set()
    for path in (*(ROOT / "runtime").rglob("*.py"), *(ROOT / "actors").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if any((name or "").split(".")[0] == "random" for name in names):
                found.add(str(path.relative_to(ROOT)))
    assert found == set(RANDOM)
