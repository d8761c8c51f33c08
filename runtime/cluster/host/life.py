"""The incarnations of a host, one after the other in the same process.

One ends when the store has lost or revoked its owner; then the next one starts. Two incarnations
never overlap. The process answers while none is up, pauses between attempts, and ends for good on
request.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final

from ...backoff import jittered
from ...codec.packing import pack, unpack
from ...errors import text_of
from ...log import loggers
from ...system.system import ActorSystem
from ..control import ControlBoard
from ..spec import ClusterSpec
from ..transport import HostGone
from .host import ClusterHost

if TYPE_CHECKING:
    from ..transport import Transport

__all__ = ["HostLife", "MakesSystem"]

MakesSystem = Callable[[float], ActorSystem]

_FIRST_WAIT: Final = 1.0
_LAST_WAIT: Final = 30.0
_JITTER: Final = 0.2


class HostLife:
    """The life of a host's process, from its start to its end."""

    def __init__(
        self,
        spec: bytes,
        name: str,
        transport: Transport,
        *,
        node: str = "",
        make_system: MakesSystem | None = None,
    ) -> None:
        self._spec = ClusterSpec.read(spec)
        self._name = name
        self._transport = transport
        self.board = ControlBoard(name, os.getpid(), node, spec)
        self._make_system = make_system or (lambda lease: ActorSystem(name, lease_seconds=lease))
        self._host: ClusterHost | None = None  # the current incarnation, while it is up
        self._tried = asyncio.Event()  # whether the first attempt has succeeded or failed
        self._problem: Exception | None = None
        self._leaving = asyncio.Event()
        self._ended = asyncio.Event()

    async def live(self) -> None:
        """Run incarnations until `end()` is called."""
        wait = _FIRST_WAIT
        try:
            while not self._leaving.is_set():
                problem = await self._live_once()
                if problem is None:
                    wait = _FIRST_WAIT
                    continue
                self._problem, self.board.problem = (
                    problem,
                    f"{type(problem).__name__}: {text_of(problem)}",
                )
                self._tried.set()
                loggers.cluster.error(
                    "Host %s could not start, and tries again in about %.0f s: %s",
                    self._name,
                    wait,
                    self.board.problem,
                )
                await self._pause(jittered(wait, _JITTER))
                wait = min(2 * wait, _LAST_WAIT)
        finally:
            self._ended.set()

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._leaving.wait(), seconds)
        except TimeoutError:
            return

    async def _live_once(self) -> Exception | None:
        """Run one incarnation. Return the problem that prevented it from being up, or None."""
        system = self._make_system(self._spec.limits.lease_seconds)
        was_up = False
        try:
            await system.start()
            host = ClusterHost(self._spec, self._name, system, self._transport, self.board)
            try:
                try:
                    await host.begin()
                    was_up = True
                    self._host, self._problem = host, None
                    self._tried.set()
                    if not self._leaving.is_set():
                        await host.ended.wait()
                finally:
                    self._host = None
                    self.board.state = "lost"
                    await host.end()
                    await system.stop()
            finally:
                await host.close_opened()
        except Exception as problem:  # noqa: BLE001 -- logged and retried
            if was_up:
                loggers.cluster.error(
                    "Host %s did not end cleanly: %s: %s",
                    self._name,
                    type(problem).__name__,
                    text_of(problem),
                )
                return None
            return problem
        return None

    async def end(self) -> None:
        """End for good."""
        self._leaving.set()
        if self._host is not None:
            self._host.ended.set()
        await self._ended.wait()

    # --- calls from outside ---

    def control(self) -> bytes:
        """Return the control answer. Any thread may call this."""
        return self.board.answer()

    async def call(self, what: str, data: bytes) -> bytes:
        """Handle one of the few calls that are not requests."""
        if what == "started":
            await self._tried.wait()
            return pack(self._problem)
        if what == "drain":
            host = self._host
            report: dict[str, Any] = {} if host is None else await host.drain(unpack(data))
            return pack(report)
        if what == "end":
            await self.end()
            return pack(None)
        raise HostGone(
            self._name,
            self.board.incarnation,
            f"host {self._name!r} does not know the command {what!r}, because it runs another "
            "version of offbook. Update the hosts: call roll()",
        )

    async def take(self, client: str, link: str, number: int, data: bytes) -> bytes:
        host = self._host
        return b"" if host is None else await host.take(client, link, number, data)

    async def replies(
        self, client: str, link: str, incarnation: str | None
    ) -> AsyncIterator[bytes]:
        await self._tried.wait()
        if self._host is not None:
            async for batch in self._host.replies(client, link, incarnation):
                yield batch

    async def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        if self._host is not None:
            async for batch in self._host.events(client, request):
                yield batch
