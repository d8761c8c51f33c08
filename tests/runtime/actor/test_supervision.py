"""Supervision as data: delays of a backoff, what is refused at once, and the count of restarts that
still matter.
"""

import dataclasses
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from offbook.runtime import Backoff, Escalate, OffbookError, Restart, Resume, Stop, UsageError
from offbook.runtime.actor.supervision import RestartBudget

SECONDS = st.floats(min_value=0, max_value=1e6)
CHANCES = st.floats(min_value=0, max_value=1)
BACKOFFS = st.builds(
    Backoff,
    initial=SECONDS,
    factor=st.one_of(
        st.floats(min_value=1, max_value=1e6), st.integers(min_value=1, max_value=10**6)
    ),
    maximum=SECONDS,
    jitter=CHANCES,
)
ATTEMPTS = st.integers(min_value=0, max_value=5000)


# --- Backoff ---


def test_delays_double_up_to_the_maximum():
    backoff = Backoff(initial=1, factor=2, maximum=10, jitter=0)
    assert [backoff.delay(attempt) for attempt in range(6)] == [1, 2, 4, 8, 10, 10]


def test_jitter_spreads_a_delay_evenly_around_it():
    backoff = Backoff(initial=1, jitter=0.2)
    assert [backoff.delay(0, chance=chance) for chance in (0, 0.5, 1)] == pytest.approx(
        [0.8, 1.0, 1.2]
    )


def test_chance_is_random_unless_it_is_given():
    backoff = Backoff(initial=1, jitter=0.5)
    delays = {backoff.delay(0) for _ in range(50)}
    assert len(delays) > 1
    assert all(0.5 <= delay <= 1.5 for delay in delays)


def test_a_factor_of_one_keeps_the_delay():
    assert {
        Backoff(initial=3, factor=1, jitter=0).delay(attempt) for attempt in (0, 1, 100, 10**6)
    } == {3}


def test_no_delay_at_all_can_be_asked_for():
    assert Backoff(initial=0, jitter=0).delay(7) == 0


@given(BACKOFFS, ATTEMPTS, CHANCES)
def test_a_delay_is_a_number_of_seconds_within_the_bounds(backoff, attempt, chance):
    delay = backoff.delay(attempt, chance=chance)
    assert math.isfinite(delay)
    assert 0 <= delay <= backoff.maximum * (1 + backoff.jitter) * (1 + 1e-9)


@given(BACKOFFS, ATTEMPTS, ATTEMPTS)
def test_a_later_try_never_waits_less_than_an_earlier_one(backoff, one, other):
    assume(one < other)
    assert backoff.delay(one, chance=0.5) <= backoff.delay(other, chance=0.5)


@given(BACKOFFS, ATTEMPTS, CHANCES)
def test_jitter_moves_a_delay_by_no_more_than_its_share(backoff, attempt, chance):
    plain = backoff.delay(attempt, chance=0.5)
    assert (
        abs(backoff.delay(attempt, chance=chance) - plain) <= plain * backoff.jitter + 1e-9 * plain
    )


@pytest.mark.parametrize(
    ("settings", "setting", "advice"),
    [
        ({"initial": -0.1}, "initial=-0.1", "0 or more"),
        ({"maximum": -1}, "maximum=-1", "0 or more"),
        ({"factor": 0.5}, "factor must be", "1 or more"),
        ({"factor": -2}, "factor must be", "1 or more"),
        ({"jitter": -0.1}, "jitter must be", "from 0 to 1"),
        ({"jitter": 1.1}, "jitter must be", "from 0 to 1"),
        ({"initial": math.nan}, "initial=nan", ""),
        ({"maximum": math.nan}, "maximum=nan", ""),
        ({"factor": math.nan}, "factor must be", ""),
        ({"jitter": math.nan}, "jitter must be", "from 0 to 1"),
    ],
    ids=repr,
)
def test_a_backoff_that_makes_no_sense_is_refused(settings, setting, advice):
    with pytest.raises(UsageError) as caught:
        Backoff(**settings)
    assert "Backoff" in str(caught.value)
    assert setting in str(caught.value)
    assert advice in str(caught.value)


