"""What ids, names and texts from outside do to a log record and to a suggested command: nothing but
to be read.
"""

import logging
import subprocess

import pytest

from offbook.runtime import LogContext
from offbook.runtime.cli.terminal.shell import suggested
from offbook.runtime.log import loggers

FORGED = "r\nWARNING offbook.run: all is well\x1b[2J\u202e"
SHOWN = "r\\nWARNING offbook.run: all is well\\u001b[2J\\u202e"


def test_a_record_is_one_line_whatever_is_in_its_values(caplog):
    loggers.run.warning(
        "Run %s of %s: %r: %d", FORGED, ValueError(FORGED), [FORGED], 7, extra={"run_id": FORGED}
    )
    (record,) = caplog.records
    assert record.getMessage().startswith(f"Run {SHOWN} of {SHOWN}: ")
    assert record.getMessage().endswith(": 7")
    assert record.getMessage().isprintable()
    assert record.run_id == SHOWN


def test_a_log_context_stamps_what_is_one_line_and_still_finds_it_by_its_id():
    handler = logging.Handler()
    handler.addFilter(LogContext(run_id=FORGED))
    record = logging.LogRecord("program", logging.INFO, "", 0, "mine", (), None)
    record.run_id = FORGED
    assert handler.filter(record)
    assert record.run_id == SHOWN


@pytest.mark.parametrize(
    "word", ["a b", "$(touch x)", "it's; ls", "a\nb", "a\\n'\tb", "-x", "", "\u202eé", "--store"]
)
def test_a_suggested_command_is_pasted_as_it_is_meant(word):
    text = suggested("resume", word, "agents.py:a", store="my runs.db")
    assert text.isprintable()
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8"},
    )
    *words, _ = done.stdout.decode().split("\0")
    wanted = ["offbook", "resume", word, "agents.py:a", "--store", "my runs.db"]
    assert words == (
        wanted
        if not word.startswith("-")
        else ["offbook", "resume", "--store", "my runs.db", "--", word, "agents.py:a"]
    )
