"""`understudy serve --mcp`: an agent as a tool, over the Model Context Protocol.

Owns: what is checked before anything is served. It must never write to the standard output: there the protocol is spoken.
"""

from __future__ import annotations

import asyncio
import ipaddress
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..mcp.connection import need_mcp
from ..mcp.serving import serve_mcp
from .loading import load
from .stores import store_at

if TYPE_CHECKING:
    from .serving import ServeOptions

__all__ = ["serve_tool"]


def serve_tool(options: ServeOptions, *, http: bool) -> None:
    """Serve until the client has gone, or the process is told to end."""
    need_mcp("understudy serve --mcp")
    if options.token_env is not None or options.grpc:
        raise UsageError("--token-env and --grpc are for Agent2Agent: leave them out, or leave out --mcp.")
    if http and not _is_loopback(options.host) and not options.allow_anonymous:
        msg = f"--host {options.host}: everybody who reaches it could use the agent. Say so, with --allow-anonymous, and put it behind what asks who they are."
        raise UsageError(msg)
    found = load(options.target)
    store = store_at(options.store) if options.store is not None else None
    try:
        serve_mcp(found, store=store, http=(options.host, options.port) if http else None)
    finally:
        if store is not None:
            asyncio.run(store.aclose())


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
