"""docs/guides: each program runs as it stands and prints what the page says, and each link leads somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
PROGRAM = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n?```text\n(?P<output>.*?)```\n)?", re.DOTALL)
PROGRAMS = [(page.stem, number, match["code"], match["output"]) for page in PAGES for number, match in enumerate(PROGRAM.finditer(page.read_text()))]


@pytest.mark.parametrize(("page", "number", "code", "output"), PROGRAMS, ids=[f"{page}-{number}" for page, number, _, _ in PROGRAMS])
def test_a_program_of_a_guide_runs_and_prints_what_it_says(page, number, code, output, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(code)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ARK_"))}
    done = subprocess.run([sys.executable, "-W", "error", str(program)], capture_output=True, text=True, check=False, cwd=tmp_path, env=env, timeout=50)
    assert (done.returncode, done.stderr) == (0, "")
    assert output is not None, done.stdout
    assert done.stdout.splitlines() == output.splitlines()


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
