"""`python -m benchmarks` finds its benchmarks by a convention, and imports none of them to list
them.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.lab.catalogue import catalogue

ROOT = Path(__file__).parents[2]


def call(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_the_list_has_a_line_for_each_benchmark():
    done = call()
    assert done.returncode == 0, done.stderr
    listed = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.stdout.splitlines()[2:]}
    assert listed == catalogue()
    assert {"actors", "agents", "durable", "peers", "load", "compare", "growth"} <= set(listed)


def test_a_module_with_a_function_main_is_a_benchmark_even_if_its_library_is_missing(tmp_path):
    (tmp_path / "fast.py").write_text(
        '"""How fast it is.\n\nMore of it.\n"""\nimport no_such_library\n\n\ndef main() -> '
        "None: ...\n"
    )
    (tmp_path / "parts.py").write_text('"""No benchmark: it has no main."""\n')
    (tmp_path / "_hidden.py").write_text('"""Private."""\ndef main() -> None: ...\n')
    assert catalogue(tmp_path) == {"fast": "How fast it is."}


def test_a_name_that_there_is_not_is_refused_with_those_that_there_are():
    done = call("actor")
    assert done.returncode == 1
    assert "no benchmark 'actor'" in done.stderr
    assert "actors, agents" in done.stderr


def test_a_benchmark_is_run_with_its_own_options():
    done = call("growth", "--help")
    assert done.returncode == 0
    assert "python -m benchmarks growth" in done.stdout
    assert "--rounds" in done.stdout


@pytest.mark.slow
def test_a_benchmark_can_be_run_by_its_path_as_well():
    for name in catalogue():
        command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), "--help"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT.parent)
        assert done.returncode == 0, (name, done.stderr)
        assert "usage: " in done.stdout
