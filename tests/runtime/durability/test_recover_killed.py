"""A process is killed with SIGKILL in the middle of a run, at every point of it; another one goes
on with the run, and is killed as well; and then a third.
"""

from collections import Counter

import pytest

from tests.runtime.durability.lives import in_lanes, is_shown, spend

JOURNAL = "offbook:journal:"


def check(lives, whole):
    there = [life for life in lives[1:] if life.finds_a_run()]
    if not there and lives[0].ended is None and not lives[0].shown:
        assert [life.begun for life in lives] == [[], [], []], (
            "it was killed before the run had begun"
        )
    else:
        for before, after in zip(lives, there, strict=False):
            check_step(before, after)
        at_end = ([lives[0], *there])[-1]
        if at_end.ended is None:
            assert (
                at_end.killed.startswith(("before revoke", "after revoke"))
                or f" remove {JOURNAL}" in at_end.killed
            ), "it was killed when all was over"
            at_end.shown += whole.shown[
                len(at_end.shown) + len(list(filter(is_shown, at_end.recorded["events"]))) :
            ][:1]  # its last event was not taken yet
        else:
            assert at_end.ended == whole.ended
        assert in_lanes(filter(is_shown, [*at_end.recorded["events"], *at_end.shown])) == in_lanes(
            whole.shown
        )
        assert {call[:2] for life in lives for call in life.begun} == {
            call[:2] for call in whole.begun
        }
    keys = {}
    for kind, name, *key in (call for life in lives for call in life.begun):
        if kind == "tool":
            assert keys.setdefault(name, key) == key, "a call that is made again has the same key"
    assert lives[-1].left == [], "nothing of the run is left in the store"


def check_step(before, after):
    """From one life to the next."""
    events = after.recorded["events"]
    assert events[: len(before.recorded["events"])] == before.recorded["events"], (
        "no recorded step is lost"
    )
    assert all(event in events for event in before.shown), "what was shown was in the store before"
    assert [event[0] for event in events if is_shown(event)] == list(
        range(1, 1 + len(list(filter(is_shown, events))))
    )
    again = [call for call in after.begun if call[:2] in after.done()]
    assert again == [], "it was made, and recorded"
    assert max(Counter(call[:2] for call in after.begun).values(), default=1) == 1


CASES = [
    ("sqlite", 1, 4),
    *(pytest.param("sqlite", first, 4, marks=pytest.mark.slow) for first in (2, 3, 4)),
    ("redis", 2, 13),
    pytest.param("redis", 1, 3, marks=pytest.mark.slow),
    ("postgres", 3, 19),
    pytest.param("postgres", 1, 3, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "first", "step"), CASES)
def test_g08_a_run_that_is_killed_at_any_point_goes_on_from_what_was_recorded(
    store_recipe, tmp_path, kind, first, step
):
    (whole,), *cases = spend("killed", store_recipe(kind), tmp_path, first, step)
    assert whole.ended[0] == "completed"
    assert len(cases) > 150 / step
    killed = Counter()
    for lives in cases:
        check(lives, whole)
        killed.update(life.killed.split()[0] for life in lives if life.killed is not None)
    assert set(killed) == {"before", "after", "begin", "end", "shown"} or step > 10
    assert cases[-1][0].killed is None
