"""The errors between a program and its cluster.

    OffbookError
    └── ClusterError                  the cluster could not be reached, or refused
        ├── ClusterBusy               a host is at its limit; retry after `retry_after` seconds
        ├── HostLost                  the host and its memory are gone (also an ActorDeadError)
        └── VersionMismatch           the cluster runs another program or version

An exception of Ray reaches a user only as the cause of one of them.
"""

from __future__ import annotations

from ..errors import ActorDeadError, OffbookError

__all__ = ["ClusterBusy", "ClusterError", "HostLost", "VersionMismatch"]


class ClusterError(OffbookError):
    """The cluster could not be reached, or refused."""


class ClusterBusy(ClusterError):
    """A host is at its limit."""

    def __init__(self, text: str = "", *, retry_after: float = 1.0, run: str | None = None) -> None:
        super().__init__(text, run=run)
        self.retry_after = retry_after
        """Seconds after which to retry."""


class HostLost(ClusterError, ActorDeadError):
    """The host is gone, with everything that was only in its memory: actors, and unstored runs."""


class VersionMismatch(ClusterError):
    """The cluster of that name runs another program, or another version of it."""
