"""The protocol of a transport: it sends the bytes of a request to a provider, and returns those of
the reply.

Nothing here knows JSON, events or a provider's API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, Protocol

import msgspec

__all__ = [
    "CONNECT_SECONDS",
    "MOST_BYTES",
    "MOST_SECONDS",
    "SILENT_SECONDS",
    "Sent",
    "Transport",
    "TransportError",
    "TransportReply",
]

SILENT_SECONDS: Final = 600.0
"""How long a provider may be silent by default: the same as the `openai` client's limit."""

CONNECT_SECONDS: Final = 5.0
"""The default time limit for opening a connection."""

MOST_SECONDS: Final = 3600.0
"""The default time limit for a whole reply.

So a server that sends a little from time to time does not block a run forever.
"""

MOST_BYTES: Final = 64 * 1024 * 1024
"""The default size limit of a reply, uncompressed.

So an endless reply does not exhaust the process's memory.
"""


class TransportError(Exception):
    """The request or its reply did not get through.

    `name` is the error's class name in HTTP clients; the text contains no header, and so no key.
    """

    def __init__(
        self, name: str, text: str, kind: Literal["connection", "timeout"] = "connection"
    ) -> None:
        super().__init__(text)
        self.name = name
        self.kind: Literal["connection", "timeout"] = kind


class Sent(msgspec.Struct, gc=False):
    """Counts how often a request was sent."""

    times: int = 1


class TransportReply(Protocol):
    """A reply whose headers have arrived."""

    status: int
    headers: Mapping[str, str]
    """Looked up by their names in any case."""
    next_piece: Callable[[], Awaitable[bytes]]
    """The next bytes of the body, uncompressed; empty at its end."""

    sends: int
    """How often the request was sent for this reply."""

    @property
    def is_at_end(self) -> bool:
        """True if the body was read to its end, so that the connection can be reused."""
        ...

    def expire(self, error: TransportError) -> None:
        """Raise that error from the pending or next `next_piece`."""
        ...

    def error(self, problem: BaseException) -> TransportError | None:
        """Convert an error of `next_piece`, if it means that the body did not get through."""
        ...

    def drop(self) -> None:
        """Abandon the reply: a connection on which more could arrive is closed immediately."""
        ...


class Transport(Protocol):
    """The connections of one event loop to providers."""

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float | None
    ) -> TransportReply:
        """Send a request, and return when the headers of its reply have arrived.

        `timeout` is how many seconds the server may be silent. Raises `TransportError`.
        """
        ...

    def is_closed(self) -> bool: ...

    async def close(self) -> None: ...
