"""What the benchmarks may say of noisy figures, on figures whose truth is known."""

import random

import pytest

from benchmarks.lab.statistics import compare_rounds as compare
from benchmarks.lab.statistics import fit_power, growth_shape, knee_of

DRAWS = 400  # fewer than a run has, so that many runs can be judged


def compare_rounds(first, second, **options):
    return compare(first, second, draws=DRAWS, **options)


def rounds(seed, *, faster=1.0, blocks=10, pairs=6, of_process=0.02, of_round=0.02, of_machine=0.2):
    """Two contenders, the second `faster` by that factor; processes, rounds and the machine under
    both have noise of their own.
    """
    chance = random.Random(seed)
    first, second = [], []
    for _ in range(blocks):
        mine, theirs = chance.gauss(1, of_process), chance.gauss(1, of_process)
        first.append([])
        second.append([])
        for _ in range(pairs):
            machine = 1 + abs(chance.gauss(0, of_machine))
            first[-1].append(100e-6 * mine * machine * chance.gauss(1, of_round))
            second[-1].append(100e-6 / faster * theirs * machine * chance.gauss(1, of_round))
    return first, second


def test_two_that_are_alike_are_hardly_ever_called_different():
    verdicts = [compare_rounds(*rounds(seed)).verdict for seed in range(50)]
    assert sum(verdict != "no difference that this run can see" for verdict in verdicts) <= 2


def test_one_that_is_a_tenth_faster_is_found_and_so_is_the_one_that_is_slower():
    found = [compare_rounds(*rounds(seed, faster=1.1)) for seed in range(20)]
    assert [one.verdict for one in found].count("faster") >= 18
    assert all(one.verdict != "slower" for one in found)
    slower = [compare_rounds(*rounds(seed, faster=1 / 1.1)).verdict for seed in range(20)]
    assert slower.count("slower") >= 18


def test_the_interval_holds_the_ratio_and_says_what_could_not_be_seen():
    one = compare_rounds(*rounds(3, faster=1.05))
    assert one.low <= one.ratio <= one.high
    assert one.low <= 1.05 <= one.high
    assert one.resolution == pytest.approx(max(one.high / one.ratio, one.ratio / one.low) - 1)


def test_a_difference_below_the_least_that_counts_is_none_however_sure():
    quiet = rounds(1, faster=1.01, of_process=0.0, of_round=0.0005, of_machine=0.0)
    assert compare_rounds(*quiet).low > 1
    assert compare_rounds(*quiet).verdict == "no difference that this run can see"
    assert compare_rounds(*quiet, least=0.005).verdict == "faster"


def test_many_rounds_of_two_processes_do_not_make_up_for_few_processes():
    """Each process has a speed of its own: more of its rounds do not make the code's surer."""
    verdicts = [
        compare_rounds(
            *rounds(seed, blocks=8, pairs=20, of_process=0.05, of_round=0.002, of_machine=0.0)
        ).verdict
        for seed in range(40)
    ]
    assert sum(verdict != "no difference that this run can see" for verdict in verdicts) <= 4


def test_the_same_figures_have_the_same_verdict():
    assert compare_rounds(*rounds(5)) == compare_rounds(*rounds(5))


def test_a_comparison_without_rounds_is_refused():
    with pytest.raises(ValueError, match="at least one block"):
        compare_rounds([], [])
    with pytest.raises(ValueError, match="at least one block"):
        compare_rounds([[]], [[]])


@pytest.mark.parametrize(
    ("exponent", "shape"),
    [
        (0.0, "flat"),
        (-0.5, "falling"),
        (0.5, "less than linear"),
        (1.0, "linear"),
        (2.0, "more than linear"),
    ],
)
def test_the_exponent_of_a_power_is_found_and_named(exponent, shape):
    fit = fit_power([(size, 3.0 * size**exponent) for size in (1, 10, 100, 1_000)])
    assert fit.exponent == pytest.approx(exponent)
    assert fit.error == pytest.approx(0, abs=1e-6)
    assert fit.at(50) == pytest.approx(3.0 * 50**exponent)
    assert growth_shape(fit) == shape


def test_the_error_of_an_exponent_grows_with_the_noise():
    chance = random.Random(1)
    noisy = fit_power(
        [(size, size * chance.lognormvariate(0, 0.3)) for size in (1, 3, 10, 30, 100, 300)]
    )
    assert 0.02 < noisy.error < 0.2
    assert abs(noisy.exponent - 1) < 4 * noisy.error


@pytest.mark.parametrize("points", [[], [(1, 1)], [(10, 1), (10, 2)], [(1, 0), (2, 1)]])
def test_an_exponent_of_too_little_is_refused(points):
    with pytest.raises(ValueError, match="two sizes or more"):
        fit_power(points)


def test_the_knee_is_where_the_asymptotes_cross():
    """A system that takes two seconds for a round trip, and does 100 in a second at most."""
    points = [(load, min(load / 2.0, 100.0)) for load in (10, 50, 100, 500, 1_000)]
    knee = knee_of(points, 2.0)
    assert knee.load == pytest.approx(200)
    assert knee.most == 100
    assert knee.reached


def test_a_knee_that_was_not_seen_is_not_claimed():
    knee = knee_of([(load, load / 2.0 * 0.97) for load in (10, 100, 1_000)], 2.0)
    assert not knee.reached
    assert knee.load == pytest.approx(970)
