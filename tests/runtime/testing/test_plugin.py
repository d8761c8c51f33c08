"""The fixtures that pytest finds where this package is installed."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, UsageError
from offbook.runtime.testing import ManualClock

pytest_plugins = ["pytester"]


def test_scripted_makes_models_and_memory_runner_keeps_each_step(scripted, memory_runner):
    runner = memory_runner(ChatModelAgent(name="A", model=scripted("hello", "again")))
    assert runner.query("q", run_id="one").result().text == "hello"
    assert runner.query("q", run_id="one").result().text == "hello"
    assert runner.query("q", run_id="two").result().text == "again"


def test_the_manual_clock_is_the_clock_of_a_system(manual_clock):
    assert isinstance(manual_clock, ManualClock)

    async def main():
        async with ActorSystem(clock=manual_clock) as system:
            assert system.clock is manual_clock

    asyncio.run(main())


def test_a_line_that_was_not_used_fails_the_test(pytester):
    pytester.makepyfile("def test_it(scripted):\n    scripted('never said')\n")
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*0 of 1 lines were used*"])


def test_a_reply_that_is_none_is_refused(scripted):
    with pytest.raises(UsageError):
        scripted(3)
