"""A figure in a process of its own: it comes from the last line, and a process that fails or hangs
is ended and said to.
"""

import sys

import pytest

from benchmarks.lab.process import ProcessFailed, in_process


@pytest.fixture
def program(tmp_path):
    """An interpreter that runs that text, whatever module it is asked for."""

    def make(text):
        script, interpreter = tmp_path / "program.py", tmp_path / "python"
        script.write_text(text)
        interpreter.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        interpreter.chmod(0o755)
        return interpreter

    return make


def test_the_last_line_is_the_figure_whatever_a_library_prints_before(program):
    text = (
        'import json, sys\nprint("a library says hello")\nprint(json.dumps({"asked": '
        "sys.argv[1:]}))\n"
    )
    assert in_process("benchmarks.some", "a", "1", interpreter=program(text)) == {
        "asked": ["-m", "benchmarks.some", "a", "1"]
    }


def test_a_process_that_fails_is_reported_with_what_it_said_last(program):
    with pytest.raises(ProcessFailed, match=r"(?s)benchmarks.some a ended with 3:.*it is broken"):
        in_process(
            "benchmarks.some",
            "a",
            interpreter=program(
                'import sys\nprint("it is broken", file=sys.stderr)\nsys.exit(3)\n'
            ),
        )


@pytest.mark.slow
def test_a_process_that_hangs_is_ended_with_its_children(program, tmp_path):
    born = tmp_path / "born"
    text = (
        "import os, subprocess, time\nchild = subprocess.Popen(['sleep', "
        f"'600'])\nopen({str(born)!r}, 'w').write(str(child.pid))\ntime.sleep(600)\n"
    )
    with pytest.raises(ProcessFailed, match="was not done after 5 s"):
        in_process("benchmarks.some", interpreter=program(text), timeout=5)
    import psutil

    child = int(born.read_text())
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_bytecode_is_written_by_what_is_measured_whatever_the_machine_is_set_to(
    program, monkeypatch
):
    """A library that imports while it runs would compile what it imports each time."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert in_process(
        "benchmarks.some",
        interpreter=program(
            'import sys\nprint("false" if sys.dont_write_bytecode else \'{"written": true}\')\n'
        ),
    ) == {"written": True}
