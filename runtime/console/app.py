"""The console as an ASGI app, which a service mounts.

Owns: how its parts are put together, and the page itself. It must never begin or end the Runner's system or store: these are the service's.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from ..errors import UsageError
from ..runner import Runner

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .desk import Desk
    from .event_feed import Feeds
    from .gate import Auth

__all__ = ["ConsoleApp", "console_app", "need_extra"]

_FILES: Final = ("starlette", "uvicorn")


def need_extra(what: str, package: str) -> None:
    """Raise, if a package of the extra is missing."""
    if package in sys.modules:
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        msg = f"{what} needs the package {package}, which is not installed: pip install 'understudy[console]'."
        raise UsageError(msg) from error


class ConsoleApp:
    """What `console_app` returns: an ASGI app. `await aclose()` ends its streams, where nothing else does."""

    def __init__(self, gate: ASGIApp, desk: Desk) -> None:
        self._gate = gate
        self._desk = desk

    def __repr__(self) -> str:
        return f"<ConsoleApp of {self._desk.runner!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    @property
    def feeds(self) -> Feeds:
        """The streams that are open."""
        return self._desk.feeds

    def close_streams(self) -> None:
        """End what pages are looking at, so that a server need not wait for them. On the loop."""
        self._desk.feeds.close()

    async def aclose(self) -> None:
        """The same, and leave the runs that were begun from here to `recover()`."""
        await self._desk.aclose()


def console_app(runner: Runner, *, auth: Auth, only_loopback: bool = False) -> ConsoleApp:
    """A Runner's console as an ASGI app, which a service mounts.

        app.mount("/console", console_app(runner, auth=token))

    `auth` says who may use it: a token, which the address of the page has as `?token=...` once, or a function of the request (`def` or `async def`) that
    returns the name of who asks, or None for one who may not. `only_loopback` refuses requests whose `Host` is not this machine.
    """
    need_extra("console_app()", "starlette")
    from .gate import make_check  # noqa: PLC0415 -- it imports the extra

    checked = make_check(auth)
    if not isinstance(runner, Runner):
        msg = f"console_app({runner!r:.80}): give a Runner: Runner(agent, store=...)."
        raise UsageError(msg)
    return _made(runner, checked, only_loopback=only_loopback)


def _made(runner: Runner, auth: Auth, *, only_loopback: bool) -> ConsoleApp:
    from starlette.middleware.exceptions import ExceptionMiddleware  # noqa: PLC0415 -- an extra
    from starlette.routing import Mount, Route, Router  # noqa: PLC0415 -- an extra

    from .acting import Acting  # noqa: PLC0415 -- these import the extra
    from .desk import Desk  # noqa: PLC0415
    from .gate import Gate  # noqa: PLC0415
    from .looking import Looking  # noqa: PLC0415
    from .pages import page, static_files  # noqa: PLC0415
    from .talking import Talking  # noqa: PLC0415

    desk = Desk(runner)
    routes: list[Any] = [*Looking(desk).routes(), *Acting(desk).routes(), *Talking(desk).routes()]
    router = Router([*routes, Mount("/static", static_files()), Route("/", page)], redirect_slashes=True)
    return ConsoleApp(Gate(ExceptionMiddleware(router), auth, only_loopback=only_loopback), desk)
