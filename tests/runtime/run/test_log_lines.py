"""What the log says of runs: at which level, and whose each line is."""

import asyncio
import logging
import subprocess
import sys

import pytest

from offbook.actors import ChatModelAgent, Sequential, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    FailoverModel,
    LogContext,
    MemoryStore,
    RetryModel,
    Runner,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from offbook.runtime.errors import keep_from_logs

mine = logging.getLogger("program")


def chat(name, *script, **options):
    return ChatModelAgent(name=name, description=name, model=ScriptedModel(list(script)), **options)


@tool
def leak() -> str:
    """Fail."""
    raise ValueError("the roof leaks")


async def no_time(seconds):
    """It takes none."""


@pytest.fixture
def lines(caplog):
    """The lines of this package, as the program has them that listens to all: level, logger,
    text.
    """
    caplog.set_level(logging.DEBUG, logger="offbook")
    return lambda level=logging.DEBUG: [
        record
        for record in caplog.records
        if record.name.startswith("offbook.") and record.levelno >= level
    ]


def test_a_run_that_the_programs_code_failed_is_an_error_with_its_traceback_and_where(run, lines):
    async def main():
        return (
            await Runner(
                chat("Roofer", ToolCalls(leak={}), tools=[leak], on_tool_error="raise"),
                store=MemoryStore(),
            )
            .session("s1")
            .query("q", run_id="r1")
        )

    run(main())
    (record,) = lines(logging.WARNING)
    text = record.getMessage()
    assert (record.levelname, record.name) == (
        "ERROR",
        "offbook.run",
    )  # the program's own bug, for error trackers
    assert "the roof leaks" in str(record.exc_info[1])
    assert (record.run_id, record.agent, record.session_id) == ("r1", "Roofer", "s1")
    for part in (
        "Run r1 of Roofer has failed",
        "at agent Roofer",
        f"leak ({__file__}:",
        "ToolError",
        "the roof leaks",
    ):
        assert part in text


def test_an_error_that_is_kept_from_logs_has_no_text_and_no_traceback_there(run, lines):
    def broken(request):
        try:
            raise ConnectionError("card 4711")
        except ConnectionError as error:
            keep_from_logs(error, "not logged here")
            raise LookupError("for card 4711") from error

    async def main():
        result = await Runner(chat("A", broken)).query("q")
        assert "4711" in str(result.error)

    run(main())
    (record,) = lines(logging.WARNING)
    text = record.getMessage()
    assert (record.levelname, "LookupError: not logged here" in text) == ("ERROR", True)
    assert f"broken ({__file__}:" in text
    for record in lines():
        assert ("4711" in record.getMessage(), record.exc_info) == (False, None)


def test_the_failed_agent_of_a_team_is_named(run, lines):
    def broken(request):
        raise ConnectionError("gone")

    async def main():
        return await Runner(
            Sequential(name="Team", sub_agents=[chat("First", "one"), chat("Second", broken)])
        ).query("q")

    run(main())
    (record,) = lines(logging.WARNING)
    assert "of Team has failed at agent Second" in record.getMessage()
    assert f"broken ({__file__}:" in record.getMessage()
    assert record.agent == "Second"


def test_what_a_tool_raises_is_a_warning_with_its_traceback(run, lines):
    async def main():
        return await Runner(
            chat("A", ToolCalls(leak={}), "done", tools=[leak]), store=MemoryStore()
        ).query("q", run_id="r1")

    assert run(main()).text == "done"
    (record,) = lines(logging.INFO)
    assert (record.levelname, record.name, record.run_id, record.agent) == (
        "WARNING",
        "offbook.tools",
        "r1",
        "A",
    )
    assert "of run r1" in record.getMessage()
    assert record.exc_info[0] is ValueError
    assert record.exc_info[2].tb_next is not None
    assert "the roof leaks" in record.getMessage()


def test_a_result_that_cannot_be_serialised_and_a_predicate_that_raises_are_warnings(run, lines):
    def leaks(context, arguments):
        raise ValueError("the roof leaks")

    @tool(needs_approval=leaks)
    def odd() -> object:
        """Return what is no data."""
        return object()

    async def main():
        runner = Runner(chat("A", ToolCalls(odd={}), "done", tools=[odd]), store=MemoryStore())
        result = await runner.query("q", run_id="r1")
        return await runner.approve(result.interrupts[0])

    assert run(main()).text == "done"
    predicate, result = lines(logging.WARNING)
    assert "needs_approval of tool odd has failed" in predicate.getMessage()
    assert "JSON cannot represent" in result.getMessage()
    for record in (predicate, result):
        assert record.run_id == "r1"
        assert "of run r1" in record.getMessage()


def test_an_interrupt_that_no_store_keeps_is_a_warning(run, lines):
    @tool
    def ask(context: ToolContext) -> str:
        """Ask."""
        return context.interrupt("sure?")

    async def main():
        runner = Runner(chat("A", ToolCalls(ask={}), tools=[ask]))
        interrupted = runner.query("q")
        await interrupted
        with pytest.raises(UsageError, match="A run without a store has none"):
            runner.resume(interrupted.checkpoint_id)
        return interrupted.id

    run_id = run(main())
    (record,) = lines(logging.WARNING)
    assert record.run_id == run_id
    assert "it is not stored" in record.getMessage()


def test_arguments_that_are_wrong_are_an_info_without_a_traceback(run, lines):
    @tool
    def count(number: int) -> int:
        """Count."""
        return number

    async def main():
        return await Runner(
            chat("A", ToolCalls(count={"number": "many"}), "done", tools=[count])
        ).query("q")

    run(main())
    (record,) = lines(logging.INFO)
    assert "count" in record.getMessage()
    assert not record.exc_info


