"""How much a host takes on, and how long each side of the cluster waits for the other.

Owns: the numbers, their checks, and their form between processes. It must never read the environment: the program that starts a cluster gives them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypedDict

from ..errors import UsageError
from ..option_names import meant

__all__ = ["Limits", "LimitsLike", "limits_of", "read_limits"]

_LEAST: Final = {"lease_seconds": 2.0, "hang_seconds": 1.0, "batch_most": 1, "max_runs": 1, "max_waiting": 0}


class LimitsLike(TypedDict, total=False):
    """The limits that `Cluster.start` takes."""

    max_runs: int
    max_waiting: int
    lease_seconds: float
    hang_seconds: float
    sweep_seconds: float
    batch_most: int
    link_seconds: float
    suspect_seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each host, and of the links to it."""

    max_runs: int = 5_000
    """Runs under way in a host. Beyond it, `ClusterBusy`."""
    max_waiting: int = 5_000
    """Messages of sessions that wait in a host until those before them are done."""
    lease_seconds: float = 30.0
    """After which a store takes a host for lost that no client has reported."""
    hang_seconds: float = 30.0
    """For how long the loop of a host may stand still until the host counts as lost."""
    sweep_seconds: float = 5.0
    """How often a host looks for runs that no host works on, and for a new list of the hosts."""
    batch_most: int = 256
    """Requests, replies or events that travel together."""
    link_seconds: float = 30.0
    """After which a client that says nothing has left, and after which a client gives up that finds no host."""
    suspect_seconds: float = 5.0
    """For how long a host may leave the question unanswered whether it is there."""

    def data(self) -> dict[str, Any]:
        return asdict(self)


def limits_of(given: LimitsLike | dict[str, Any], what: str = "Cluster.start") -> Limits:
    """The limits, checked."""
    known = {field.name: field.default for field in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            msg = f"{what}({name}=...): there is no such option. {meant(name, tuple(known))}"
            raise UsageError(msg)
        least = _LEAST.get(name, 0.01)
        whole = isinstance(known[name], int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value >= least:
            msg = f"{what}({name}={value!r}): give {'a whole number' if whole else 'a number of seconds'}, {least:g} or more."
            raise UsageError(msg)
    return Limits(**given)


def read_limits(data: dict[str, Any]) -> Limits:
    """The limits, as another process says them: what only its version knows is left out."""
    known = {field.name for field in fields(Limits)}
    return limits_of({name: value for name, value in data.items() if name in known})
