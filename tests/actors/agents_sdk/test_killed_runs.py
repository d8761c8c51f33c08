"""A program of the SDK that is killed with SIGKILL at every point at which something is recorded or
called, and goes on in another process.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs.sdk_program import ANSWER, CALLS, KEYS, RUN

ROOT = Path(__file__).parents[3]
REPLIES = {0: "desk#0", 1: "travel#0", 3: "travel#1", 4: "travel#2"}
"""The step of the model call that knows so many results."""


def spend(recipe, folder, mode):
    command = [
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        "-m",
        "tests.programs.sdk_killed",
        json.dumps(recipe),
        folder,
        mode,
        1,
        1,
    ]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=280, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def called(life):
    return [json.loads(line.partition(" ")[2]) for line in life if line.startswith("call ")]


def check(lives):
    """Same answer, and nothing repeated but what was in flight, with the same key."""
    assert lives[-1][-1] == f"ended {json.dumps(['completed', ANSWER])}"
    keys = {}
    for life in lives:
        recorded = json.loads(life[0].partition(" ")[2])
        made = called(life)
        assert len(made) == len({tuple(call) for call in made}), "a call is made once in a life"
        for what, detail in made:
            step = REPLIES[detail] if what == "model" else CALLS[what]
            assert step not in recorded, "it was made, and its result is recorded"
            if what != "model":
                assert keys.setdefault(what, detail) == detail
                assert detail.startswith(f"{RUN}/{KEYS[what]}")
    assert set(keys) == set(CALLS)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["run", "stream", "resume"])
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_g08_a_run_of_the_sdk_that_is_killed_at_any_point_has_the_same_answer(
    store_recipe, tmp_path, kind, mode
):
    name, args, options = store_recipe(kind)
    numbered = {"sqlite": ((str(tmp_path / "NUMBER.db"),), {})}  # a store for each case
    own = numbered.get(kind) or (
        args,
        {**options, "prefix": f"{options['prefix'].rstrip(':')}NUMBER_"},
    )
    recipe = (name, *own)
    cases = spend(recipe, tmp_path, mode)
    for lives in cases:
        check(lives)
    killed = [
        lives
        for lives in cases
        if any(line.startswith("killed") for life in lives for line in life)
    ]
    assert len(killed) == len(cases) - 1
    assert len(killed) > 20, "there are so many points"
