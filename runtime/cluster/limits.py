"""The limits of a host, and the timeouts between the sides of the cluster.

The program that starts a cluster passes them; the environment is not read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypedDict

from ..errors import UsageError
from ..option_names import meant

__all__ = ["Limits", "LimitsLike", "limits_of", "read_limits"]

_LEAST: Final = {
    "lease_seconds": 2.0,
    "hang_seconds": 1.0,
    "batch_most": 1,
    "max_runs": 1,
    "max_waiting": 0,
    "max_attempts": 1,
    "max_clients": 1,
}


class LimitsLike(TypedDict, total=False):
    """The limits that `Cluster.start` accepts."""

    max_runs: int
    max_waiting: int
    lease_seconds: float
    hang_seconds: float
    sweep_seconds: float
    batch_most: int
    link_seconds: float
    suspect_seconds: float
    max_attempts: int
    max_clients: int


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each host, and of the links to it."""

    max_runs: int = 5_000
    """Runs in progress in a host. Beyond it, `ClusterBusy`."""
    max_waiting: int = 5_000
    """Session messages that wait in a host for earlier ones."""
    lease_seconds: float = 30.0
    """Seconds after which a store considers a host lost that no client has reported."""
    hang_seconds: float = 30.0
    """Seconds that the event loop of a host may be blocked before the host counts as lost."""
    sweep_seconds: float = 5.0
    """Seconds between a host's checks for runs without a host, and for a new list of the hosts."""
    batch_most: int = 256
    """Requests, replies or events in one batch."""
    link_seconds: float = 30.0
    """Seconds after which a silent client counts as gone.

    It is also the time after which a client that finds no host fails.
    """
    suspect_seconds: float = 5.0
    """Seconds that a host may take to answer a control request."""
    max_attempts: int = 3
    """The number of hosts in a row that a run may lose without progress before it is stuck."""
    max_clients: int = 1_000
    """Clients that are connected to a host. Beyond it, `ClusterBusy`."""

    def data(self) -> dict[str, Any]:
        return asdict(self)


def limits_of(given: LimitsLike | dict[str, Any], what: str = "Cluster.start") -> Limits:
    """Check the limits, and return them."""
    known = {field.name: field.default for field in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            msg = f"{what}: unknown option {name!r}. {meant(name, tuple(known))}"
            raise UsageError(msg)
        least = _LEAST.get(name, 0.01)
        whole = isinstance(known[name], int)
        if (
            isinstance(value, bool)
            or not isinstance(value, int if whole else int | float)
            or not value >= least
        ):
            msg = (
                f"{what}: {name} must be "
                f"{'a whole number' if whole else 'a number of seconds'}, {least:g} or "
                f"more, got {value!r}."
            )
            raise UsageError(msg)
    return Limits(**given)


def read_limits(data: dict[str, Any]) -> Limits:
    """Read the limits from another process. Options that only its version knows are ignored."""
    known = {field.name for field in fields(Limits)}
    return limits_of({name: value for name, value in data.items() if name in known})
