"""`offbook serve`: an agent over Agent2Agent, with uvicorn.

A server without authentication is open to every client: so it is only served on this machine,
unless the user explicitly allows otherwise. All checks happen before the socket is bound.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..a2a.sdk import need_sdk
from ..a2a.server.auth import BearerTokens
from ..a2a.serving import a2a_app
from ..errors import UsageError
from ..listening import address_of, listening_at
from ..loopback import is_loopback
from ..mcp.connection import need_mcp
from ..mcp.serving import serve_mcp
from .loading import load
from .stores import store_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stores import JournalStore

__all__ = ["ServeOptions", "serve", "serve_tool"]


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of the command."""

    target: str
    host: str = "127.0.0.1"
    port: int = 9999
    store: str | None = None
    token_env: str | None = None
    grpc: bool = False
    grpc_port: int = 50051
    allow_anonymous: bool = False


def serve(options: ServeOptions, say: Callable[[str], object]) -> None:
    """Serve until the process is terminated. `say` receives messages for the user."""
    need_sdk("offbook serve")  # checked separately: other extras install the rest, too
    need_sdk("offbook serve", "sse_starlette")
    need_sdk("offbook serve", "uvicorn")

    auth = _auth(options)
    if auth is None and not is_loopback(options.host) and not options.allow_anonymous:
        msg = (
            f"--host {options.host}: without --token-env, every client that reaches it could use "
            "the agent. Pass --token-env or --allow-anonymous."
        )
        raise UsageError(msg)
    found = load(options.target)
    store = store_at(options.store) if options.store is not None else None
    try:
        app = _app(found, options, auth, store)
        no_host, no_port = (
            f"--host {options.host}",
            f"--port {options.port}: {options.host}:{options.port} cannot be used",
        )
        with closing(
            listening_at(options.host, options.port, no_host=no_host, no_port=no_port)
        ) as listening:
            place = f"http://{address_of(listening)}"
            say(
                f"{options.target} is served at {place}/a2a, its card at "
                f"{place}/.well-known/agent-card.json. Press Ctrl-C to stop."
            )
            _run(app, listening)
    finally:
        if store is not None:
            asyncio.run(store.aclose())


def _auth(options: ServeOptions) -> BearerTokens | None:
    if options.token_env is None:
        return None
    token = os.environ.get(options.token_env, "").strip()
    if not token:
        msg = f"--token-env {options.token_env}: this variable is not set or is empty. Set it."
        raise UsageError(msg)
    return BearerTokens({token: "token"})


def _app(
    found: Any, options: ServeOptions, auth: BearerTokens | None, store: JournalStore | None
) -> Any:
    """Return the app: of an agent, of a Runner; or one that the file defines."""
    if hasattr(found, "lifespan") and callable(found):
        if auth is not None or store is not None or options.grpc:
            msg = (
                f"{options.target} is already an app. Set its store, auth and gRPC where it is "
                "created, and omit --store, --token-env and --grpc."
            )
            raise UsageError(msg)
        return found
    host = f"[{options.host}]" if ":" in options.host else options.host
    grpc = f"{host}:{options.grpc_port}" if options.grpc else None
    return a2a_app(
        found, store=store, auth=auth, grpc=grpc, allow_anonymous=options.allow_anonymous
    )


def _run(app: Any, listening: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415 -- an extra

    server = uvicorn.Server(
        uvicorn.Config(app, lifespan="on", log_level="warning", timeout_graceful_shutdown=10)
    )
    server.run(sockets=[listening])
    if not server.started:
        raise UsageError("the server did not start. The log above shows the reason.")


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
