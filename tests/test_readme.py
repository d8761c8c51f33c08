"""The README: its programs run as they stand and print what it says, and what it names is there."""

import asyncio
import re

import pytest

import understudy.actors
import understudy.runtime
import understudy.runtime.a2a
import understudy.runtime.testing
from tests import pages
from tests.doubles.over import over
from tests.programs import openai_wire as wire

ROOT = pages.ROOT
TEXT = pages.README.read_text()
BLOCKS = pages.blocks_of(pages.README)
PROGRAMS = [block for block in BLOCKS if block.mark is None]
FIRST_AGENT_LINES = 20
SECTIONS = 12
TEN_MINUTES = 480  # lines


def test_every_block_is_found_and_marked_as_something_known():
    assert len(BLOCKS) == TEXT.count("```python")
    assert {block.mark for block in BLOCKS} <= pages.MARKS
    assert sum(block.output is not None for block in BLOCKS) == TEXT.count("```text")


@pytest.mark.timeout(pages.PATIENCE + 10)
def test_its_programs_run_and_print_what_it_says(tmp_path):
    pages.check_programs([pages.README], tmp_path)


def test_it_can_be_read_in_ten_minutes():
    """Twelve sections, each with one program; what is beyond them is in docs."""
    assert len(TEXT.splitlines()) <= TEN_MINUTES
    sections = re.findall(r"^## \d+\. .*?(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
    assert [section.count("```python") for section in sections] == [1] * SECTIONS


def test_its_table_of_contents_has_each_section():
    contents = TEXT[TEXT.index("**Begin:**") : TEXT.index("## Two commands")]
    headings = re.findall(r"^## (.+)$", re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL), re.MULTILINE)
    assert [pages.anchors(f"## {heading}").pop() for heading in headings] == re.findall(r"\(#([\w-]+)\)", contents)


def test_the_first_agent_takes_less_than_twenty_lines():
    assert len(PROGRAMS[0].code.splitlines()) < FIRST_AGENT_LINES


def test_the_first_agent_asks_a_real_model_with_the_change_that_is_named(tmp_path, run):
    (replacement,) = re.findall(r"write `(model=.+?)` in place of `model=ScriptedModel\(...\)`", TEXT)
    code, changed = re.subn(r"model=ScriptedModel\(.+\)(?=,\n)", replacement, PROGRAMS[0].code)
    assert changed == 1

    async def main():
        async with wire.WireServer(wire.echo) as server:
            done = await asyncio.to_thread(pages.call, code, tmp_path, OPENAI_API_KEY="the-key", OPENAI_BASE_URL=server.url)
            return done, server.seen

    done, seen = run(main())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "25°C and sunny in example"  # the first tool's result, which the server says back
    assert seen[0].headers["authorization"] == "Bearer the-key"
    assert [tool["function"]["name"] for tool in seen[0].body["tools"]] == ["get_weather"]


def test_the_service_answers(tmp_path):
    (block,) = (block for block in PROGRAMS if "FastAPI(" in block.code)
    driver = """
import asyncio
import httpx

async def main():
    async with lifespan(app), httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
        for _ in range(3):
            answer = await client.post("/questions", params={"question": "When?"})
            print(answer.status_code, answer.json() if answer.status_code == 200 else "")

asyncio.run(main())
"""
    done = pages.call(block.code + driver, tmp_path)
    assert done.returncode == 0, done.stderr
    assert pages.lines(done.stdout) == ["200 It is at eight.", "200 Yes.", "502"]


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
    for path in re.findall(r"(?<![\w/])(?:actors|benchmarks|examples|runtime|tests)/[\w/]*\w+\.(?:py|md)", text):
        assert (ROOT / path).is_file(), path
    for path in re.findall(r"`((?:actors|runtime|tests)/[\w/]+)/`", text):
        assert (ROOT / path).is_dir(), path


@pytest.mark.parametrize("room", ["actors", "runtime"])
def test_its_map_has_every_file_of_a_room(room):
    rows = TEXT[TEXT.index("## The map") :]
    tables = [part for part in re.split(r"\n\n", rows) if part.startswith(f"| in `{room}/`")]
    named = {name for table in tables for name in re.findall(r"`(\w+)(?:\.py|/)`", table)} - {room}
    here = {path.stem for path in (ROOT / room).iterdir() if path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())}
    assert named == here


def test_every_name_that_it_calls_is_public():
    """Names with a capital that are called in the prose, and all that its programs import."""
    public = {*understudy.actors.__all__, *understudy.runtime.__all__, *understudy.runtime.a2a.__all__, *understudy.runtime.testing.__all__}
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    called = set(re.findall(r"`(?:\w+ )?([A-Z]\w+)\(", prose)) | set(re.findall(r"`([A-Z]\w+(?:Error|Model|Options|Agent|Hooks))`", prose))
    own = set(re.findall(r"^class (\w+)", TEXT, re.MULTILINE))
    assert called - public - own == set()
