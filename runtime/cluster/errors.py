"""What can go wrong between a program and its cluster.

    UnderstudyError
    └── ClusterError          the cluster could not be asked, or refused
        ├── ClusterBusy           a host has as much to do as it may; `retry_after` says when to come again
        ├── HostLost              the host is gone, and with it what was only in its memory  (also an ActorDeadError)
        └── VersionMismatch       the cluster of that name runs another program, or another version of it

Owns: these classes. No exception of Ray's reaches a user but as the cause of one of them.
"""

from __future__ import annotations

from ..errors import ActorDeadError, UnderstudyError

__all__ = ["ClusterBusy", "ClusterError", "HostLost", "VersionMismatch"]


class ClusterError(UnderstudyError):
    """The cluster could not be asked, or refused."""


class ClusterBusy(ClusterError):
    """A host has as much to do as it may."""

    def __init__(self, text: str = "", *, retry_after: float = 1.0, run: str | None = None) -> None:
        super().__init__(text, run=run)
        self.retry_after = retry_after
        """Seconds after which to come again."""


class HostLost(ClusterError, ActorDeadError):
    """The host is gone, and with it what was only in its memory: actors, and runs that are not kept."""


class VersionMismatch(ClusterError):
    """The cluster of that name runs another program, or another version of it."""
