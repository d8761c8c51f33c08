"""The machine under the benchmark: what it is, and on which of its cores a round runs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Placement", "busy_note", "describe", "machine_line", "most_open_files", "placements"]


@dataclass(frozen=True)
class Placement:
    """Where rounds run, as a context.

    `pinned`: on one core, where threads take turns. `free`: on the cores that the operating system
    chooses.

    It holds for the calling thread and for those that are started meanwhile; each round starts its
    own.
    """

    name: str
    cores: frozenset[int] = frozenset()  # empty: do not touch it
    before: set[int] = field(default_factory=set, compare=False, repr=False)

    def __enter__(self) -> None:
        if self.cores:
            self.before.clear()
            self.before.update(os.sched_getaffinity(0))
            os.sched_setaffinity(0, self.cores)

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if self.cores:
            os.sched_setaffinity(0, self.before)


def placements(which: str) -> tuple[Placement, ...]:
    """For `--pin`: "yes", "no" or "both". Pinned comes first: the budgets are for one core."""
    free = Placement("free")
    if which == "no":
        return (free,)
    if not hasattr(os, "sched_setaffinity"):
        print(
            "This operating system cannot pin a process to a core: all rounds run free.",
            file=sys.stderr,
        )
        return (free,)
    allowed = os.sched_getaffinity(0)
    busy = psutil.cpu_percent(interval=0.5, percpu=True)
    quietest = min(allowed, key=lambda core: busy[core] if core < len(busy) else 0.0)
    pinned = Placement("pinned", frozenset({quietest}))
    return (pinned,) if which == "yes" else (pinned, free)


def describe() -> dict[str, Any]:
    """The properties of the machine on which figures depend, and the revision of this project whose
    figures they are.
    """
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "revision": _revision(),
        "load": round(os.getloadavg()[0], 2)
        if hasattr(os, "getloadavg")
        else None,  # of the last minute, when this was asked
    }


def machine_line(machine: dict[str, Any]) -> str:
    """`describe()` in one line, with the load average before and, as `load_after`, after."""
    what = (
        f"{machine['processor']}, {machine['cores']} cores, {machine['python']}; revision "
        f"{machine.get('revision') or 'unknown'}"
    )
    return f"{what}; load average {machine['load']} before, {machine['load_after']} after"


def most_open_files() -> int:
    """Let this process open as many files as the machine lets it, and say how many that are."""
    try:
        import resource
    except ModuleNotFoundError:  # there are none of these limits
        return sys.maxsize
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def busy_note(machine: dict[str, Any]) -> str:
    """What a reader has to know if something else ran on the machine, from `describe()` before and,
    as `load_after`, after; or nothing.
    """
    before, after = machine.get("load") or 0.0, machine.get("load_after") or 0.0
    if max(before, after - 1) <= machine["cores"] / 2:
        return ""
    return (
        "**The machine was busy with something else**, which distorts whatever is measured "
        "by the clock, and not for all alike: "
        "trust what is by CPU, and ratios more than figures."
    )


def _revision() -> str | None:
    """The commit that is checked out, with a mark if files have changed since; or nothing, without
    git or a repository.
    """
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            check=True,
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or "unknown"
