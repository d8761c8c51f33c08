"""What a transport is: the way on which one request's bytes go to a provider, and its reply's come back.

Owns: the protocol, and the error of what did not get through. Nothing here knows JSON, events or a provider's API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, Protocol

__all__ = ["CONNECT_SECONDS", "MOST_BYTES", "SILENT_SECONDS", "Transport", "TransportError", "TransportReply"]

SILENT_SECONDS: Final = 600.0
"""How long a provider may be silent, if nothing else is said: as long as the `openai` client waits."""

CONNECT_SECONDS: Final = 5.0
"""How long a connection may take to be opened, if nothing else is said."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much a reply may be in all, unpacked, so that a server that never ends does not take the process's memory."""


class TransportError(Exception):
    """The request or its reply did not get through. `name` is what HTTP clients call such an error; the text holds no header, and so no key."""

    def __init__(self, name: str, text: str, kind: Literal["connection", "timeout"] = "connection") -> None:
        super().__init__(text)
        self.name = name
        self.kind: Literal["connection", "timeout"] = kind


class TransportReply(Protocol):
    """A reply whose head has come."""

    status: int
    headers: Mapping[str, str]
    """By their names in small letters, or in any: as a mapping of HTTP headers has them."""
    next_piece: Callable[[], Awaitable[bytes]]
    """The next bytes of the body, unpacked; none at its end."""

    @property
    def is_at_end(self) -> bool:
        """Whether the body was read to its end, so that the connection serves others again."""
        ...

    def error(self, problem: BaseException) -> TransportError | None:
        """What `next_piece` raised, if it means that the body did not get through."""
        ...

    def drop(self) -> None:
        """Leave the reply: a connection on which more of it could come is closed, at once and without waiting."""
        ...


class Transport(Protocol):
    """The connections of one event loop to providers."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float | None) -> TransportReply:
        """Send a request, and return when the head of its reply has come. `timeout` is how many seconds the server may be silent. Raises `TransportError`."""
        ...

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...
