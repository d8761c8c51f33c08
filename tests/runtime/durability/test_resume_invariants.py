"""A run that is interrupted anywhere, any number of times, and goes on elsewhere each time, is the
run in which nobody had to wait.
"""

import pytest
from hypothesis import given

from tests.random_runs.journeys import CHOICES, SOMETIMES, TURNS, Journey, reference_of
from tests.random_runs.trees import OPTIONS, trees


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@SOMETIMES
@given(tree=trees(), choices=CHOICES, options=OPTIONS, turns=TURNS)
def test_a_run_that_is_interrupted_and_resumed_is_the_run_that_never_had_to_wait(
    durability, tree, choices, options, turns
):
    reference = reference_of(tree, **options)
    story = Journey(tree, durability=durability, choices=choices, turns=turns, **options).play()
    story.check(reference)
