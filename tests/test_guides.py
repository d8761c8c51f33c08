"""docs: each program of each page runs as it stands and prints what the page says, each link leads
somewhere, each page is in the navigation.
"""

import ast
import asyncio
import configparser
import importlib
import importlib.util
import re
import sys

import pytest

from tests import pages
from tests.doubles.over import over
from tests.programs import openai_wire as wire

DOCS = pages.ROOT / "docs"
SITE = (DOCS / "mkdocs" / "mkdocs.yml").read_text()
MARKDOWN = [
    pages.ROOT / "CONTRIBUTING.md",
    pages.ROOT / "CHANGELOG.md",
    pages.ROOT / "tests" / "README.md",
    pages.ROOT / "benchmarks" / "README.md",
]
PARTS = 4  # so that they run beside one another


def load(name):
    """A module of the site, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "mkdocs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


api_pages = load("api_pages")


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
            done = await asyncio.to_thread(
                pages.run_programs, pages.PAGES, tmp_path, "with a key", **settings
            )
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
    """A program without a block of text behind it prints nothing: so it has to hold something
    itself.
    """
    for block in pages.blocks_of(page):
        if block.mark in (None, "alone") and block.output is None:
            assert "assert " in block.code, f"line {block.line}"


def navigation():
    """The label of each page, by its address."""
    rows = re.findall(r"^ +- (.+): (\S+\.md)$", SITE[SITE.index("\nnav:") :], re.MULTILINE)
    assert len({page for _, page in rows}) == len(rows)
    return {page: label for label, page in rows}


def assigned(name, file):
    """A literal that a module of the site assigns."""
    tree = ast.parse((DOCS / "mkdocs" / file).read_text())
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    return ast.literal_eval(value)


def repository_pages():
    """The files of the repository that are pages, by their addresses."""
    return {page: pages.ROOT / path for page, path in assigned("PAGES", "hooks.py").items()}


def test_each_page_is_in_the_navigation_once():
    """Files of the repository that become pages are named in hooks.py; the API is generated."""
    made = {*repository_pages(), *api_pages.pages()}
    assert set(navigation()) == {address(page) for page in pages.PAGES} | made


def test_no_page_has_two_names():
    """The navigation uses the title of each page."""
    generated = api_pages.pages()
    for page, label in navigation().items():
        if page == "index.md":
            continue
        text = generated.get(page) or repository_pages().get(page, DOCS / page).read_text()
        title = text.partition("\n")[0].removeprefix("# ").replace("`", "")
        assert title in (label, f"Migrate from {label}"), page


def test_the_index_for_language_models_lists_each_page():
    """The pages of single packages are reached from the source itself."""
    listed = set(re.findall(r"^- \[.+?\]\((\S+?)\)", (DOCS / "llms.txt").read_text(), re.MULTILINE))
    files = {f"../{path.relative_to(pages.ROOT)}" for path in repository_pages().values()}
    assert listed == {address(page) for page in pages.PAGES} | files


def test_the_cookbook_has_twelve_recipes_each_with_a_program():
    recipes = [page for page in pages.PAGES if page.parent.name == "cookbook"]
    assert len(recipes) == 12
    for page in recipes:
        assert any(block.mark is None for block in pages.blocks_of(page)), page.name


def test_every_public_package_and_name_is_in_the_python_api():
    """Public is whatever the documentation and the examples import."""
    texts = [*pages.PAGES, pages.README, *(pages.ROOT / "examples").rglob("*.py")]
    found = [
        re.findall(r"^ *from (offbook[\w.]*) import", text.read_text(), re.MULTILINE)
        for text in texts
    ]
    packages = {package.name: package for package in api_pages.PACKAGES}
    assert {name for names in found for name in names} - {"offbook.actors.swarm.repl"} <= set(
        packages
    )
    made = api_pages.pages()
    for name, package in packages.items():
        module = importlib.import_module(name)
        shown = made[package.page]
        for public in module.__all__:
            if not public.startswith("__"):
                assert f"::: {name}.{public}\n" in shown or f"| [`{public}`][" in shown, (
                    name,
                    public,
                )


def test_the_installation_page_lists_every_extra():
    setup = configparser.ConfigParser()
    setup.read(pages.ROOT / "setup.cfg")
    rows = re.findall(r"^\| `([\w-]+)` \|", (DOCS / "install.md").read_text(), re.MULTILINE)
    assert set(rows) == set(setup["options.extras_require"])


def test_every_table_has_headers():
    for page in [*pages.PAGES, pages.README]:
        if page.name == "scaling.md":
            continue
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for header in re.findall(r"^(\|.*\|)\n\|[-| :]+\|$", text, re.MULTILINE):
            assert all(cell.strip() for cell in header.strip("|").split("|")), (page.name, header)


def offered(package):
    """What a package offers, read and not imported: some have extras of their own."""
    tree = ast.parse((package / "__init__.py").read_text())
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return {node.value for one in lists for node in ast.walk(one) if isinstance(node, ast.Constant)}


@over(pages.PAGES, address)
def test_every_name_that_a_page_calls_is_offered_by_a_room(page):
    """Names with a capital that are called in the prose."""
    text = page.read_text()
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    rooms = [
        init.parent
        for folder in ("actors", "runtime")
        for init in [
            pages.ROOT / folder / "__init__.py",
            *(pages.ROOT / folder).glob("*/__init__.py"),
        ]
    ]
    public = {
        name for room in rooms if room.name not in ("agents_sdk", "swarm") for name in offered(room)
    }
    own = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    if page.name.startswith("from-"):
        return  # such a page has the names of what one comes from
    assert set(re.findall(r"`(?:\w+ )?([A-Z]\w+)\(", prose)) - public - own == set()
