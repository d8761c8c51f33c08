"""An actor identified by a key: spawned at a message, stopped when it has been idle.

Between two messages there may be no such actor anywhere. Its state is lost then, except for the
data that it has stored itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...errors import AskTimeout
from ..errors import HostLost
from .line import Entry, ask
from .refs import packed_message

if TYPE_CHECKING:
    from ..transport import HostGone
    from .link import Call
    from .routes import Routes

__all__ = ["KeyedActor"]


class KeyedActor:
    """The actor that `Cluster.actor` returns."""

    __slots__ = ("_args", "_class_name", "_idle", "_kwargs", "_routes", "key")

    def __init__(
        self,
        routes: Routes,
        class_name: str,
        key: str,
        idle: float,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        self.key = key
        self._routes = routes
        self._class_name = class_name
        self._idle = idle
        self._args = args
        self._kwargs = kwargs

    def __repr__(self) -> str:
        return f"<KeyedActor {self._class_name} {self.key!r}>"

    async def request(self, message: object, *, timeout: float | None = None) -> Any:
        """Send a message, and wait for the reply.

        If the host is lost meanwhile, `HostLost` is raised: the message may have been handled.
        """
        try:
            async with asyncio.timeout(None if timeout is None else timeout + 0.5) as limit:
                return await self._answer("ask", message, timeout)
        except TimeoutError:
            if not limit.expired():
                raise
            msg = (
                f"{self!r} has not replied within {timeout:g} s. The message may still be "
                "handled. Pass a larger timeout, or check the host's log."
            )
            raise AskTimeout(msg, message=message) from None

    async def send(self, message: object) -> None:
        """Put a message into the actor's mailbox."""
        await self._answer("send", message, None)

    async def _answer(self, how: str, message: object, timeout: float | None) -> Any:
        key = f"{self._class_name}/{self.key}"
        body = packed_message(
            "actor",
            [
                self._class_name,
                self.key,
                list(self._args),
                self._kwargs,
                self._idle,
                [how, message, timeout],
            ],
        )
        return await ask(
            self._routes, key, Entry("keyed", body, repr(self), check_lost=self._check_lost)
        )

    def _check_lost(self, _call: Call, gone: HostGone) -> None:
        msg = (
            f"host {gone.host!r} is gone, and {self!r} may have handled the message before. Send "
            "it again only if handling it twice is safe."
        )
        raise HostLost(msg) from gone
