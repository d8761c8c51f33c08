"""Connection settings of the machine: proxies, certificates, and the limit on open files.

They are read as the `openai` client's own HTTP library reads them. Nothing here connects.
"""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from .protocol import TransportError

__all__ = ["default_max_connections", "environment_proxy", "is_supported", "tls_context"]

_PORTS: Final = {"http": 80, "https": 443}
_PROXIES: Final = frozenset(("http", "https", "socks5", "socks5h"))
_SHARE_OF_FILES: Final = 0.75
_MOST_CONNECTIONS: Final = 10_000
_FEWEST_CONNECTIONS: Final = 100


def environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for that address.

    Raises `TransportError` if it is invalid: the libraries would show the password in it.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if (
        not proxy
        or not parts.hostname
        or "*" in (name.strip() for name in proxies.get("no", "").split(","))
    ):
        return None
    if proxy_bypass(parts.hostname) or proxy_bypass(
        f"{parts.hostname}:{parts.port or _PORTS.get(parts.scheme, 0)}"
    ):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not _is_address(proxy):
        msg = (
            "The proxy in the environment must be a URL. Set HTTP_PROXY, HTTPS_PROXY and "
            "ALL_PROXY to http://HOST:PORT."
        )
        raise TransportError("ProxyError", msg)
    return proxy


def _is_address(proxy: str) -> bool:
    try:
        parts = urlsplit(proxy)
        return (
            parts.scheme in _PROXIES
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        return False


def is_supported(proxy: str | None) -> bool:
    """Return whether a transport of this package supports such a proxy.

    The `openai` client handles others, such as SOCKS.
    """
    return proxy is None or urlsplit(proxy).scheme in _PORTS


def tls_context(library: str) -> ssl.SSLContext:
    """Return the TLS context of that HTTP library, with its SSL_CERT_FILE and SSL_CERT_DIR."""
    make: Callable[[], ssl.SSLContext] | None = getattr(
        importlib.import_module(library), "create_ssl_context", None
    )
    return ssl.create_default_context() if make is None else make()


def default_max_connections() -> int:
    """Return a number of connections that leaves the process files for other purposes."""
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # Windows has no such limit for sockets
        return _MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(_FEWEST_CONNECTIONS, min(_MOST_CONNECTIONS, int(soft * _SHARE_OF_FILES)))
