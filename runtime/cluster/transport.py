"""The interface of a transport, which starts processes and carries bytes.

It is implemented on Ray in `on_ray/`, and in one process for tests. Only bytes pass through it:
nothing here pickles a value or names a class.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from typing import Any, NamedTuple, Protocol

__all__ = ["HostEndpoint", "HostGone", "Place", "Transport"]


class HostGone(Exception):
    """The host does not answer: its process has ended, its node is unavailable, or it hangs."""

    def __init__(
        self, host: str, incarnation: str | None = None, text: str = "", *, silent: bool = False
    ) -> None:
        super().__init__(text or f"host {host!r} does not answer")
        self.silent = silent
        """Whether the host is merely silent. It may hang, and must then be ended.

        Otherwise the connection is broken, or the process is gone.
        """
        self.host = host
        self.incarnation = incarnation
        """The incarnation of the host; None if it is not known."""


class Place(NamedTuple):
    """The location of a process."""

    node: str
    """Its machine."""
    underlay: str
    """The id of the underlying system.

    Two underlying clusters of the same name have different ids.
    """
    environment: dict[str, Any]
    """The environment that makes a new process the same program: packages, files, variables."""


class HostEndpoint(Protocol):
    """The connection to one host, in whichever process. Failures raise `HostGone`."""

    @property
    def host(self) -> str: ...

    def send(self, client: str, link: str, number: int, data: bytes) -> Awaitable[bytes] | None:
        """Send one batch of requests, without waiting.

        Batches may overtake each other, or be lost: `replies` then ends eventually. The returned
        awaitable yields the replies that are ready at once, or raises if they may be lost.
        """
        ...

    def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        """Open a link: the welcome, then batches of replies until the connection is lost.

        `incarnation` is the one that the client knows.
        """
        ...

    def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        """Yield the events of the run of that request, with few batches ahead of the reader."""
        ...

    async def control(self) -> bytes:
        """Return the host's control answer, even while its event loop is blocked."""
        ...

    async def call(self, what: str, data: bytes) -> bytes:
        """Make one of the few calls that are not requests: `started`, `drain`."""
        ...


class Transport(Protocol):
    """The connection to all hosts of all clusters."""

    async def open(self) -> None:
        """Connect this process, if it is not. Raise `ClusterError` if that takes too long."""

    def place(self) -> Place:
        """Return the location of this process. It may be called after `open`, and in hosts."""
        ...

    async def close(self) -> None:
        """Release the connection that `open` has made."""

    async def names(self, cluster: str) -> list[str]:
        """Return the hosts of a cluster that have been started and not ended for good."""
        ...

    def endpoint(self, host: str) -> HostEndpoint: ...

    async def start(self, host: str, spec: bytes, *, avoid: str = "") -> None:
        """Start a host, unless there is one of that name. Return before it is up.

        `avoid` is a node on which it must not be placed.
        """

    async def end(self, host: str, *, again: bool) -> None:
        """End the process of a host, now. With `again`, it is restarted."""
