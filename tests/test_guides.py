"""docs/guides: each program runs as it stands and prints what the page says, and each link leads somewhere."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import openai_wire as wire

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PROGRAM = re.compile(r"(?:<!-- (?P<mark>[^>]+) -->\n)?```python\n(?P<code>.*?)```\n(?:\n?```text\n(?P<output>.*?)```\n)?", re.DOTALL)
FOUND = [(page.stem, number, match) for page in PAGES for number, match in enumerate(PROGRAM.finditer(page.read_text()))]
PROGRAMS = [(page, number, match["code"], match["output"]) for page, number, match in FOUND if match["mark"] is None]
WITH_A_KEY = [(page, number, match["code"]) for page, number, match in FOUND if match["mark"] == "with a key"]


def call(code, folder, **environment):
    program = folder / "program.py"
    program.write_text(code)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ARK_"))} | environment
    return subprocess.run([sys.executable, "-W", "error", str(program)], capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=50)


@pytest.mark.parametrize(("page", "number", "code", "output"), PROGRAMS, ids=[f"{page}-{number}" for page, number, _, _ in PROGRAMS])
def test_a_program_of_a_guide_runs_and_prints_what_it_says(page, number, code, output, tmp_path):
    done = call(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert output is not None, done.stdout
    assert done.stdout.splitlines() == output.splitlines()


@pytest.mark.parametrize(("page", "number", "code"), WITH_A_KEY, ids=[f"{page}-{number}" for page, number, _ in WITH_A_KEY])
def test_a_program_of_a_guide_with_a_key_asks_the_model(page, number, code, tmp_path, run):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            done = await asyncio.to_thread(call, code, tmp_path, OPENAI_API_KEY="the-key", OPENAI_BASE_URL=server.url)
            assert done.returncode == 0, done.stderr
            assert done.stdout.strip()
            assert server.seen

    run(main())


def test_every_program_of_a_guide_is_marked_as_something_known():
    assert {match["mark"] for _, _, match in FOUND} <= {None, "with a key"}


def test_there_is_a_page_for_each_of_what_users_ask_about():
    assert {"cancelling", "retries", "transfers", "handoffs", "limits"} <= {page.stem for page in PAGES}
    assert {page for page, *_ in PROGRAMS} >= {"cancelling", "retries", "transfers", "handoffs", "limits"}


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them: signs are left out, spaces become hyphens."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_link_leads_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[\w.-]+)?\)", page.read_text()):
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), target
        if anchor:
            assert anchor[1:] in anchors(path.read_text())
