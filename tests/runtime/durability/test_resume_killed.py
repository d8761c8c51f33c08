"""A process is killed before a run is interrupted, while it waits for an answer, and after it was
answered: an interrupt is answered once, and not less.
"""

import pytest

from tests.runtime.durability.lives import in_lanes, is_shown, spend

ANSWERED = "offbook:answered:"
ASK = "Worker-0-ask"


def cases_of(leg):
    return [
        ("sqlite", "interrupt", leg, 1, 4),
        ("sqlite", "step", leg, 1, 7),
        pytest.param("sqlite", "interrupt", leg, 1, 1, marks=pytest.mark.slow),
        pytest.param("sqlite", "step", leg, 1, 2, marks=pytest.mark.slow),
        pytest.param("redis", "interrupt", leg, 1, 3, marks=pytest.mark.slow),
        pytest.param("redis", "step", leg, 1, 3, marks=pytest.mark.slow),
        pytest.param("postgres", "interrupt", leg, 1, 6, marks=pytest.mark.slow),
        pytest.param("postgres", "step", leg, 1, 6, marks=pytest.mark.slow),
    ]


def check_refused(attempt, error):
    assert attempt.refused == error
    assert (attempt.begun, attempt.shown, attempt.ended) == ([], [], None), "nothing has run"


def events(*parts):
    """Those of agents; not that the run waits."""
    return [
        event for part in parts for event in part if is_shown(event) and event[4] != "Interrupted"
    ]


def check_together(lives, attempts, whole):
    """The lives and attempts, one behind the other, are the run that nobody has killed."""
    last = lives[-1].recorded["events"]
    shown = [event for attempt in attempts for event in attempt.shown]
    if last:
        seen = [event for event in shown if event not in last]
        assert in_lanes(events(last, seen)) == whole
    else:
        assert in_lanes(events(*(life.shown for life in lives[:-1]), shown)) == whole
    begun = [call for life in lives[:-1] for call in life.begun] + [
        call for attempt in attempts for call in attempt.begun
    ]
    assert len({call[2] for call in begun if call[:2] == ("tool", ASK)}) == 1, (
        "the call that was approved has one key"
    )
    done = lives[-1].done()
    assert not [call for attempt in attempts for call in attempt.begun if call[:2] in done]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "durability", "leg", "first", "step"), cases_of("begin"))
def test_g08_an_interrupt_that_was_shown_can_be_answered_by_another_process(
    store_recipe, tmp_path, kind, durability, leg, first, step
):
    *cases, unharmed = spend(
        "killed_waiting", store_recipe(kind), tmp_path, durability, leg, first, step
    )
    assert unharmed[0].ended[0] == "interrupted"
    answered = unharmed[1].attempts[0]
    assert answered.ended[0] == "completed"
    whole = in_lanes(events(unharmed[0].shown, answered.shown))
    assert len(cases) > 50 / step
    for begun, second, late in cases:
        is_saved = "c" in second.recorded["keys"]
        assert is_saved or not any(event[4] == "Interrupted" for event in begun.shown), (
            "it was saved before it was shown"
        )
        attempts = second.attempts
        if is_saved:
            assert attempts[0].ended == answered.ended
            check_together([begun, second], attempts[:1], whole)
        else:
            check_refused(attempts[0], "CheckpointNotFound")
            if durability == "step" and second.finds_a_run():
                assert attempts[1].ended in (unharmed[0].ended, None), (
                    "it was interrupted, unless all that was missing was the checkpoint"
                )
                assert attempts[2].ended == answered.ended
                check_together([begun, second], attempts[1:], whole)
        check_refused(
            late.attempts[0],
            "ResumeError" if "c" in late.recorded["keys"] else "CheckpointNotFound",
        )


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "durability", "leg", "first", "step"), cases_of("answer"))
def test_g08_an_answer_counts_from_the_first_step_that_was_recorded_after_it(
    store_recipe, tmp_path, kind, durability, leg, first, step
):
    *cases, unharmed = spend(
        "killed_waiting", store_recipe(kind), tmp_path, durability, leg, first, step
    )
    assert unharmed[1].ended[0] == "completed"
    whole = in_lanes(events(unharmed[0].shown, unharmed[1].shown))
    assert len(cases) > 40 / step
    anew = 0
    for begun, second, third, late in cases:
        is_answered = any(key.startswith(ANSWERED) for key in third.recorded["keys"])
        assert is_answered or second.shown == [], (
            "that it was answered was in the store before anything was shown"
        )
        attempts = third.attempts
        if not is_answered:
            anew += 1
            assert attempts[0].ended == unharmed[1].ended
            check_together([begun, second, third], attempts[:1], whole)
        else:
            check_refused(attempts[0], "ResumeError")
            if durability == "step" and third.finds_a_run():
                assert attempts[1].ended == unharmed[1].ended
                check_together([begun, second, third], attempts[1:2], whole)
            if durability == "step":
                check_refused(attempts[2], "ResumeError")
        check_refused(late.attempts[0], "ResumeError")
    assert 0 < anew < len(cases)
