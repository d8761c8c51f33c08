"""A run whose process is lost after any of its records, and that somebody else recovers, is the run
of which nothing was lost.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.cancelling import MODES
from tests.random_runs.journeys import CHOICES, SOMETIMES, TURNS, Journey, reference_of
from tests.random_runs.trees import Chat, Custom, Flow, Planned, named, trees

LOST = st.tuples(st.integers(1, 12), st.just("lost"))
ENDS = st.lists(
    st.none() | LOST | LOST | st.tuples(st.integers(0, 8), st.sampled_from(MODES)),
    min_size=1,
    max_size=5,
)


@pytest.mark.slow
@SOMETIMES
@given(tree=trees(), ends=ENDS, choices=CHOICES, room=st.sampled_from((1, 1024)), turns=TURNS)
def test_g08_a_run_whose_process_is_lost_goes_on_from_its_last_record(
    tree, ends, choices, room, turns
):
    reference = reference_of(tree)
    story = Journey(tree, durability="step", event_buffer=room, choices=choices, turns=turns).play(
        ends
    )
    story.check(reference, again=True)


@pytest.mark.parametrize("waits", [2, 3, 4])
def test_g08_a_plan_is_carried_out_to_its_end_whatever_is_recorded_beside_it(waits):
    """What another agent records while the replanner asks its model holds the session's values, and
    not how far the replanner is.
    """
    tree = named(Flow("par", [Planned(2, Chat([])), Custom([("wait", waits), ("say", 0)] * 6)]))
    reference = reference_of(tree)
    for last in range(1, 21):
        story = Journey(tree, durability="step", turns=1).play([(last, "lost")])
        story.check(reference, again="lost" in story.legs)
