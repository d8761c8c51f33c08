"""The README: its programs run as they stand and print what it says, and what it names is there.

A block of Python is a whole program, unless `<!-- fragment -->` stands before it; one behind `<!-- with a key -->` asks a real model. What stands in a
block of text right behind a program is what it prints.
"""

import ast
import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import understudy.actors
import understudy.runtime
import understudy.runtime.a2a
import understudy.runtime.testing
from tests.programs import openai_wire as wire

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]+) -->\n)?```python\n(?P<code>.*?)```\n(?:```text\n(?P<output>.*?)```\n)?", re.DOTALL)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(TEXT)]
PROGRAMS = [block for block in BLOCKS if block["mark"] is None]
WITH_A_KEY = [block for block in BLOCKS if block["mark"] == "with a key"]
ABOUT_MODELS = re.compile(r".*_API_KEY|OPENAI_.*|ARK_.*|AZURE_.*|MODEL_TYPE|.*_proxy|PYTHONWARNINGS", re.IGNORECASE)
FIRST_AGENT_LINES = 20


def title_of(block):
    """The heading under which it stands."""
    heading = re.findall(r"^##? ([A-Z].+)$", TEXT[: TEXT.index(block["code"])], re.MULTILINE)[-1]
    return heading.lower().replace(" ", "-")


def call(code, folder, **environment):
    """Run it as a file, in a folder in which there is nothing else."""
    program = folder / "program.py"
    program.write_text(code)
    env = {name: value for name, value in os.environ.items() if not ABOUT_MODELS.fullmatch(name)} | environment
    command = [sys.executable, "-W", "error", str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=50)


def without_trailing_spaces(text):
    return [line.rstrip() for line in text.splitlines()]


def test_every_block_is_found_and_marked_as_something_known():
    assert len(BLOCKS) == TEXT.count("```python")
    assert {block["mark"] for block in BLOCKS} == {None, "fragment", "with a key"}
    assert sum(block["output"] is not None for block in BLOCKS) == TEXT.count("```text")


@pytest.mark.parametrize("block", PROGRAMS, ids=title_of)
def test_a_program_of_the_readme_runs_and_prints_what_it_says(block, tmp_path):
    done = call(block["code"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert without_trailing_spaces(done.stdout) == without_trailing_spaces(block["output"] or "")


@pytest.mark.parametrize("block", [block for block in BLOCKS if block["mark"] == "fragment"], ids=title_of)
def test_a_fragment_of_the_readme_can_be_read(block):
    ast.parse(block["code"].replace(", ...)", ")"))


def test_the_first_agent_takes_less_than_twenty_lines():
    assert len(PROGRAMS[0]["code"].splitlines()) < FIRST_AGENT_LINES


@pytest.mark.parametrize("block", WITH_A_KEY, ids=title_of)
def test_a_program_with_a_key_asks_the_model(block, tmp_path, run):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            done = await asyncio.to_thread(call, block["code"], tmp_path, OPENAI_API_KEY="the-key", OPENAI_BASE_URL=server.url)
            return done, server.seen

    done, seen = run(main())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "25°C and sunny in example"  # the first tool's result, which the server says back
    assert seen[0].headers["authorization"] == "Bearer the-key"
    assert [tool["function"]["name"] for tool in seen[0].body["tools"]] == ["get_weather"]


def test_the_service_answers(tmp_path):
    (block,) = (block for block in PROGRAMS if "FastAPI(" in block["code"])
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
    done = call(block["code"] + driver, tmp_path)
    assert done.returncode == 0, done.stderr
    assert without_trailing_spaces(done.stdout) == ["200 It is at eight.", "200 Yes.", "502"]


@pytest.mark.parametrize("name", ["demo", "test"])
def test_its_commands_are_there_for_the_checks_to_find(name):
    (command,) = re.findall(rf"^<!-- command: {name} -->\n```sh\n(.+?)\n```$", TEXT, re.MULTILINE)
    for path in re.findall(r"examples/\w+\.py", command):
        assert (ROOT / path).is_file()


def test_every_file_that_it_names_is_there():
    for pattern in re.findall(r"`(test_g\d+_\*\.py)`", TEXT):
        assert list((ROOT / "tests").rglob(pattern)), pattern
    for path in re.findall(r"(?:examples|benchmarks)/\w+\.(?:py|md)", TEXT):
        assert (ROOT / path).is_file(), path


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
    from_elsewhere = {"CancelledError"}
    own = set(re.findall(r"^class (\w+)", TEXT, re.MULTILINE))
    assert called - public - own - from_elsewhere == set()