# --- Restart ---


@pytest.mark.parametrize(
    ("settings", "setting", "advice"),
    [
        ({"max_restarts": -1}, "max_restarts must be", "0 or more, got -1"),
        ({"within": 0}, "within must be", "above 0, got 0"),
        ({"within": -5.0}, "within must be", "above 0, got -5.0"),
        ({"within": math.nan}, "within must be", "above 0, got nan"),
        ({"backoff": 0.5}, "backoff must be a Backoff", "got 0.5"),
        ({"backoff": None}, "backoff must be a Backoff", "got None"),
    ],
    ids=repr,
)
def test_a_restart_that_makes_no_sense_is_refused(settings, setting, advice):
    with pytest.raises(UsageError) as caught:
        Restart(**settings)
    assert "Restart" in str(caught.value)
    assert setting in str(caught.value)
    assert advice in str(caught.value)


def test_a_refused_setting_is_an_error_of_this_package():
    with pytest.raises(OffbookError):
        Restart(max_restarts=-1)


def test_no_restart_at_all_can_be_asked_for():
    assert RestartBudget().spend(Restart(max_restarts=0), 0.0) is None


@pytest.mark.parametrize(
    "directive", [Restart(), Resume(), Stop(), Escalate(), Backoff()], ids=repr
)
def test_directives_are_values(directive):
    same = type(directive)()
    assert directive == same
    assert hash(directive) == hash(same)
    assert not hasattr(directive, "__dict__")
    for field in dataclasses.fields(directive):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(directive, field.name, 1)


# --- RestartBudget ---


def test_a_budget_says_how_many_restarts_came_before_and_then_that_it_is_spent():
    budget, restart = RestartBudget(), Restart(max_restarts=3, within=60)
    assert [budget.spend(restart, now) for now in (0, 1, 2, 3)] == [0, 1, 2, None]


def test_a_restart_stops_counting_when_the_span_is_over():
    budget, restart = RestartBudget(), Restart(max_restarts=2, within=60)
    assert budget.spend(restart, 0) == 0
    assert budget.spend(restart, 30) == 1
    assert budget.spend(restart, 59.9) is None
    assert budget.spend(restart, 60) == 1, "the first one is a whole span ago"
    assert budget.spend(restart, 89.9) is None
    assert budget.spend(restart, 90) == 1
    assert budget.spend(restart, 1000) == 0, (
        "all are forgotten, and the backoff starts from its beginning"
    )


def test_a_refused_restart_does_not_count():
    budget, restart = RestartBudget(), Restart(max_restarts=1, within=10)
    assert budget.spend(restart, 0) == 0
    assert [budget.spend(restart, now) for now in range(1, 10)] == [None] * 9
    assert budget.spend(restart, 10) == 0


@given(
    st.integers(min_value=0, max_value=5),
    st.integers(min_value=1, max_value=100),
    st.lists(st.integers(min_value=0, max_value=60), max_size=60),
)
def test_there_are_never_more_restarts_in_a_span_than_allowed(most, span, steps):
    budget, restart = RestartBudget(), Restart(max_restarts=most, within=span)
    granted: list[int] = []
    now = 0
    for step in steps:
        now += step
        recent = [instant for instant in granted if now - instant < span]
        attempt = budget.spend(restart, now)
        assert attempt == (len(recent) if len(recent) < most else None), (
            "the budget is what a plain count over all restarts says"
        )
        if attempt is not None:
            granted.append(now)
    for start in granted:
        assert sum(start <= instant < start + span for instant in granted) <= most


@given(
    st.integers(min_value=0, max_value=5),
    st.lists(st.floats(min_value=0, max_value=1e9), max_size=50),
)
def test_a_budget_remembers_no_more_than_it_grants(most, instants):
    budget, restart = RestartBudget(), Restart(max_restarts=most, within=1e12)
    for now in sorted(instants):
        budget.spend(restart, now)
    assert len(budget._instants) <= most
