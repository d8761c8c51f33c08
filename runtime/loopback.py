"""Checks for requests to a local server without authentication.

A web page in a browser on this machine can reach such a server too: under its own host name that
resolves to 127.0.0.1 (DNS rebinding), or from another origin. Headers that no page can set reveal
both cases. These checks must not be the only protection of an address that other machines can
reach.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import urlsplit

__all__ = ["LoopbackGate", "foreign_request", "is_loopback", "is_loopback_host", "netloc_of"]

_Scope: TypeAlias = MutableMapping[str, Any]
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App: TypeAlias = Callable[[_Scope, _Receive, _Send], Awaitable[None]]


def is_loopback(host: str) -> bool:
    """Return True if that address or name is always this machine."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_loopback_host(host: str) -> bool:
    """Return True if a Host header, with or without a port, names this machine."""
    return is_loopback(
        host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]
    )


def foreign_request(scope: _Scope) -> str | None:
    """Return the reason to refuse a request, or None.

    Requests that did not arrive at a loopback address are not checked.
    """
    server = scope.get("server")
    if not server or not is_loopback(str(server[0])):
        return None
    headers = _headers(scope["headers"])
    host = headers.get("host", "")
    if not is_loopback_host(host):
        return f"This server is for this machine only, and is not asked as {host[:100]!r}."
    site = headers.get("sec-fetch-site")
    is_visit = scope["method"] in ("GET", "HEAD") and headers.get("sec-fetch-mode") == "navigate"
    origin = headers.get("origin")
    if (site in ("cross-site", "same-site") and not is_visit) or (
        origin is not None and netloc_of(origin) != host.lower()
    ):
        return "This server is for programs of this machine, and not for pages of other servers."
    return None


def netloc_of(origin: str) -> str:
    """Return the host and port of an origin in lower case; empty if it is not an origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in pairs}


class LoopbackGate:
    """An ASGI app that protects another one without authentication.

    `advice` explains how to allow a refused request.
    """

    def __init__(self, app: _App, advice: str) -> None:
        self._app = app
        self._advice = advice

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        problem = foreign_request(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        body = f"{problem} {self._advice}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": body})
