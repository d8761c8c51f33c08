"""The rules of owners, claims and writes, in every order in which things can happen to two
processes: what is promised holds, and with any mistake it does not.
"""

import re

import pytest

from tests.runtime.durability.ownership_model import LIVES, MUTANTS, STEPS, Broken, Model, hopeless

# Crashes, times that are over, writes that arrive twice: as many as can be gone through in a second
# or two, in every mixture. The fourth number is of failovers to a replica that has lost the last
# writes.
SMALL = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 1), (0, 0, 0, 1)]
LARGE = [(1, 1, 0), (0, 2, 0), (1, 0, 0, 1), (0, 1, 0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("faults", [*SMALL, *LARGE], ids=str)
def test_g13_whatever_happens_to_two_processes_one_of_them_writes_and_each_step_is_written_once(
    faults,
):
    reached = Model(*faults).explore(keep=False)
    assert max(len(state.store.journal) for state in reached) == len(STEPS)
    assert any(state.store.ended for state in reached)
    assert faults in ((0, 0, 1), (0, 0, 0, 1)) or any(
        state.processes[0].life == LIVES - 1 and state.store.ended for state in reached
    )


@pytest.mark.slow
@pytest.mark.parametrize("faults", SMALL, ids=str)
def test_g13_from_wherever_a_run_is_left_it_can_be_brought_to_its_end(faults):
    assert hopeless(Model(*faults).explore()) == []


@pytest.mark.parametrize(("mistake", "promise"), MUTANTS.items())
def test_g13_each_mistake_in_the_rules_breaks_a_promise(mistake, promise):
    with pytest.raises(Broken) as caught:
        for faults in (*SMALL, *LARGE):
            Model(*faults, mistake=mistake).explore(keep=False)
    assert re.search(promise, str(caught.value)), caught.value


def test_g13_a_call_that_was_under_way_may_happen_twice_under_one_key():
    """The limit of what is promised: a process that stands still between its look at its lease and
    the call makes the call when it goes on.
    """
    late = 0
    for state, following in Model(0, 1, 0).explore().items():
        for action, _ in following:
            process = state.processes[action.who] if action.name == "call" else None
            late += process is not None and any(
                epoch > process.epoch for _, epoch in state.store.journal
            )
    assert late > 0
