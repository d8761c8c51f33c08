"""What a user's type checker says: nothing about correct use, and something about each mistake, at
its line. Two checkers look at the same two files.

The second checker is pyright, by the name of basedpyright: the same program, which brings the node
that it runs on, so that it works without a network. Its own stricter defaults are off:
`typeCheckingMode` is pyright's standard.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MARK = "# error"
FILES = ("correct.py", "mistakes.py")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The packages under the names that users import, which the folders of the repository do not
    bear, beside a copy of the two files.
    """
    tree = tmp_path_factory.mktemp("tree")
    (tree / "offbook").mkdir()
    for room in ("actors", "runtime"):
        (tree / "offbook" / room).symlink_to(ROOT / room)
    (tree / "user").mkdir()
    for name in FILES:
        (tree / "user" / name).write_text((HERE / name).read_text())
    return tree


def call(*command, **options):
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        **options,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: it has found errors
    return done.stdout


@pytest.fixture(scope="module")
def of_mypy(tree):
    """What mypy says, as (file, line) and the text."""
    strict = (
        "--strict",
        "--namespace-packages",
        "--explicit-package-bases",
        "--output",
        "json",
        "--cache-dir",
        str(tree / "cache"),
    )
    files = [f"user/{name}" for name in FILES]
    said = call(
        "mypy",
        *strict,
        "--config-file",
        os.devnull,
        *files,
        cwd=tree,
        env={**os.environ, "MYPYPATH": str(tree)},
    )
    found = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [
        ((Path(one["file"]).name, one["line"]), one["message"])
        for one in found
        if one["severity"] == "error"
    ]


@pytest.fixture(scope="module")
def of_pyright(tree):
    """What pyright says, in the same form."""
    config = tree / "pyrightconfig.json"
    config.write_text(
        json.dumps(
            {
                "include": ["user"],
                "extraPaths": ["."],
                "typeCheckingMode": "standard",
                "pythonVersion": "3.11",
            }
        )
    )
    said = json.loads(
        call(
            "basedpyright",
            "-p",
            str(config),
            "--pythonpath",
            sys.executable,
            "--outputjson",
            cwd=tree,
        )
    )
    found = [one for one in said["generalDiagnostics"] if one["severity"] == "error"]
    return [
        ((Path(one["file"]).name, one["range"]["start"]["line"] + 1), one["message"])
        for one in found
    ]


def marked():
    lines = {
        (name, number): line
        for name in FILES
        for number, line in enumerate((HERE / name).read_text().splitlines(), 1)
    }
    return {place: line for place, line in lines.items() if line.endswith(MARK)}


@pytest.mark.parametrize("checker", ["of_mypy", "of_pyright"])
def test_each_mistake_is_found_and_nothing_else(checker, request):
    found, expected = request.getfixturevalue(checker), marked()
    places = {place for place, _ in found}
    assert {place: line.strip() for place, line in expected.items() if place not in places} == {}, (
        "mistakes that were not found"
    )
    assert [(place, text) for place, text in found if place not in expected] == [], (
        "complaints about what is no mistake"
    )


def test_only_the_file_of_mistakes_has_marks():
    assert {name for name, _ in marked()} == {"mistakes.py"}
