"""Growth: what is flat and what is linear is said to be, and what should be and is not is said,
too.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.of_growth.answer import Answer, as_markdown
from benchmarks.of_growth.questions import QUESTIONS
from benchmarks.of_growth.worker import MEASURES

ROOT = Path(__file__).parents[2]


def answer(key, exponent):
    return Answer(
        QUESTIONS[key],
        {
            size: [1e-4 * size**exponent * noise for noise in (0.99, 1.0, 1.02)]
            for size in QUESTIONS[key].sizes
        },
    )


def test_each_question_has_what_measures_it():
    assert set(QUESTIONS) == set(MEASURES)


@pytest.mark.parametrize(
    ("key", "exponent", "fine"),
    [
        ("transfers", 0.0, True),
        ("transfers", 0.5, False),
        ("history", 1.0, True),
        ("history", 2.0, False),
    ],
)
def test_growth_is_judged_by_what_it_should_be(key, exponent, fine):
    found = answer(key, exponent)
    assert found.fit.exponent == pytest.approx(exponent, abs=0.01)
    assert found.as_it_should_be is fine
    assert ("NOT as it should be" in found.said) is not fine


def test_a_growth_that_begins_late_is_not_hidden_by_the_sizes_before_it():
    figures = {1: 95e-6, 10: 73e-6, 100: 81e-6, 1_000: 101e-6, 10_000: 199e-6}
    found = Answer(QUESTIONS["at_once"], {size: [figure] for size, figure in figures.items()})
    assert not found.as_it_should_be
    assert found.shape == "less than linear"


def test_the_table_has_each_size_with_its_spread_and_its_ratio_to_the_least():
    shown = as_markdown([answer("history", 1.0)], "# Growth")
    assert "| messages in the history | 10 | 30 | 100 | 300 | 1,000 |" in shown
    assert "| median | 1.00 ms | 3.00 ms | 10.0 ms | 30.0 ms | 100 ms |" in shown
    assert "| to the least size | 1.00x | 3.00x | 10.0x | 30.0x | 100x |" in shown
    assert "990 µs to 1.02 ms" in shown


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_question_is_answered_by_a_tiny_run(tmp_path):
    output = tmp_path / "growth.json"
    command = [sys.executable, "-m", "benchmarks", "growth", "--quick", "--output", str(output)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers = json.loads(output.read_text())["answers"]
    assert [one["question"] for one in answers] == list(QUESTIONS)
    for one in answers:
        assert {int(size) for size in one["rounds"]} == set(QUESTIONS[one["question"]].quick)
        assert all(figure > 0 for figures in one["rounds"].values() for figure in figures)
    assert "exponent" in output.with_suffix(".md").read_text().lower()
    assert 5_000 < output.with_suffix(".png").stat().st_size < 200_000
