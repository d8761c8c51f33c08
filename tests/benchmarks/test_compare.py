"""Compare: revisions that are checked out, measured by turns, judged, and removed; also when
something goes wrong.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.contenders.base import Load
from benchmarks.of_compare.checkouts import Checkout, CheckoutFailed, both_checked_out, commit_of
from benchmarks.of_compare.rounds import Compared, measure
from benchmarks.of_compare.table import as_markdown, judge

ROOT = Path(__file__).parents[2]


def git(repository, *arguments):
    identity = [
        "-c",
        "user.name=test",
        "-c",
        "user.email=test@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    return subprocess.run(
        ["git", *identity, *arguments], check=True, capture_output=True, text=True, cwd=repository
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository of its own, with this project in it."""
    place = tmp_path / "repository"
    place.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    for name in ("api", "actors", "runtime"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    git(place, "init", "--quiet")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "--message", "The first one")
    return place


def worktrees(repository):
    return len(git(repository, "worktree", "list").splitlines())


def test_a_revision_that_there_is_not_is_refused_by_name(repository):
    with pytest.raises(CheckoutFailed, match="no revision 'no-such-branch'"):
        commit_of("no-such-branch", repository)


def test_a_dot_is_the_working_tree_with_what_is_not_committed(repository):
    assert commit_of(".", repository) == commit_of("HEAD", repository)
    (repository / "README.md").write_text("changed")
    changed = commit_of(".", repository)
    assert changed != commit_of("HEAD", repository)
    assert git(repository, "show", f"{changed}:README.md") == "changed"
    assert (repository / "README.md").read_text() == "changed", "the tree stays as it is"
    assert git(repository, "stash", "list") == ""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_worktrees_are_removed_when_a_revision_cannot_be_installed(repository):
    (repository / "setup.cfg").write_text("[metadata]\nname = 7 not a name\n")
    git(repository, "commit", "--quiet", "--all", "--message", "Broken")
    with pytest.raises(CheckoutFailed, match="pip"), both_checked_out("HEAD", "HEAD~1", repository):
        pytest.fail("it must not come here")
    assert worktrees(repository) == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_revisions_are_installed_measured_judged_and_removed(repository):
    with both_checked_out("HEAD", "HEAD", repository) as (first, second):
        assert worktrees(repository) == 3
        assert len(str(first.interpreter)) == len(str(second.interpreter))
        interpreters = (first.interpreter, second.interpreter)
        found = measure(
            interpreters, {"turn": Load(20)}, blocks=1, pairs=2, seconds=0.05, provider=""
        )
        text = as_markdown(
            judge(found, confidence=0.99, least=0.02), (first, second), {}, "# Two revisions"
        )
    assert worktrees(repository) == 1
    assert not first.interpreter.exists()
    assert "The first one" in text


def test_both_are_measured_by_turns_in_new_pairs_of_processes():
    shown, here = [], Path(sys.executable)
    loads = {"turn": Load(20), "tool": Load(10)}
    found = measure(
        (here, here),
        loads,
        blocks=2,
        pairs=3,
        seconds=0.05,
        provider="",
        contender="bare",
        on_pair=shown.append,
    )
    assert shown == ["turn", "turn", "turn", "tool", "tool", "tool"] * 2
    for one in found:
        assert [[len(block) for block in costs] for costs in one.cpu] == [[3, 3], [3, 3]]
        assert all(cost > 0 for costs in (*one.cpu, *one.wall) for block in costs for cost in block)


def checkouts():
    return Checkout("main", "a" * 40, "Before", Path()), Checkout("HEAD", "b" * 40, "After", Path())


def compared(first, second):
    return Compared("turn", (first, second), (first, second))


def test_the_table_says_faster_slower_or_that_nothing_could_be_seen():
    alike = [[1.00e-4, 1.01e-4, 0.99e-4]] * 4
    faster = [[0.50e-4, 0.51e-4, 0.49e-4]] * 4
    for second, words in (
        (faster, "**faster**"),
        (alike, "**no difference that this run can see (one of up to"),
    ):
        shown = as_markdown(
            judge([compared(alike, second)], confidence=0.99, least=0.02),
            checkouts(),
            {"turn": "W2"},
            "# Two",
        )
        assert words in shown
        assert "* first: `main`, aaaaaaaaaa, Before" in shown
    shown = as_markdown(
        judge([compared(faster, alike)], confidence=0.99, least=0.02),
        checkouts(),
        {"turn": "W2"},
        "# Two",
    )
    assert "| W2 | 50.0 µs | 100 µs | **slower** | 0.500 (" in shown


def test_the_command_refuses_a_revision_that_there_is_not(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "compare",
        "no-such-branch",
        "HEAD",
        "--output",
        str(tmp_path / "none.json"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert "no revision 'no-such-branch'" in done.stderr
