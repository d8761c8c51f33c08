"""A revision to be measured: a worktree of the repository, installed into an environment of its
own. Both are in a temporary folder, and gone at the end.

The benchmark's own code is that of the tree in which it runs, for both revisions; of theirs, only
what is installed is used.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.lab.catalogue import ROOT

__all__ = ["Checkout", "CheckoutFailed", "both_checked_out", "commit_of"]

_TAIL = 2000
_NEEDED = "psutil"  # what the worker imports beside the library


class CheckoutFailed(RuntimeError):
    """A revision could not be found or installed, and why."""


@dataclass(frozen=True, slots=True)
class Checkout:
    revision: str  # as it was given
    commit: str
    subject: str
    interpreter: Path


def _call(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True, cwd=cwd
    )
    if done.returncode:
        msg = (
            f"{' '.join(str(part) for part in command[:5])} ended with {done.returncode}: "
            f"{(done.stderr or done.stdout)[-_TAIL:].strip()}"
        )
        raise CheckoutFailed(msg)
    return done.stdout.strip()


def commit_of(revision: str, repository: Path = ROOT) -> str:
    """The commit of a revision.

    `.` is the working tree as it is: its tracked files, in a commit of their own that no branch
    has.
    """
    if revision == ".":
        identity = (
            "-c",
            "user.name=benchmarks",
            "-c",
            "user.email=benchmarks@localhost",
        )  # for a machine on which git knows none
        return _call("git", *identity, "stash", "create", cwd=repository) or _call(
            "git", "rev-parse", "HEAD", cwd=repository
        )
    try:
        return _call(
            "git", "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", cwd=repository
        )
    except CheckoutFailed:
        msg = f"There is no revision {revision!r} in {repository}."
        raise CheckoutFailed(msg) from None


@contextmanager
def both_checked_out(
    first: str, second: str, repository: Path = ROOT
) -> Iterator[tuple[Checkout, Checkout]]:
    """Both revisions, ready to be measured.

    Their folders have names of one length, because the length of a path may shift what is measured.
    """
    commits = commit_of(first, repository), commit_of(second, repository)
    with TemporaryDirectory(prefix="offbook-compare-") as folder:
        places = Path(folder) / "a", Path(folder) / "b"
        try:
            for commit, place in zip(commits, places, strict=True):
                _call("git", "worktree", "add", "--detach", place / "tree", commit, cwd=repository)
            with ThreadPoolExecutor(2) as both:
                interpreters = list(both.map(_installed, places))
            subjects = [
                _call("git", "show", "--no-patch", "--format=%s", commit, cwd=repository)
                for commit in commits
            ]
            yield (
                Checkout(first, commits[0], subjects[0], interpreters[0]),
                Checkout(second, commits[1], subjects[1], interpreters[1]),
            )
        finally:
            for place in places:
                if (place / "tree").exists():
                    _call("git", "worktree", "remove", "--force", place / "tree", cwd=repository)
            _call("git", "worktree", "prune", cwd=repository)


def _installed(place: Path) -> Path:
    """The interpreter of an environment with what is in the worktree."""
    tree, environment = place / "tree", place / "environment"
    interpreter = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    uv = shutil.which("uv")
    if uv is not None:
        _call(uv, "venv", "--quiet", "--python", sys.executable, environment)
        _call(uv, "pip", "install", "--quiet", "--python", interpreter, tree, _NEEDED)
    else:
        _call(sys.executable, "-m", "venv", environment)
        _call(interpreter, "-m", "pip", "install", "--quiet", tree, _NEEDED)
    return interpreter
