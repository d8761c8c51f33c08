"""The statistics of a cluster at one instant, as immutable records."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from ..control import Control
from ..spec import ClusterSpec

__all__ = ["ClusterStats", "HostStats", "stats_of"]

_SUMS: Final = ("runs", "waiting", "actors", "queued", "recovered")


@dataclass(frozen=True, slots=True)
class HostStats:
    """The statistics of one host."""

    name: str
    state: str
    """starting, up, suspect, draining, or lost."""
    node: str = ""
    pid: int = 0
    incarnation: str = ""
    version: str | None = None
    runs: int = 0
    waiting: int = 0
    """Session messages that wait for earlier ones."""
    actors: int = 0
    queued: int = 0
    """Messages in the mailboxes."""
    events: int = 0
    """Events sent to clients since this incarnation of the host started."""
    recovered: int = 0
    orphans: int = 0
    """Runs without a host that this host saw at its last check, and left to other hosts."""
    resident: int = 0
    """Bytes of memory."""
    idle: float = 0.0
    """Seconds since the last turn of its event loop, when it answered."""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterStats:
    """The statistics of all hosts, and their sums."""

    cluster: str
    hosts: tuple[HostStats, ...]
    runs: int
    waiting: int
    actors: int
    queued: int
    recovered: int
    orphans: int

    def data(self) -> dict[str, Any]:
        return asdict(self)


def stats_of(cluster: str, answers: dict[str, Control | None]) -> ClusterStats:
    """Make the statistics from the hosts' answers. A host that does not answer is suspect."""
    hosts = tuple(_host(name, said) for name, said in sorted(answers.items()))
    sums = {name: sum(getattr(one, name) for one in hosts) for name in _SUMS}
    return ClusterStats(
        cluster, hosts, **sums, orphans=max((one.orphans for one in hosts), default=0)
    )


def _host(name: str, said: Control | None) -> HostStats:
    if said is None:
        return HostStats(name, "suspect")
    counts = said.counts
    numbers = {field: counts.get(field, 0) for field in (*_SUMS, "orphans", "resident")}
    version = ClusterSpec.read(said.spec).version
    return HostStats(
        name,
        said.state,
        said.node,
        said.pid,
        said.incarnation,
        version,
        **numbers,
        events=counts.get("sent", 0),
        idle=said.idle,
        problem=said.problem,
    )
