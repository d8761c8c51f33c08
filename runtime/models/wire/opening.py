"""Construction of a model's HTTP client, and the choice of its transport.

This module must only be imported when a model is first called.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from .aiohttp_transport import AiohttpTransport
from .client import Key, WireClient
from .decode import decode
from .environment import default_max_connections, environment_proxy, tls_context
from .options import ClientOptions
from .protocol import Transport
from .target import Probe, TargetFinder

if TYPE_CHECKING:
    import ssl

    from openai import AsyncOpenAI

__all__ = ["WireMaker"]

_TLS: Final = "https://"


class WireMaker:
    """Makes the client of one model for each of its loops.

    Shared parts, such as the trusted certificates, are made once.
    """

    def __init__(
        self,
        options: ClientOptions,
        max_connections: int | None,
        most_bytes: int,
        most_seconds: float,
    ) -> None:
        self._options = options
        self._max_connections = (
            default_max_connections() if max_connections is None else max_connections
        )
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def make(self, who: str, ask: Callable[[AsyncOpenAI], Awaitable[object]]) -> WireClient:
        """Make a client. `ask` makes a minimal request to the model's API."""
        import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

        probe, options = Probe(), self._options
        http: Any = openai.DefaultAsyncHttpxClient
        key = Key(options.api_key) if callable(options.api_key) else None
        client = options.client(http(transport=probe), None if key is None else key.mark)
        library = http.__mro__[1].__module__.partition(".")[0]
        finder, limits = TargetFinder(client, probe, ask), (self._most_bytes, self._most_seconds)
        return WireClient(
            finder, lambda url: self._transport_to(url, library), decode, key, who, *limits
        )

    def _transport_to(self, url: str, library: str) -> Transport:
        proxy = environment_proxy(url)
        context = None
        if url.startswith(_TLS) or (proxy is not None and proxy.startswith(_TLS)):
            with self._lock:
                context = self._context = self._context or tls_context(library)
        return AiohttpTransport(self._max_connections, context, proxy)
