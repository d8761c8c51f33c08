"""The README: its programs run as they stand and print what it says, and what it names is there."""

import asyncio
import re
import signal
import subprocess
import sys

import pytest

import offbook.actors
import offbook.runtime
import offbook.runtime.a2a
import offbook.runtime.testing
from tests import pages
from tests.doubles.over import over
from tests.programs import openai_wire as wire

ROOT = pages.ROOT
TEXT = pages.README.read_text()
BLOCKS = pages.blocks_of(pages.README)
(FIRST,) = (block for block in BLOCKS if block.mark == "with a key")
FIRST_AGENT_LINES = 20
LONGEST = 280  # lines


def test_every_block_is_found_and_marked_as_something_known():
    assert len(BLOCKS) == TEXT.count("```python")
    assert all(pages.is_known(block.mark) for block in BLOCKS)
    assert sum(block.output is not None for block in BLOCKS) == TEXT.count("```text")


@pytest.mark.timeout(pages.PATIENCE + 10)
def test_its_programs_run_and_print_what_it_says(tmp_path):
    pages.check_programs([pages.README], tmp_path)


def test_what_is_typed_in_a_terminal_prints_what_it_shows(tmp_path):
    for name, code in pages.files_of(pages.README).items():
        (tmp_path / name).write_text(code)
    sessions = re.findall(r"```console\n(.+?)```", TEXT, re.DOTALL)
    assert len(sessions) == 2
    for session in sessions:
        for command, shown in re.findall(
            r"^\$ python (\S+)\n((?:(?!\$).*\n)*)", session, re.MULTILINE
        ):
            call = (sys.executable, "-u", "-W", "error", command)
            done = subprocess.run(
                call,
                capture_output=True,
                text=True,
                check=False,
                cwd=tmp_path,
                env=pages.environment(),
                timeout=50,
            )
            expected = pages.lines(shown)
            if expected[-1:] == ["Killed"]:  # so says the shell
                assert done.returncode == -signal.SIGKILL
                expected.pop()
            else:
                assert done.returncode == 0, done.stderr
            assert pages.lines(done.stdout) == expected


def test_it_is_short():
    assert len(TEXT.splitlines()) <= LONGEST


def test_the_first_agent_takes_less_than_twenty_lines():
    assert len(FIRST.code.splitlines()) < FIRST_AGENT_LINES


def test_the_first_agent_asks_a_real_model(tmp_path, run):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            done = await asyncio.to_thread(
                pages.call,
                FIRST.code,
                tmp_path,
                OPENAI_API_KEY="the-key",
                OPENAI_BASE_URL=server.url,
            )
            return done, server.seen

    done, seen = run(main())
    assert done.returncode == 0, done.stderr
    # The first tool's result, which the server says back.
    assert done.stdout.strip() == "25°C and sunny in example"
    assert seen[0].headers["authorization"] == "Bearer the-key"
    assert [tool["function"]["name"] for tool in seen[0].body["tools"]] == ["get_weather"]


@pytest.mark.parametrize("name", ["demo", "test"])
def test_its_commands_are_there_for_the_checks_to_find(name):
    (command,) = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.+?)\n```$", TEXT, re.MULTILINE)
    for path in re.findall(r"examples/\w+\.py", command):
        assert (ROOT / path).is_file()


@over([pages.README, pages.ROOT / "CONTRIBUTING.md", *pages.PAGES], lambda page: page.name)
def test_every_file_that_it_or_a_page_names_is_there(page):
    text = page.read_text()
    for pattern in re.findall(r"`(test_g\d+_\*\.py)`", text):
        assert list((ROOT / "tests").rglob(pattern)), pattern
    for path in re.findall(
        r"(?<![\w/])(?:actors|benchmarks|examples|runtime|tests)/[\w/]*\w+\.(?:py|md)", text
    ):
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"`((?:actors|runtime|tests)/[\w/]+)/`", text):
        assert (ROOT / path).is_dir(), path


def test_every_name_that_it_calls_is_public():
    """Names with a capital that are called in the prose, and all that its programs import."""
    public = {
        *offbook.actors.__all__,
        *offbook.runtime.__all__,
        *offbook.runtime.a2a.__all__,
        *offbook.runtime.testing.__all__,
    }
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    called = set(re.findall(r"`(?:\w+ )?([A-Z]\w+)\(", prose)) | set(
        re.findall(r"`([A-Z]\w+(?:Error|Model|Options|Agent|Hooks))`", prose)
    )
    own = set(re.findall(r"^class (\w+)", TEXT, re.MULTILINE))
    assert called - public - own == set()
