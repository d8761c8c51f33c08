"""The console as a server of its own.

Owns: what is checked before anything is bound, the token, the socket, and the life of the server. What reaches the console can do anything with the runs:
it is on this machine only, unless the user says otherwise and names a token.
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
) -> None:
    """Serve the console until the process is told to end.

    `target` is a Runner; or an agent, whose runs are kept in `store`, each step of them; or None, to look at all that is in `store`. `port` 0 is any that is
    free. Without `token` one is made; on an address that others can reach, it has to be given. `say` is given the address of the page; else it is written to
    the standard output.
    """
    need_extra("serve_console()", "starlette")
    need_extra("serve_console()", "uvicorn")
    from .gate import is_loopback, make_check  # noqa: PLC0415 -- it imports the extra

    _check(target, store)
    only_loopback = is_loopback(host)
    if token is None and not only_loopback:
        msg = f"the console on {host}: all who reach that address could use it. Give a token that cannot be guessed (token=, --token-env), or leave the host."
        raise UsageError(msg)
    chosen = secrets.token_urlsafe(24) if token is None else token
    make_check(chosen)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:  # noqa: PLR2004 -- the largest there is
        msg = f"serve_console(port={port!r}): give a number from 0 to 65535."
        raise UsageError(msg)
    no_host, no_port = f"the console on {host!r:.80}", f"the console on {host}:{port}: that address cannot be used"
    with closing(listening_at(host, port, no_host=no_host, no_port=no_port, advice=" Give another port, or 0 for any that is free.")) as listening:
        (say or _write)(f"The console is at http://{address_of(listening)}/?token={quote(chosen, safe='')}  Ctrl-C ends it.")
        _serve(_Served(target, store, chosen, only_loopback=only_loopback), listening)


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _check(target: Runner | Definition | None, store: Store | None) -> None:
    if isinstance(target, str):
        msg = f"serve_console({target!r:.80}): a text is no Runner. Give a Runner or an agent; a command loads it from its file first."
        raise UsageError(msg)
    if isinstance(store, str):
        msg = f"serve_console(store={store!r:.80}): a text is no store. Give SQLiteStore('runs.db'), RedisStore(url) or PostgresStore(dsn)."
        raise UsageError(msg)
    if isinstance(target, Runner):
        if store is not None and store is not target.store:
            raise UsageError("serve_console(runner, store=...): the Runner has a store already, or has none because it was made so. Give the Runner alone.")
    elif target is None and store is None:
        raise UsageError("serve_console(): there is nothing to look at. Give a Runner, an agent, or store=.")
    elif target is not None and not hasattr(target, "sub_agents"):
        msg = f"serve_console({target!r:.80}): give a Runner, an agent, or None."
        raise UsageError(msg)
    kept = target.store if isinstance(target, Runner) else store
    if kept is not None:
        StoreAccess(kept).require_list("the console")


class _Served:
    """The app: the console, in a system that lives as long as the server, if the target has none of its own."""

    def __init__(self, target: Runner | Definition | None, store: Store | None, token: str, *, only_loopback: bool) -> None:
        self._target = target
        self._store = store
        self._token = token
        self._only_loopback = only_loopback
        self._loop: asyncio.AbstractEventLoop | None = None
        self.console: ConsoleApp | None = None

    def close_streams(self) -> None:
        """End what pages look at. From a handler of signals."""
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
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await held.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ConsoleApp]:
        """The console, as long as it is served."""
        if isinstance(self._target, Runner):
            system = self._target.system
            is_new = system is not None and system.state is SystemState.NEW  # made beside the Runner in a file, where no loop is running yet
            async with system if is_new and system is not None else nullcontext(), self._console(self._target) as console:
                yield console
            return
        async with ActorSystem(_NAME) as system:
            agent: Any = LookOnly(_NAME) if self._target is None else self._target
            store = MemoryStore() if self._store is None else self._store
            async with self._console(Runner(agent, system=system, store=store, durability="step")) as console:
                yield console

    @asynccontextmanager
    async def _console(self, runner: Runner) -> AsyncIterator[ConsoleApp]:
        console = console_app(runner, auth=self._token, only_loopback=self._only_loopback)
        try:
            yield console
        finally:
            await console.aclose()


def _serve(app: _Served, listening: socket.socket) -> None:
    import uvicorn  # noqa: PLC0415 -- an extra

    class Server(uvicorn.Server):
        """A server that does not wait for the pages that look on."""

        def handle_exit(self, sig: int, frame: Any) -> None:
            super().handle_exit(sig, frame)
            app.close_streams()

    config = uvicorn.Config(app, lifespan="on", log_level="warning", access_log=False, timeout_graceful_shutdown=_GRACE, server_header=False)
    server = Server(config)
    server.run(sockets=[listening])
    if not server.started:
        raise UsageError("the console has not started; what is wrong stands above.")
