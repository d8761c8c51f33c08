"""docs: each program of each page runs as it stands and prints what the page says, each link leads somewhere, each page is in the navigation."""

import ast
import asyncio
import re

import pytest

from tests import pages
from tests.doubles.over import over
from tests.programs import openai_wire as wire

DOCS = pages.ROOT / "docs"
SITE = (DOCS / "mkdocs" / "mkdocs.yml").read_text()
MARKDOWN = [pages.ROOT / "CONTRIBUTING.md", pages.ROOT / "CHANGELOG.md", pages.ROOT / "tests" / "README.md", pages.ROOT / "benchmarks" / "README.md"]
PARTS = 4  # so that they run beside one another


def address(page):
    return str(page.relative_to(DOCS))


@pytest.mark.timeout(pages.PATIENCE + 10)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_programs_of_each_page_run_and_print_what_it_says(part, tmp_path):
    pages.check_programs(pages.PAGES[part::PARTS], tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(pages.PATIENCE + 10)
def test_the_programs_with_a_key_ask_the_model(tmp_path, run):
    async def main():
        async with wire.WireServer(wire.echo) as server:
            settings = {"OPENAI_API_KEY": "the-key", "OPENAI_BASE_URL": server.url}
            done = await asyncio.to_thread(pages.run_programs, pages.PAGES, tmp_path, "with a key", **settings)
            return done, len(server.seen)

    done, asked = run(main())
    for program in done:
        assert program.error is None, f"{program.where}: {program.error}"
        assert program.output.strip(), program.where
    assert asked >= len(done) > 1


@over(pages.PAGES, address)
def test_every_block_of_a_page_is_found_and_marked_as_something_known(page):
    blocks, text = pages.blocks_of(page), page.read_text()
    assert len(blocks) == text.count("```python")
    assert [block.line for block in blocks if not pages.is_known(block.mark)] == []
    pages.check_fragments(page)


@over([*pages.PAGES, *MARKDOWN, pages.README], lambda page: page.name)
def test_each_link_leads_somewhere(page):
    pages.check_links(page)


@over(pages.PAGES, address)
def test_each_program_that_prints_says_what(page):
    """A program without a block of text behind it prints nothing: so it has to hold something itself."""
    for block in pages.blocks_of(page):
        if block.mark in (None, "alone") and block.output is None:
            assert "assert " in block.code, f"line {block.line}"


def test_each_page_is_in_the_navigation_once():
    """Pages that other files of the repository become are named in hooks.py."""
    named = re.findall(r"^ +- (?:[^:#\n]+: )?(\S+\.md)$", SITE[SITE.index("\nnav:") :], re.MULTILINE)
    hooks = ast.parse((DOCS / "mkdocs" / "hooks.py").read_text())
    made = {key for node in hooks.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) for key in ast.literal_eval(node.value)}
    assert len(named) == len(set(named))
    assert set(named) == {address(page) for page in pages.PAGES} | made


def offered(package):
    """What a package offers, read and not imported: some have extras of their own."""
    tree = ast.parse((package / "__init__.py").read_text())
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"]
    return {node.value for one in lists for node in ast.walk(one) if isinstance(node, ast.Constant)}


@over(pages.PAGES, address)
def test_every_name_that_a_page_calls_is_offered_by_a_room(page):
    """Names with a capital that are called in the prose."""
    text = page.read_text()
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    rooms = [init.parent for folder in ("actors", "runtime") for init in [pages.ROOT / folder / "__init__.py", *(pages.ROOT / folder).glob("*/__init__.py")]]
    public = {name for room in rooms if room.name not in ("agents_sdk", "swarm") for name in offered(room)}
    own = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    if page.name.startswith("from-"):
        return  # such a page has the names of what one comes from
    assert set(re.findall(r"`(?:\w+ )?([A-Z]\w+)\(", prose)) - public - own == set()
