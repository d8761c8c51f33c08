"""`offbook serve --mcp`: an agent as a tool, over the Model Context Protocol.

Nothing may write to the standard output, which carries the protocol.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..loopback import is_loopback
from ..mcp.connection import need_mcp
from ..mcp.serving import serve_mcp
from .loading import load
from .stores import store_at

if TYPE_CHECKING:
    from .serving import ServeOptions

__all__ = ["serve_tool"]


def serve_tool(options: ServeOptions, *, http: bool) -> None:
    """Serve until the client disconnects, or the process is terminated."""
    need_mcp("offbook serve --mcp")
    if options.token_env is not None or options.grpc:
        raise UsageError("--token-env and --grpc are for Agent2Agent. Omit them, or omit --mcp.")
    if http and not is_loopback(options.host) and not options.allow_anonymous:
        msg = (
            f"--host {options.host}: every client that reaches it could use the agent. Pass "
            "--allow-anonymous, and put it behind a proxy that authenticates."
        )
        raise UsageError(msg)
    found = load(options.target)
    store = store_at(options.store) if options.store is not None else None
    try:
        serve_mcp(
            found,
            store=store,
            http=(options.host, options.port) if http else None,
            allow_anonymous=options.allow_anonymous,
        )
    finally:
        if store is not None:
            asyncio.run(store.aclose())
