"""The console as an ASGI app, which a service mounts.

It never starts or stops the Runner's system or store: these belong to the service.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Final

from ..errors import UsageError
from ..runner import Runner
from ..telemetry.switch import wants_content

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .desk import Desk
    from .event_feed import Feeds
    from .gate import Auth

__all__ = ["ConsoleApp", "console_app", "need_extra"]

_FILES: Final = ("starlette", "uvicorn")


def need_extra(what: str, package: str) -> None:
    """Raise UsageError if a package of the extra is missing."""
    if package in sys.modules:
        return
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        msg = (
            f"{what} needs the package {package}, which is not installed: pip install "
            "'offbook[console]'."
        )
        raise UsageError(msg) from error


class ConsoleApp:
    """The ASGI app that `console_app` returns.

    `await aclose()` ends its streams, where nothing else does.
    """

    def __init__(self, gate: ASGIApp, desk: Desk) -> None:
        self._gate = gate
        self._desk = desk

    def __repr__(self) -> str:
        return f"<ConsoleApp of {self._desk.runner!r}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate(scope, receive, send)

    @property
    def feeds(self) -> Feeds:
        """The open streams."""
        return self._desk.feeds

    def close_streams(self) -> None:
        """End the streams of all pages, so that a server need not wait. Call it on the loop."""
        self._desk.feeds.close()

    async def aclose(self) -> None:
        """End all streams, and leave the runs started from here to `recover()`."""
        await self._desk.aclose()


def console_app(
    runner: Runner, *, auth: Auth, only_loopback: bool = False, capture_content: bool = False
) -> ConsoleApp:
    """Return a Runner's console as an ASGI app, which a service mounts.

        app.mount("/console", console_app(runner, auth=token))

    `auth` decides who may use it: a token, which the page asks for, or finds in its address
    (`#token=...`), or a function of the request (`def` or `async def`) that returns the name of the
    caller, or None to refuse. `only_loopback` refuses requests whose `Host` is not this machine.
    `capture_content` shows the requests of this process's model calls, from now on and as long as
    memory has them.
    """
    need_extra("console_app()", "starlette")
    from .gate import make_check  # noqa: PLC0415 -- it imports the extra

    checked = make_check(auth)
    if not isinstance(runner, Runner):
        msg = f"console_app() needs a Runner, got {runner!r:.80}. Pass Runner(agent, store=...)."
        raise UsageError(msg)
    return _made(runner, checked, only_loopback=only_loopback, capture_content=capture_content)


def _made(runner: Runner, auth: Auth, *, only_loopback: bool, capture_content: bool) -> ConsoleApp:
    from starlette.middleware.exceptions import ExceptionMiddleware  # noqa: PLC0415 -- an extra
    from starlette.routing import Mount, Route, Router  # noqa: PLC0415 -- an extra

    from .acting import Acting  # noqa: PLC0415 -- these import the extra
    from .desk import Desk  # noqa: PLC0415
    from .gate import Gate  # noqa: PLC0415
    from .looking import Looking  # noqa: PLC0415
    from .pages import page, static_files  # noqa: PLC0415
    from .talking import Talking  # noqa: PLC0415

    desk = Desk(runner, capture_content=capture_content or wants_content())
    routes: list[Any] = [*Looking(desk).routes(), *Acting(desk).routes(), *Talking(desk).routes()]
    router = Router(
        [*routes, Mount("/static", static_files()), Route("/", page)], redirect_slashes=True
    )
    return ConsoleApp(Gate(ExceptionMiddleware(router), auth, only_loopback=only_loopback), desk)
