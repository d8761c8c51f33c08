"""A system in a process of its own: programs that end by themselves, that are interrupted, and that
fork. Each is a real one, in `tests/programs/`.
"""

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "programs"
SECONDS = 50  # a program that takes longer hangs


def run_program(name, *args):
    return subprocess.run(
        [sys.executable, PROGRAMS / f"{name}.py", *args],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def complaints(done):
    """What it has logged, but for the warning about slow handlers: a machine that is busy otherwise
    makes any handler slow.
    """
    return [line for line in done.stderr.splitlines() if "blocked the event loop" not in line]


@contextmanager
def started(name, *args):
    process = subprocess.Popen(
        [sys.executable, PROGRAMS / f"{name}.py", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1), ("exit", 3)])
def test_a_script_with_a_system_in_a_thread_ends_by_itself(how, code):
    done = run_program("script", "in_thread", how)
    assert done.returncode == code, done.stderr
    first, second, *stops = done.stdout.splitlines()
    assert (first, second) == ("hello world", "hello world from mine")
    assert sorted(stops) == ["stopped Greeter", "stopped ThreadGreeter"]
    assert ("ZeroDivisionError" in done.stderr) == (how == "raise")
    assert how == "raise" or complaints(done) == []


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("raise", 1), ("exit", 3)])
def test_a_script_that_only_starts_actors_ends_by_itself_and_stops_them(how, code):
    done = run_program("script", "start_only", how)
    assert done.returncode == code, done.stderr
    first, second, *stops = done.stdout.splitlines()
    assert first == "hello world"
    assert second.startswith("hello world from ThreadGreeter")
    assert sorted(stops) == ["stopped Greeter", "stopped ThreadGreeter"]
    assert ("ZeroDivisionError" in done.stderr) == (how == "raise")
    assert how == "raise" or complaints(done) == []


@pytest.mark.parametrize(
    ("name", "last"), [("start_and_be_busy", "stopped Busy"), ("start_and_wait", "stopped Greeter")]
)
def test_a_script_whose_actors_still_do_something_ends_by_itself(name, last):
    done = run_program("script", name, "return")
    assert done.returncode == 0, done.stderr
    assert last in done.stdout.splitlines()
    assert done.stdout.count("waiting") == done.stdout.count("interrupted")


def test_a_script_whose_actors_have_used_asyncios_own_threads_ends_without_a_word():
    done = run_program("script", "start_and_delegate", "return")
    assert (done.returncode, done.stdout) == (0, "DONE\n")
    assert complaints(done) == []


def test_a_script_that_forgets_to_leave_its_system_ends_by_itself():
    done = run_program("script", "run_forgotten", "return")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hello world\n"


@pytest.mark.parametrize(
    "name", ["on_the_loop", "on_uvloop", "in_thread_asking", "in_thread_waiting", "default"]
)
def test_an_interrupted_program_stops_its_actors_and_ends(name):
    with started("interrupted", name) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), err
    assert "KeyboardInterrupt" in err
    assert sorted(out.splitlines()) == [
        "stopped root",
        "stopped root.0",
        "stopped root.1",
        "stopped thread",
    ]
    lines = out.splitlines()
    assert max(lines.index("stopped root.0"), lines.index("stopped root.1")) < lines.index(
        "stopped root"
    )
    assert not any(
        sign in err
        for sign in (
            "never awaited",
            "never retrieved",
            "was destroyed",
            "Exception ignored",
            "is abandoned",
        )
    ), err


def test_a_second_interrupt_ends_a_handler_that_holds_the_loop():
    """The first one, asyncio's way, cancels the main task, which does not get its turn."""
    with started("interrupted", "while_a_handler_holds_the_loop") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        while True:
            process.send_signal(signal.SIGINT)
            try:
                out, err = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                continue
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), err
    assert {"stopped root.0", "stopped root.1", "stopped thread"} <= set(out.splitlines())


def test_an_interrupted_program_does_not_wait_for_a_thread_that_does_not_end():
    with started("interrupted", "in_thread_stuck") as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), err
    assert out.splitlines() == ["stopped root"]
    assert "is abandoned" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["while_threads_send", "on_the_loop", "in_a_handler", "default_system", "with_multiprocessing"],
)
def test_a_forked_process_is_told_that_it_cannot_use_the_system_and_can_have_its_own(name):
    done = run_program("forked", name)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    children = [entry["child"] for entry in found if "child" in entry]
    assert children
    for child in children:
        assert child["status"] == 0, done.stderr or "a child got stuck"
        assert {
            what: said
            for what, said in child["attempts"].items()
            if not (said.startswith("UsageError") and "forked" in said)
        } == {}
        assert (child["own"], child["loop"]) == (True, "on a loop")
        assert child["registered"], "pykka's registry in the child has actors of the parent, too"
        assert "forked" in child.get("child", "forked")
        assert child.get("start", "mine") == "mine"
    parents = [entry["parent"] for entry in found if "parent" in entry]
    assert parents
    assert all(replies == ["!", "!"] for replies in parents)
    assert all(entry.get("status", 0) == 0 for entry in found)
    assert complaints(done) == []
