"""What a cluster needs of whatever starts processes on machines and carries bytes between them. On Ray: `on_ray/`; in tests, one process.

Owns: the protocols. Bytes go in and come out: nothing here may pickle a value or name a class.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

__all__ = ["HostDoor", "HostGone", "Transport"]


class HostGone(Exception):
    """The host does not answer: its process has ended, its node is away, or it hangs."""

    def __init__(self, host: str, incarnation: str | None = None, text: str = "", *, silent: bool = False) -> None:
        super().__init__(text or f"host {host!r} does not answer")
        self.silent = silent
        """Whether it just says nothing: it may hang, and then has to be ended. Else the way to it is broken, or its process gone."""
        self.host = host
        self.incarnation = incarnation
        """The life of the host that is meant; None if it is not known."""


class HostDoor(Protocol):
    """The way to one host, whichever process plays it. What fails here raises `HostGone`."""

    @property
    def host(self) -> str: ...

    def send(self, client: str, link: str, number: int, data: bytes) -> None:
        """Send one batch of requests, and do not wait. Batches may overtake each other, or be lost: `replies` ends then, sooner or later."""

    def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        """Open a link: first the welcome, then batches of replies, until the host or the way to it is lost. `incarnation`: which one the client knows."""
        ...

    def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        """The events of the run that was asked for by that request: few batches ahead of the reader."""
        ...

    async def control(self) -> bytes:
        """Whether it is there, and what it does; answered also while its loop is blocked."""
        ...

    async def call(self, what: str, data: bytes) -> bytes:
        """One of the few calls that are no request: `started`, `drain`."""
        ...


class Transport(Protocol):
    """The way to all hosts of all clusters."""

    async def open(self) -> int:
        """Connect this process, if it is not. Returns of how many machines there are."""
        ...

    async def close(self) -> None:
        """Let go of what `open` has made."""

    async def names(self, cluster: str) -> list[str]:
        """The hosts of a cluster that have been started and not ended for good."""
        ...

    def door(self, host: str) -> HostDoor: ...

    async def start(self, host: str, spec: bytes) -> None:
        """Start a host, unless there is one of that name. Returns before it is up."""

    async def end(self, host: str, *, again: bool) -> None:
        """End the process of a host, now. `again`: another one is to be started in its place."""
