"""Processes with one store are killed and stopped at random, again and again: what was promised
holds all the same, and all that was asked for comes to its end.

A minute of it on each store is a part of what has to pass: `pytest tests/test_storm.py
--storm-seconds 60 --timeout 300`. `--storm-seed` repeats who is killed and stopped, and when;
`--storm-store` chooses one store. For longer than a minute or two: `python -m tests.storm sqlite
3600`.
"""

import json
import random
from itertools import count

import pytest

from tests.programs.storm_worker import plan, session_of
from tests.storm import WORKERS, schedule, storm
from tests.storm_log import Logs

SEED = 5
SESSION_RUN = next(
    f"r{number}"
    for number in count()
    if session_of(SEED, f"r{number}") and plan(SEED, f"r{number}") == [["pay"]]
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_g13_in_a_storm_each_run_has_one_owner_and_comes_to_its_end_once(
    store_recipe, tmp_path, pytestconfig, kind
):
    if pytestconfig.getoption("--storm-store") not in (None, kind):
        pytest.skip("--storm-store says another one")
    seconds, seed = (
        pytestconfig.getoption("--storm-seconds"),
        pytestconfig.getoption("--storm-seed"),
    )
    seed = random.randrange(10**6) if seed is None else seed
    print(f"--storm-seed {seed} --storm-store {kind}")
    problems, figures = storm(store_recipe(kind), tmp_path, seed, seconds)
    print(figures)
    assert not problems, "\n".join(problems[:20])
    assert figures["kills"] + figures["stops"] > seconds / 3
    assert figures["runs"] > 10
    assert figures["calls"] > figures["runs"]


def test_a_seed_repeats_who_is_killed_and_stopped_and_when():
    assert list(schedule(5, 60)) == list(schedule(5, 60)) != list(schedule(6, 60))
    assert {kind for _, _, kind, _ in schedule(5, 60)} == {"kill", "stop"}
    assert {number for _, number, _, _ in schedule(5, 60)} == set(range(WORKERS))


# --- what the checks find ---


def start(t, fence, *, call="pay r 0 0", name="k", of="r", look=None, number="c"):
    return {
        "t": t,
        "what": "start",
        "run": of,
        "call": call,
        "id": number,
        "key": name,
        "fence": fence,
        "look": t if look is None else look,
    }


def shown(t, fence, seq, content="x", *, result_of=None, made=None):
    return {
        "t": t,
        "what": "shown",
        "run": "r",
        "seq": seq,
        "content": content,
        "result_of": result_of,
        "fence": fence,
        "made": t if made is None else made,
    }


def ended(t, said="r done", status="completed", of="r"):
    return {
        "t": t,
        "what": "ended",
        "run": of,
        "status": status,
        "said": said,
        "error": "None",
        "by": "asker",
    }


def asked(t, of="r", session=None):
    return {"t": t, "what": "asked", "run": of, "session": session}


def history(*said):
    return {
        "t": 9,
        "what": "history",
        "session": session_of(SEED, SESSION_RUN),
        "said": [text.split(" ", 1) for text in said],
    }


R = SESSION_RUN
WHOLE = (f"user {R}", f"assistant {R} 0", f"tool {R} 0 0 pay", f"assistant {R} done")
OF_R = asked(0, R, session_of(SEED, R)), ended(8, f"{R} done", of=R)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (
            [
                asked(0),
                start(1, 1),
                shown(2, 1, 1),
                start(3, 2),
                shown(4, 2, 2),
                ended(5),
                ended(6),
            ],
            None,
        ),
        ([shown(1, 1, 1, "x"), shown(2, 2, 1, "y")], "numbers"),
        ([shown(1, 1, 1), shown(2, 1, 2), shown(3, 2, 2)], "owners"),
        ([shown(1, 1, 1, made=7), shown(2, 2, 1, made=7), shown(3, 2, 2)], None),
        ([shown(1, 2, 1), start(2, 1)], "stale_calls"),
        ([start(1, 2), start(2, 1)], "stale_calls"),
        ([start(2, 2), start(3, 1, look=1)], None),
        ([start(1, 1), start(2, 2, name="other")], "keys"),
        ([start(1, 1), start(2, 1, call="pay r 1 0")], "keys"),
        ([start(1, 1), shown(2, 1, 1, result_of="c"), start(3, 2)], "calls_that_were_recorded"),
        ([asked(0)], "ends"),
        ([asked(0), ended(1), ended(2, "something else")], "ends"),
        ([asked(0), ended(1, None, "failed")], "ends"),
        ([*OF_R, history(*WHOLE)], None),
        ([*OF_R, history(*WHOLE, *WHOLE)], "histories"),
        ([*OF_R, history()], "histories"),
        ([*OF_R, history(*WHOLE[:3])], "histories"),
        ([*OF_R, history(*WHOLE[:2], *WHOLE[3:])], "histories"),
        ([*OF_R, asked(8.5, "late"), history("user late", *WHOLE)], "turn_order"),
    ],
)
def test_the_checks_of_a_storm_find_what_is_wrong_and_nothing_else(tmp_path, lines, found):
    (tmp_path / "w0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    problems = [problem.partition(":")[0] for problem in Logs(tmp_path).problems(SEED)]
    assert (found in problems) if found else not problems
