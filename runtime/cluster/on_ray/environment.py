"""The Ray package: its version, its settings, and a warning about safety.

It is imported only when a cluster is used.
"""

from __future__ import annotations

import importlib
import ipaddress
import os
from typing import Any, Final

from ...errors import UsageError
from ...log import loggers

__all__ = ["NAMESPACE", "check_safety", "import_ray", "prepare"]

NAMESPACE: Final = "offbook"
_LEAST: Final = (2, 60)
_RECONNECT: Final = "RAY_gcs_rpc_server_reconnect_timeout_s"
_RECONNECT_SECONDS: Final = "600"


def import_ray() -> Any:
    """Return the Ray package. Raise `UsageError` with installation advice."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        msg = "a cluster runs on Ray, which is not installed: pip install 'offbook[ray]'."
        raise UsageError(msg) from error
    found = tuple(int(part) for part in ray.__version__.split(".")[:2])
    if found < _LEAST:
        msg = (
            f"a cluster needs Ray {'.'.join(map(str, _LEAST))} or newer, and {ray.__version__} is "
            "installed: pip install -U 'offbook[ray]'."
        )
        raise UsageError(msg)
    return ray


def prepare() -> None:
    """Let this process outlive Ray's head for ten minutes; by default it ends after one."""
    if _RECONNECT not in os.environ:
        os.environ[_RECONNECT] = _RECONNECT_SECONDS
        loggers.cluster.info(
            "%s=%s is set, because otherwise Ray ends this process when the head node is down "
            "for a minute.",
            _RECONNECT,
            _RECONNECT_SECONDS,
        )


def check_safety(address: str) -> None:
    """Warn if every process that reaches the address may run code on every node."""
    host = address.rpartition(":")[0].strip("[]") or address
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    guarded = os.environ.get("RAY_AUTH_MODE", "").lower() == "token" or os.environ.get(
        "RAY_USE_TLS", ""
    ) not in ("", "0")
    if not is_here and not guarded:
        loggers.cluster.warning(
            "The Ray cluster at %s does not authenticate clients: any client that reaches its "
            "ports can run code on every node. Put it into a private network, and set "
            "RAY_AUTH_MODE=token on all nodes and programs. RAY_USE_TLS=1 encrypts the traffic.",
            address,
        )
