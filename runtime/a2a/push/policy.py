"""Validation of webhook addresses: of their form, and of every IP address that the name resolves
to.

An address is checked when it is registered and again before each call, and the connection goes to
the checked IP address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import SplitResult, urlsplit

from ...errors import OffbookError

__all__ = ["Target", "WebhookPolicy", "WebhookRefused"]

Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a name, as strings."""

_LONGEST_URL: Final = 2_048
# Embeddings of one address in another: their meaning depends on the implementation.
_WRAPPED: Final = (
    "::ffff:0:0/96",
    "2002::/16",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "2001::/32",
    "::/96",
)


class WebhookRefused(OffbookError):
    """This server does not send to that address."""


class Target(NamedTuple):
    """A checked target: the original URL, and the IP address that it resolves to."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    address: str


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """By default: `https` on port 443, and public addresses only.

    `allow_hosts` are names that may resolve to any address. `secret_key` encrypts the secrets of
    registered webhooks; the default is the environment variable OFFBOOK_A2A_KEY, or else a key that
    is lost with the process. `resolve` returns the IP addresses of a name.
    """

    allow_http: bool = False
    allow_private: bool = False
    allow_hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = (443,)
    timeout: float = 10.0
    attempts: int = 8
    first_delay: float = 1.0
    longest_delay: float = 60.0
    most_for_a_task: int = 10
    secret_key: str | None = field(default=None, repr=False)
    resolve: Resolver | None = None

    def parse(self, url: str) -> SplitResult:
        """Parse the address, if its form is allowed."""
        if len(url) > _LONGEST_URL:
            msg = f"it must have at most {_LONGEST_URL} characters, got {len(url)}"
            raise WebhookRefused(msg)
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise WebhookRefused("it must be a URL such as https://hooks.example/a2a") from None
        if any(letter <= " " or letter == "\\" for letter in url):
            raise WebhookRefused("it must not contain spaces, control characters or backslashes")
        if parts.scheme != "https" and not (parts.scheme == "http" and self.allow_http):
            raise WebhookRefused("it must start with https://")
        if not parts.hostname:
            raise WebhookRefused("it must name a host, as in https://hooks.example/a2a")
        if parts.username is not None or parts.password is not None or "@" in parts.netloc:
            raise WebhookRefused("it must not contain a user name or a password")
        if (
            not self.allow_private
            and parts.hostname not in self.allow_hosts
            and port is not None
            and port not in self.ports
        ):
            msg = f"its port must be one of {', '.join(map(str, self.ports))}, got {port}"
            raise WebhookRefused(msg)
        return parts

    async def check(self, url: str, *, registers: bool = False) -> Target:
        """Return the target of an address.

        Raises `WebhookRefused`. During registration, a name need not resolve if any IP address is
        allowed.
        """
        parts = self.parse(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        path = parts.path or "/"
        if parts.query:
            path += f"?{parts.query}"
        may_be_private = self.allow_private or host in self.allow_hosts
        if registers and may_be_private:
            return Target(url, parts.scheme, host, port, path, "")
        addresses = await self._resolved(host, port)
        for address in addresses:
            if not may_be_private and not _is_public(address):
                raise WebhookRefused("its host must resolve to public addresses only")
        return Target(url, parts.scheme, host, port, path, addresses[0])

    async def _resolved(self, host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(self.timeout):
                addresses = await (self.resolve or _resolve)(host, port)
        except (OSError, UnicodeError, TimeoutError):
            addresses = ()
        if not addresses:
            raise WebhookRefused("its host must have a name that DNS can resolve")
        return addresses


async def _resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in found]


def _is_public(text: str) -> bool:
    """Return whether this is a public IP address in its normal notation."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and any(
        address in ipaddress.IPv6Network(network) for network in _WRAPPED
    ):
        return False
    return address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_unspecified
        or address.is_loopback
        or address.is_link_local
    )
