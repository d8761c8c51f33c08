"""`offbook runs`, `show`, `resume`, `retry`, `cancel`, `forget`, `graph`, `timeline`: what is in a
store, without and with its agents.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from offbook.runtime import ActorSystem, Runner, SQLiteStore
from tests.doubles.agents import PlannedAgent
from tests.doubles.commands import command
from tests.doubles.left_runs import Counts, lose_all

__all__ = ["command"]


@pytest.fixture
def waits(command):
    """The id of a run in `runs.db` that waits for an approval."""
    done = command("run", "clerks.py", "book it", "--store", "runs.db")
    return done.stderr.split("offbook resume ")[1].split()[0]


def test_runs_are_listed_the_newest_first_with_what_they_wait_for(command, waits):
    command("run", "clerks.py", "fail", "--store", "runs.db")
    lines = command("runs", "--store", "runs.db").stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].split()[1] == "failed"
    assert lines[0].endswith("Clerk: ValueError: no luck")
    assert lines[1].startswith(f"{waits}  interrupted")
    assert lines[1].endswith('Clerk: Clerk wants to call book(city="Paris")')
    assert [
        line.split()[0]
        for line in command(
            "runs", "--store", "runs.db", "--status", "interrupted"
        ).stdout.splitlines()
    ] == [waits]
    (found,) = [
        json.loads(line)
        for line in command(
            "runs", "--store", "runs.db", "--status", "interrupted", "--json"
        ).stdout.splitlines()
    ]
    assert (found["id"], found["status"]) == (waits, "interrupted")
    assert found["waiting"][0]["question"] == 'Clerk wants to call book(city="Paris")'


def test_pages_say_how_the_next_one_is_asked_for(command, waits):
    command("run", "clerks.py", "hello", "--store", "runs.db")
    first, hint = command("runs", "--store", "runs.db", "--limit", "1").stdout.splitlines()
    assert hint == f"more: --after {first.split()[0]}"
    assert command("runs", "--store", "runs.db", "--after", first.split()[0]).stdout.startswith(
        waits
    )
    assert (
        command("runs", "--store", "runs.db", "--agent", "Nobody").stdout
        == "no matching runs in runs.db\n"
    )


def test_a_run_is_shown_with_its_events_and_what_it_waits_for(command, waits):
    shown = command("show", waits, "--store", "runs.db").stdout
    assert "status    interrupted" in shown
    assert '  · book(city="Paris")' in shown
    assert 'waits: Clerk wants to call book(city="Paris")' in shown
    events = [
        json.loads(line)
        for line in command("show", waits, "--store", "runs.db", "--json").stdout.splitlines()
    ]
    assert [event["kind"] for event in events] == ["message", "interrupted"]


def interrupt_of(command, run_id):
    """The interrupt that `offbook show` hands out."""
    return next(
        line
        for line in command("show", run_id, "--store", "runs.db").stdout.splitlines()
        if line.startswith("as ")
    ).removeprefix("as ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--yes"], "So: booked Paris."),
        (["--no", "too dear"], "too dear"),
        (["--data", "yes"], "So: booked Paris."),
    ],
)
def test_a_run_is_resumed_with_its_answer(command, waits, options, said):
    what = interrupt_of(command, waits)
    done = command("resume", what, "clerks.py", "--store", "runs.db", *options)
    assert (done.exit_code, said in done.stdout) == (0, True)
    again = command("resume", what, "clerks.py", "--store", "runs.db", *options)
    assert again.exit_code == 1
    assert len(again.stderr.splitlines()) == 1


def test_a_run_is_forgotten(command, waits):
    assert command("forget", waits, "--store", "runs.db").stdout == f"{waits} is deleted\n"
    assert "the store has no run" in command("show", waits, "--store", "runs.db").stderr


def test_a_run_that_is_at_work_elsewhere_is_cancelled(command, tmp_path):
    begun, ended, statuses = threading.Event(), threading.Event(), []

    async def serve():
        async def wait(_context):
            begun.set()
            await asyncio.Event().wait()

        async with SQLiteStore(tmp_path / "runs.db") as store:
            run = Runner(PlannedAgent("Slow", wait), store=store, durability="step").query(
                "go", run_id="slow-1"
            )
            statuses.append((await run).status.value)
        ended.set()

    service = threading.Thread(target=asyncio.run, args=(serve(),))
    service.start()
    try:
        assert begun.wait(30)
        done = command("cancel", "slow-1", "--store", "runs.db")
        assert (done.exit_code, done.stdout) == (0, "slow-1 is cancelled\n")
        assert ended.wait(30)
    finally:
        service.join(30)
    assert statuses == ["cancelled"]
    again = command("cancel", "slow-1", "--store", "runs.db")
    assert "has already ended: it is cancelled" in again.stderr


def test_a_run_that_was_set_aside_is_given_another_life(command, tmp_path, run):
    async def leave_stuck():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            reached = asyncio.Event()

            class Gate:
                async def wait(self):
                    reached.set()
                    await asyncio.Event().wait()

            async with ActorSystem() as system:
                left = Runner(Counts(Gate()), system=system, store=store, durability="step").query(
                    "go", detached=True
                )
                await reached.wait()
                await lose_all(system, store)
            assert (
                await Runner(Counts(), store=store, durability="step").recover(max_attempts=1) == []
            )
            return left.id

    run_id = run(leave_stuck())
    (tmp_path / "counts.py").write_text(
        "from tests.doubles.left_runs import Counts\nagent = Counts()\n"
    )
    assert command("runs", "--store", "runs.db").stdout.split()[:2] == [run_id, "stuck"]
    done = command("retry", run_id, "counts.py", "--store", "runs.db")
    assert (done.exit_code, done.stdout) == (0, "A\nend\n")
    assert "retry" in command("retry", run_id, "--store", "runs.db").stderr


def test_the_store_is_found_by_the_environment(command, waits, monkeypatch):
    assert "file not found" in command("runs").stderr
    monkeypatch.setenv("OFFBOOK_STORE", "runs.db")
    assert command("runs").stdout.startswith(waits)


def test_a_timeline_is_text_or_a_drawing_or_a_page(command, waits, tmp_path):
    text = command("timeline", waits, "--store", "runs.db").stdout
    assert f"Clerk run {waits} interrupted" in text
    assert max(map(len, text.splitlines())) <= 80
    assert command("timeline", waits, "--store", "runs.db", "--form", "svg").stdout.startswith(
        "<svg"
    )
    assert command("timeline", waits, "--store", "runs.db", "-o", "run.html").stdout == ""
    assert (tmp_path / "run.html").read_text().startswith("<!doctype html>")
    assert (
        "--form must be one of text, svg, html"
        in command("timeline", waits, "--store", "runs.db", "--form", "pdf").stderr
    )


def test_a_graph_is_text_or_mermaid_or_a_drawing(command, tmp_path):
    assert command("graph", "clerks.py").stdout.splitlines()[0] == "Clerk (ChatModelAgent): helps"
    assert command("graph", "clerks.py:runner", "--form", "mermaid").stdout.startswith("flowchart")
    assert command("graph", "clerks.py", "-o", "agents.svg").exit_code == 0
    assert (tmp_path / "agents.svg").read_text().startswith("<svg")
    assert (
        "No such file or directory"
        in command("graph", "clerks.py", "-o", "no/such/folder.svg").stderr
    )


def test_a_file_whose_ending_names_no_form_is_not_written(command, waits, tmp_path):
    for args in (
        ["graph", "clerks.py", "-o", "picture.png"],
        ["timeline", waits, "--store", "runs.db", "-o", "picture.png"],
    ):
        done = command(*args)
        assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
        assert "--output picture.png: no format has the suffix .png" in done.stderr
        assert not (tmp_path / "picture.png").exists()
    assert command("graph", "clerks.py", "-o", "agents.notes", "--form", "text").exit_code == 0
    assert (tmp_path / "agents.notes").read_text().startswith("Clerk")


def test_an_answer_that_does_not_come_is_asked_for_in_one_line(command, waits):
    done = command("resume", waits, "clerks.py", "--store", "runs.db", says="")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "Pass the answer: --data TEXT, --yes or --no REASON" in done.stderr
    assert command("resume", waits, "clerks.py", "--store", "runs.db", says="yes\n").exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show", "nobody"], "the store has no run 'nobody'"),
        (["timeline", "nobody"], "the store has no run 'nobody'"),
        (["forget", "nobody"], "the store has no run 'nobody'"),
        (["cancel", "nobody"], "the store has no run 'nobody'"),
        (["retry", "nobody", "clerks.py"], "the store has no run 'nobody'"),
        (["resume", "nobody", "clerks.py"], "the store has no run 'nobody'"),
        (["resume", "nobody"], "Pass the agent's file: offbook resume nobody FILE:agent"),
        (["runs", "--status", "gone"], "status must be one or several of"),
        (["runs", "--label", "tenant"], "--label must be NAME=VALUE, got tenant"),
        (["runs", "--after", "nobody"], "that run is no longer listed"),
    ],
)
def test_what_is_wrong_is_one_line(command, waits, args, said):
    done = command(*args, "--store", "runs.db")
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_run_of_another_agent_is_not_resumed_with_this_one(command, waits, tmp_path):
    (tmp_path / "other.py").write_text(
        "from offbook.actors import Agent\nagent = Agent(name='Other')\n"
    )
    done = command(
        "resume", interrupt_of(command, waits), "other.py", "--yes", "--store", "runs.db"
    )
    assert done.exit_code == 1
    assert "Clerk" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_types_of_the_users_own_are_loaded_where_they_stand_in_the_store(command, tmp_path):
    (tmp_path / "sizes.py").write_text(
        """
from dataclasses import dataclass
from offbook.actors import Agent
from offbook.runtime import register_type

@register_type(name="tests.cli.Size")
@dataclass(frozen=True)
class Size:
    what: str

class Asks(Agent):
    async def run(self, input, context):
        yield context.interrupt(Size("cloak"))

agent = Asks(name="Tailor")
"""
    )
    elsewhere = [
        sys.executable,
        "-m",
        "tests.programs.offbook_command",
        "run",
        "sizes.py",
        "x",
        "--store",
        "runs.db",
    ]
    done = subprocess.run(
        elsewhere,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert (
        "Pass --load FILE, with the file that registers it"
        in command("runs", "--store", "runs.db").stderr
    )
    assert (
        "Tailor asks: Size(what='cloak')"
        in command("runs", "--store", "runs.db", "--load", "sizes.py").stdout
    )
