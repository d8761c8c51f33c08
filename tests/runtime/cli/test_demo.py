"""`offbook demo`: a team whose process is really killed, and goes on in another one; and the
examples.
"""

import importlib.util
import re

import pytest

from tests.doubles.commands import command
from tests.programs.pack_examples import PACKED, packed

__all__ = ["command"]


@pytest.mark.slow
def test_a_process_is_killed_in_the_middle_and_another_one_goes_on(command, capfd):
    done = command("demo", "--pace", "0.2")
    assert (done.exit_code, done.stderr) == (0, "")
    begun, lost, going_on, answered = (
        int(found)
        for found in re.findall(
            r"process (\d+) (?:starts|was killed \(SIGKILL\)|continues|has the answer)", done.stdout
        )
    )
    assert begun == lost
    assert len({begun, going_on, answered}) == 3
    assert "Sights (AgentActor, running)" in done.stdout
    parts = done.stdout.split("\nprocess ")
    assert "The Louvre, at nine" not in parts[1]
    assert "The Louvre, at nine" in parts[3]
    assert "Chartier: loud" in parts[1]
    assert "Chartier: loud" not in parts[3]
    assert 'Booker wants to call book_train(city="Paris", euros=89)' in done.stdout
    assert "without a process" in done.stdout
    assert (
        f"8 model calls: that of Sights, in flight when process {lost} was "
        "killed, was made again; all others were made once." in done.stdout
    )


def test_all_examples_are_listed_with_what_they_show(command):
    lines = command("demo", "--list").stdout.splitlines()
    names = [line.split()[0] for line in lines]
    assert names[0] == "trip"
    assert {"hello", "multi_agent", "payment"} <= set(names)
    assert not {"models", "show"} & set(names)
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


@pytest.mark.slow
def test_an_example_is_played_without_a_key(command, capfd, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a key that must not be used")
    monkeypatch.setenv("OPENAI_MODEL", "a-model")
    assert command("demo", "hello").exit_code == 0
    out, err = capfd.readouterr()
    assert "Hello! I am Hello" in out
    assert "The replies are scripted" in err


def test_the_packed_examples_are_those_of_the_repository():
    assert PACKED.read_text() == packed(), "run: python -m tests.programs.pack_examples"


@pytest.mark.parametrize(
    ("name", "lacking", "said"),
    [
        ("service", ["fastapi"], "needs fastapi, which is not installed: pip install fastapi."),
        (
            "a2a_services",
            ["a2a", "uvicorn"],
            "needs a2a and uvicorn, which are not installed: pip install 'offbook[a2a]'.",
        ),
        (
            "voice_desk",
            ["websockets"],
            "needs websockets, which is not installed: pip install 'offbook[realtime]'.",
        ),
    ],
)
def test_a_demo_whose_packages_are_not_installed_says_what_installs_them(
    command, monkeypatch, name, lacking, said
):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda one, *rest: None if one in lacking else real(one, *rest)
    )
    done = command("demo", name)
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert said in done.stderr


def test_a_demo_that_is_none_is_one_line(command):
    done = command("demo", "nothing")
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert "offbook demo --list" in done.stderr
