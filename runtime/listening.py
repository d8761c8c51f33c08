"""The socket at which the library serves something itself: the console's, and the command's.

Owns: how it is made, and its address as a client writes it. It must never serve: uvicorn does. It must never be handed out unless it listens.
"""

from __future__ import annotations

import socket

from .errors import UsageError

__all__ = ["address_of", "listening_at"]


def listening_at(host: str, port: int, *, no_host: str, no_port: str, advice: str = "") -> socket.socket:
    """A socket that listens there. Raises UsageError: the caller's words for the host, or for the port, then the operating system's reason, then `advice`."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With its protocol named, so that asyncio sends what is written at once: without it, each stream would wait 40 ms for its client's acknowledgement.
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
    """Its host and port, as they stand in a URL."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
