"""Every regular expression of the product takes time in proportion to its input, whatever the input
is.
"""

import ast
import functools
import re
import time
from pathlib import Path

import pytest

from offbook.actors.prebuilt.plain_roles import read_answer, read_steps
from offbook.runtime.a2a.server.json_bounds import check_json

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for room in ("actors", "runtime") for path in (ROOT / room).rglob("*.py"))
SIZE = 2_000
SLOW_SECONDS = 0.004
"""Less than this for the longer input is no measurement."""

BEGINNINGS = (
    "",
    "```",
    "```\n",
    "- ",
    "1",
    "step",
    '"',
    '"\\',
    "{",
    '  File "x", line 1 in ',
    "ab-",
)
PIECES = (
    *(
        " ",
        "\n",
        "\r",
        "\t",
        "\\",
        '"',
        '\\"',
        "{",
        "}",
        "[",
        "`",
        "```",
        "0",
        "1",
        "-",
        ".",
        ":",
        "@",
        "/",
        "_",
        "a",
        "A",
        "aa-",
        "é",
        "步",
        "\xe2",
        "\xe2\x80",
    ),
    *(
        " 1",
        "1 ",
        "1 步 ",
        "- ",
        "\n\n",
        "\r\n",
        "```\n",
        "```a\n",
        '""',
        '","',
        "a.",
        "a:",
        "e1",
        "e+",
        "N",
        "NaN",
        " at 0x",
        "x@1",
        "1@",
        '", line 1',
        "{a",
    ),
)
ENDS = ("", "!", "\\", "\n")
INPUTS = [(beginning, piece, end) for beginning in BEGINNINGS for piece in PIECES for end in ENDS]


METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
TEXTS = {path: path.read_text() for path in SOURCES}


@functools.cache
def nodes_of(path):
    return list(ast.walk(ast.parse(TEXTS[path])))


@functools.cache
def imported_by(path):
    return {node.name for node in nodes_of(path) if isinstance(node, ast.alias)}


@functools.cache
def calls_of(path):
    """What is called on a name: `name.method(...)`."""
    return [
        node
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
    ]


def named(path, call):
    """The name that a compiled expression has in its file."""
    for node in nodes_of(path):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is call:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            return target.id
    return ""


@functools.cache
def uses(path, name):
    """How it is used: the methods that are called on that name, in its file and where it is
    imported.
    """
    return {
        call.func.attr
        for where, text in TEXTS.items()
        if name in text and (where == path or name in imported_by(where))
        for call in calls_of(where)
        if call.func.value.id == name and call.func.attr in METHODS
    }


def patterns():
    """Each regular expression that stands in the source: where, its text, its flags, how it is
    used.
    """
    for path, text in TEXTS.items():
        for node in calls_of(path) if re.search(r"\bre\.", text) else ():
            if node.func.value.id == "re" and node.func.attr in ("compile", *METHODS):
                others = [*node.args[1:], *(word.value for word in node.keywords)]
                flags = {
                    one.attr
                    for given in others
                    for one in ast.walk(given)
                    if isinstance(one, ast.Attribute) and one.attr.isupper()
                }
                methods = (
                    uses(path, named(path, node))
                    if node.func.attr == "compile"
                    else {node.func.attr}
                )
                yield (
                    path,
                    node.args[0],
                    sum(int(getattr(re, flag)) for flag in flags),
                    tuple(sorted(methods)),
                )


# What is no constant: the pattern is the user's own.
GIVEN_BY_USERS = {"actors/handoffs/filters.py"}
FOUND = list(patterns())
PATTERNS = sorted(
    {
        (str(path.relative_to(ROOT)), node.value, flags, methods)
        for path, node, flags, methods in FOUND
        if isinstance(node, ast.Constant)
    },
    key=lambda one: (one[0], str(one[1])),
)


def seconds_of(work, given):
    """The CPU time of this thread: the best of three, which no neighbour disturbs."""
    best = float("inf")
    for _ in range(3):
        begun = time.thread_time()
        work(given)
        best = min(best, time.thread_time() - begun)
        if best < SLOW_SECONDS:
            break
    return best


def made(beginning, piece, end, size):
    return beginning + piece * (size // len(piece)) + end


def super_linear(work, size=SIZE, encode=False):
    """The first input for which twice as much takes much more than twice as long, with both times;
    None if there is none.
    """
    for beginning, piece, end in INPUTS:
        one, two = (made(beginning, piece, end, length) for length in (size, 2 * size))
        if encode:
            one, two = (text.encode("latin-1", "replace") for text in (one, two))
        longer = seconds_of(work, two)
        if longer < SLOW_SECONDS:
            continue
        shorter = seconds_of(work, one)
        if longer > 3 * shorter:
            return beginning, piece, end, shorter, longer
    return None


def test_every_regular_expression_is_found():
    others = {
        str(path.relative_to(ROOT))
        for path, node, *_ in FOUND
        if not isinstance(node, ast.Constant)
    }
    assert others == GIVEN_BY_USERS, (
        "what is put together cannot be read here: write it as one constant"
    )
    assert len(PATTERNS) > 25
    assert [one for one in PATTERNS if not one[3]] == [], "how these are used is not seen here"


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda one: f"{one[0]}: {one[1]!r}"[:100])
def test_a_regular_expression_takes_linear_time(pattern):
    _, text, flags, methods = pattern
    compiled = re.compile(text, flags)

    def use(given):
        for method in methods:
            match method:
                case "match" | "fullmatch" | "search":
                    getattr(compiled, method)(given)
                case _:
                    sum(1 for _ in compiled.finditer(given))

    assert super_linear(use, encode=isinstance(text, bytes)) is None


def test_a_quadratic_expression_is_found_out():
    compiled = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
    assert super_linear(lambda given: sum(1 for _ in compiled.finditer(given)), size=2_000)


@pytest.mark.parametrize("read", [read_steps, read_answer])
def test_reading_a_plan_takes_linear_time(read):
    assert super_linear(read) is None


@pytest.mark.parametrize("read", [read_steps, read_answer])
@pytest.mark.parametrize(
    "deep", ["[" * 100_000, '{"steps":' * 100_000, "```json\n" + "[" * 100_000 + "\n```"]
)
def test_a_plan_that_is_too_deep_is_no_json(read, deep):
    read(deep)


def test_looking_at_a_body_takes_linear_time():
    def look(body):
        check_json(body, 20_000)

    def quietly(body):
        try:
            look(body)
        except Exception as refused:
            assert type(refused).__name__ == "RefusedBody", refused

    assert super_linear(quietly, size=4_000, encode=True) is None
