"""A run that is cancelled anywhere, in any way, and resumed, is the run that nobody cancelled; what
had completed is not done again.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random_runs.journeys import CHOICES, SOMETIMES, TURNS, Journey, reference_of
from tests.random_runs.trees import OPTIONS, trees


def cancels(*modes):
    return st.lists(
        st.none() | st.tuples(st.integers(0, 8), st.sampled_from(modes)), min_size=1, max_size=5
    )


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["interrupt", "step"])
@SOMETIMES
@given(
    tree=trees(),
    ends=cancels("after_model", "after_tools"),
    choices=CHOICES,
    options=OPTIONS,
    turns=TURNS,
)
def test_a_run_that_is_cancelled_at_a_safe_point_and_resumed_does_nothing_again(
    durability, tree, ends, choices, options, turns
):
    reference = reference_of(tree, **options)
    story = Journey(tree, durability=durability, choices=choices, turns=turns, **options).play(ends)
    story.check(reference)


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["interrupt", "step"])
@SOMETIMES
@given(
    tree=trees(),
    ends=cancels("immediate", "immediate", "after_model", "after_tools"),
    choices=CHOICES,
    options=OPTIONS,
    turns=TURNS,
)
def test_a_run_that_is_cut_short_and_resumed_does_again_only_what_was_under_way(
    durability, tree, ends, choices, options, turns
):
    reference = reference_of(tree, **options)
    story = Journey(tree, durability=durability, choices=choices, turns=turns, **options).play(ends)
    story.check(reference, again=True)