def test_tries_and_failovers_are_infos(run, lines):
    flaky = RetryModel(
        ScriptedModel([ConnectionError("busy"), ConnectionError("gone")]), 1, sleep=no_time
    )

    async def main():
        return await Runner(
            ChatModelAgent(name="A", model=FailoverModel([flaky, ScriptedModel(["done"])])),
            store=MemoryStore(),
        ).query("q", run_id="r1")

    assert run(main()).text == "done"
    retried, failed_over = lines(logging.INFO)
    assert "attempt 1 of 2: ConnectionError: busy" in retried.getMessage()
    assert "models[1]" in failed_over.getMessage()
    assert {(record.name, record.run_id, record.agent) for record in (retried, failed_over)} == {
        ("offbook.models", "r1", "A")
    }


def test_a_tool_that_is_called_again_is_an_info(run, lines):
    calls = []

    @tool(retries=1)
    def flaky() -> str:
        """Fail once."""
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("once")
        return "ok"

    async def main():
        return await Runner(chat("A", ToolCalls(flaky={}), "done", tools=[flaky])).query("q")

    run(main())
    (record,) = lines(logging.INFO)
    assert "is called again: attempt 2 of 2" in record.getMessage()


def test_starts_and_ends_are_debug_lines_that_a_filter_finds_by_their_run(run, lines, caplog):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(chat("A", *["done"] * 2), system=system)
            await asyncio.gather(
                runner.query("q", session_id="s1"), runner.query("q", session_id="s2")
            )

    run(main())
    of_one = [record for record in lines() if record.session_id == "s1"]
    texts = [record.getMessage() for record in of_one]
    assert len({record.run_id for record in of_one}) == 1
    assert [text.split()[0] for text in texts] == ["Run", "Agent", "Model", "Model", "Agent", "Run"]
    assert all(record.levelno == logging.DEBUG for record in of_one)
    assert len(lines()) == 2 * len(of_one)


@pytest.mark.parametrize(
    ("set_up", "start"),
    [("", "Run "), ("import logging; logging.basicConfig();", "ERROR:offbook.run:Run ")],
)
def test_an_error_reaches_stderr_also_where_no_logging_is_set_up(set_up, start):
    code = (
        f"{set_up}\nfrom offbook.runtime import Runner, ScriptedModel, ToolCalls; from "
        "offbook.actors import ChatModelAgent, tool\n"
        "@tool\ndef leak() -> str:\n    'Fail.'\n    raise ValueError('the roof leaks')\n"
        "agent = ChatModelAgent(name='a', tools=[leak], "
        "model=ScriptedModel([ToolCalls(leak={})]), on_tool_error='raise')\n"
        "Runner(agent).query('x').result()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    line, second, *_ = done.stderr.splitlines()
    assert line.startswith(start)
    assert "the roof leaks" in line
    assert second == "Traceback (most recent call last):"


@pytest.fixture
def program(caplog):
    """The lines of the program's own logger, stamped."""
    caplog.handler.addFilter(stamp := LogContext())
    caplog.set_level(logging.INFO, logger="program")
    yield lambda: [
        (record.getMessage(), record.run_id, record.agent, record.session_id)
        for record in caplog.records
        if record.name == "program"
    ]
    caplog.handler.removeFilter(stamp)


def test_a_users_line_in_a_tool_says_whose_it_is(run, program):
    @tool
    def in_thread() -> str:
        """In a thread."""
        mine.info("in a thread")
        return "ok"

    @tool
    async def on_loop(context: ToolContext) -> str:
        """On the loop."""
        await asyncio.sleep(0)
        mine.info("on the loop")
        return await context.run_blocking(lambda: mine.info("from there in a thread") or "ok")

    async def main():
        mine.info("outside")
        agent = chat(
            "A", ToolCalls(in_thread={}), ToolCalls(on_loop={}), "done", tools=[in_thread, on_loop]
        )
        await Runner(agent).query("q", run_id=None, session_id="s")
        mine.info("outside again")

    run(main())
    (first, *inside, last) = program()
    assert (first, last) == (("outside", None, None, None), ("outside again", None, None, None))
    assert [line[0] for line in inside] == ["in a thread", "on the loop", "from there in a thread"]
    assert {line[2:] for line in inside} == {("A", "s")}
    assert all(line[1] for line in inside)


def test_a_log_context_lets_the_lines_of_one_run_through(run):
    seen = []

    class Keeping(logging.Handler):
        def emit(self, record):
            seen.append((record.getMessage(), record.agent))

    handler = Keeping()
    handler.addFilter(LogContext(run_id="r1"))
    mine.addHandler(handler)
    mine.setLevel(logging.INFO)

    @tool
    def say(text: str) -> str:
        """Say it."""
        mine.info(text)
        return "ok"

    async def main():
        for run_id in ("r1", "r2"):
            await Runner(
                chat("A", ToolCalls(say={"text": run_id}), "done", tools=[say]), store=MemoryStore()
            ).query("q", run_id=run_id)

    try:
        run(main())
    finally:
        mine.removeHandler(handler)
    assert seen == [("r1", "A")]


def test_what_a_line_says_itself_goes_before():
    record = mine.makeRecord(
        "program", logging.INFO, "f", 1, "hello", (), None, extra={"run_id": "told"}
    )
    assert LogContext().filter(record)
    assert (record.run_id, record.agent) == ("told", None)
    assert not LogContext(run_id="another").filter(record)
