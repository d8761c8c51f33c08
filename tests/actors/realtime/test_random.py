"""What holds of every conversation that is spoken, however the network behaves."""

import pytest

from tests.random_runs.talks import Talk

KNOWN = (21, 32, 34, 131, 196, 279)  # with which something was wrong once


@pytest.mark.timeout(120)
def test_each_call_has_one_output_and_both_sides_hold_the_same_whatever_the_network_does(run):
    async def main():
        for seed in (*KNOWN, *range(1_000, 1_002)):
            await Talk(seed).play()

    run(main())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_each_call_has_one_output_in_many_conversations(run):
    async def main():
        for seed in range(60):
            await Talk(seed).play()

    run(main())
