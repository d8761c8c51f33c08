"""The console as a separate server.

A client of the console can do anything with the runs: so it is only served on this machine, unless
the user chooses another address and sets a token. All checks happen before the socket is bound.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ..agent.tree import Definition
from ..durability.store_access import StoreAccess
from ..errors import UsageError
from ..listening import address_of, listening_at
from ..loopback import is_loopback
from ..runner import Runner
from ..stores import MemoryStore, Store
from ..system.state import SystemState
from ..system.system import ActorSystem
from .app import ConsoleApp, console_app, need_extra
from .look_only import LookOnly

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

__all__ = ["serve_console"]

_NAME: Final = "console"
_GRACE: Final = 5


def serve_console(
    target: Runner | Definition | None = None,
    *,
    store: Store | None = None,
    host: str = "127.0.0.1",
    port: int = 8737,
    token: str | None = None,
    say: Callable[[str], object] | None = None,
    capture_content: bool = False,
) -> None:
    """Serve the console until the process is terminated.

    `target` is a Runner; or an agent, whose runs are stored in `store`, step by step; or None, to
    inspect everything in `store`. `port` 0 is any free port. Without `token` one is generated; on
    an address that others can reach, it is required. `say` receives the address of the page; by
    default it is written to the standard output. `capture_content` shows the requests of this
    process's model calls.
    """
    need_extra("serve_console()", "starlette")
    need_extra("serve_console()", "uvicorn")
    from .gate import make_check  # noqa: PLC0415 -- it imports the extra

    _check(target, store)
    only_loopback = is_loopback(host)
    if token is None and not only_loopback:
        msg = (
            f"the console on {host} needs a token, because every client that reaches this "
            "address could use it. Pass one that cannot be guessed (token=, --token-env), or "
            "omit the host."
        )
        raise UsageError(msg)
    chosen = secrets.token_urlsafe(24) if token is None else token
    make_check(chosen)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:  # noqa: PLR2004 -- the largest there is
        msg = f"port must be an integer from 0 to 65535, got {port!r}."
        raise UsageError(msg)
    no_host, no_port = (
        f"the console on {host!r:.80}",
        f"the console on {host}:{port}: that address cannot be used",
    )
    with closing(
        listening_at(
            host,
            port,
            no_host=no_host,
            no_port=no_port,
            advice=" Pass another port, or 0 for any free port.",
        )
    ) as listening:
        (say or _write)(
            "The console is at "
            f"http://{address_of(listening)}/#token={quote(chosen, safe='')}  Press Ctrl-C to stop."
        )
        _serve(
            _Served(
                target, store, chosen, only_loopback=only_loopback, capture_content=capture_content
            ),
            listening,
        )


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _check(target: Runner | Definition | None, store: Store | None) -> None:
    if isinstance(target, str):
        msg = (
            f"serve_console() needs a Runner or an agent, got the string {target!r:.80}. Only the "
            "command loads agents from a file."
        )
        raise UsageError(msg)
    if isinstance(store, str):
        msg = (
            f"store must be a store, got the string {store!r:.80}. Pass "
            "SQLiteStore('runs.db'), RedisStore(url) or PostgresStore(dsn)."
        )
        raise UsageError(msg)
    if isinstance(target, Runner):
        if store is not None and store is not target.store:
            raise UsageError(
                "serve_console(runner, store=...): the Runner has its own store. Omit store=, or "
                "set it on the Runner."
            )
    elif target is None and store is None:
        raise UsageError("serve_console() has nothing to show. Pass a Runner, an agent, or store=.")
    elif target is not None and not hasattr(target, "sub_agents"):
        msg = f"serve_console() needs a Runner, an agent, or None, got {target!r:.80}."
        raise UsageError(msg)
    kept = target.store if isinstance(target, Runner) else store
    if kept is not None:
        StoreAccess(kept).require_list("the console")


class _Served:
    """The app: the console, in a system with the lifetime of the server if the target has none."""

    def __init__(
        self,
        target: Runner | Definition | None,
        store: Store | None,
        token: str,
        *,
        only_loopback: bool,
        capture_content: bool = False,
    ) -> None:
        self._target = target
        self._store = store
        self._token = token
        self._only_loopback = only_loopback
        self._capture_content = capture_content
        self._loop: asyncio.AbstractEventLoop | None = None
        self.console: ConsoleApp | None = None

    def close_streams(self) -> None:
        """End the streams of all pages. Called from a signal handler."""
        if self._loop is not None and self.console is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.console.close_streams)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            assert self.console is not None
            await self.console(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._loop = asyncio.get_running_loop()
        try:
            held = self.opened()
            self.console = await held.__aenter__()
        except Exception as error:
            await send(
                {"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"}
            )
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await held.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ConsoleApp]:
        """Yield the console while it is served."""
        if isinstance(self._target, Runner):
            system = self._target.system
            # Made next to the Runner in a file, before a loop is running.
            is_new = system is not None and system.state is SystemState.NEW
            async with (
                system if is_new and system is not None else nullcontext(),
                self._console(self._target) as console,
            ):
                yield console
            return
        async with ActorSystem(_NAME) as system:
            agent: Any = LookOnly(_NAME) if self._target is None else self._target
            store = MemoryStore() if self._store is None else self._store
            async with self._console(
                Runner(agent, system=system, store=store, durability="step")
            ) as console:
                yield console

    @asynccontextmanager
    async def _console(self, runner: Runner) -> AsyncIterator[ConsoleApp]:
        console = console_app(
            runner,
            auth=self._token,
            only_loopback=self._only_loopback,
            capture_content=self._capture_content,
        )
        try:
            yield console
        finally:
            await console.aclose()


def _serve(app: _Served, listening: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415 -- an extra

    class Server(uvicorn.Server):
        """A server that does not wait for open pages."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            app.close_streams()

    config = uvicorn.Config(
        app,
        lifespan="on",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
        server_header=False,
    )
    server = Server(config)
    server.run(sockets=[listening])
    if not server.started:
        raise UsageError("the console did not start. The log above shows the reason.")
