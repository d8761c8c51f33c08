"""The listening socket of the library's own servers: the console's and the command's.

The module creates the socket and formats its address; uvicorn serves on it. A returned socket is
always listening.
"""

from __future__ import annotations

import socket

from .errors import UsageError

__all__ = ["address_of", "listening_at"]


def listening_at(
    host: str, port: int, *, no_host: str, no_port: str, advice: str = ""
) -> socket.socket:
    """Return a socket that listens at `host` and `port`.

    Raises UsageError with the caller's text for the host or the port, the operating system's
    reason, and `advice`.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol named, asyncio disables Nagle's algorithm. Otherwise each stream would
        # wait 40 ms for its client's acknowledgement.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        msg = f"{no_host}: {error.strerror or error}."
        raise UsageError(msg) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        msg = f"{no_port}: {error.strerror or error}.{advice}"
        raise UsageError(msg) from error
    return listening


def address_of(listening: socket.socket) -> str:
    """Return the socket's host and port, in URL format."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
