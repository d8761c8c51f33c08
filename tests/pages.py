"""How tests read the README and the pages of docs: their blocks of code, how these are run, and
where links lead.

A block of Python is a whole program, unless `<!-- fragment -->` stands before it; one behind `<!--
with a key -->` asks a real model. A block of text right behind a program is what it prints. One
behind `<!-- file: name.py -->` is a module that later programs of the page import; one behind `<!--
alone -->` changes its whole process, which others do not share; one behind `<!-- a part of
examples/name.py -->` is a fragment that this file has in full. Owns no test.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^>]+) "
    r"-->\n)?```python\n(?P<code>.*?)```\n(?:\n?```text\n(?P<output>.*?)```\n)?",
    re.DOTALL,
)
MARKS = {None, "alone", "fragment", "with a key"}
FILE = "file: "
PART = "a part of "
ABOUT_MODELS = re.compile(
    r".*_API_KEY|OPENAI_.*|ARK_.*|AZURE_.*|MODEL_TYPE|.*_proxy|PYTHONWARNINGS", re.IGNORECASE
)
PATIENCE = 170  # seconds for the programs of some pages, on a machine that does much else
ANY_PROGRAM = Path(__file__).parent / "programs" / "run_page.py"


@dataclass(frozen=True)
class Block:
    mark: str | None
    code: str
    output: str | None
    line: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(found["mark"], found["code"], found["output"], text.count("\n", 0, found.start()) + 1)
        for found in BLOCK.finditer(text)
    ]


def is_known(mark: str | None) -> bool:
    return mark in MARKS or (mark or "").startswith((FILE, PART))


def files_of(page: Path) -> dict[str, str]:
    """The modules that a page has its reader save."""
    return {
        block.mark.removeprefix(FILE): block.code
        for block in blocks_of(page)
        if block.mark is not None and block.mark.startswith(FILE)
    }


def environment(**more: str) -> dict[str, str]:
    """Without a key, and without whatever else leads to a model."""
    return {
        name: value for name, value in os.environ.items() if not ABOUT_MODELS.fullmatch(name)
    } | more


def call(code: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run it as a file, in a folder in which there is nothing else."""
    program = folder / "program.py"
    program.write_text(code)
    command = [sys.executable, "-W", "error", str(program)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(**more),
        timeout=50,
    )


def lines(text: str | None) -> list[str]:
    return [line.rstrip() for line in (text or "").splitlines()]


@dataclass(frozen=True)
class Done:
    """What a program has printed and written to stderr, and its error, if it has one."""

    where: str
    block: Block
    output: str
    stderr: str
    error: str | None


def run_programs(
    pages: Iterable[Path], folder: Path, mark: str | None = None, **more: str
) -> list[Done]:
    """Run the programs of some pages in one process, because importing the library takes longer
    than most of them; each in a folder of its own.
    """
    return _run(
        [(page, block) for page in pages for block in blocks_of(page) if block.mark == mark],
        folder,
        more,
    )


def _run(
    programs: Sequence[tuple[Path, Block]], folder: Path, more: Mapping[str, str]
) -> list[Done]:
    given = json.dumps(
        [
            {"name": f"{page.name}, line {block.line}", "code": block.code, "files": files_of(page)}
            for page, block in programs
        ]
    )
    command = [sys.executable, "-P", "-W", "error", str(ANY_PROGRAM), str(folder)]
    ran = subprocess.run(
        command,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment(**more),
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, (
        f"{', '.join(sorted({page.name for page, _ in programs}))}: {ran.stderr or ran.returncode}"
    )
    return [
        Done(f"{page.name}, line {block.line}", block, **done)
        for (page, block), done in zip(programs, json.loads(ran.stdout), strict=True)
    ]


def check_programs(pages: Iterable[Path], folder: Path) -> None:
    """Each program runs as it stands, and prints what its page says."""
    lonely = [(page, block) for page in pages for block in blocks_of(page) if block.mark == "alone"]
    with ThreadPoolExecutor() as several:
        beside = [
            several.submit(_run, [program], Path(mkdtemp(dir=folder)), {}) for program in lonely
        ]
        together = run_programs(pages, folder)
    for done in [*together, *(one for ran in beside for one in ran.result())]:
        assert done.error is None, f"{done.where}: {done.error}"
        assert done.stderr == "", f"{done.where}: {done.stderr}"
        assert lines(done.output) == lines(done.block.output), done.where


def check_fragments(page: Path) -> None:
    """What is no whole program can be read as Python all the same, and the file that it is from is
    there.
    """
    for block in blocks_of(page):
        mark = block.mark or ""
        if mark.startswith(PART):
            assert (ROOT / mark.removeprefix(PART)).is_file(), (
                f"{page.name}, line {block.line}: {mark}"
            )
        if mark == "fragment" or mark.startswith(PART):
            ast.parse(block.code.replace(", ...)", ")"), f"{page.name}, line {block.line}")


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them: signs are left out, spaces become
    hyphens.
    """
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(page: Path) -> None:
    """Each link to a file leads to one that is there, and to a heading that is in it."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[\w.-]+)?\)", text):
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), f"{page.name}: {target}"
        if anchor:
            assert anchor[1:] in anchors(path.read_text()), f"{page.name}: {target}{anchor}"
