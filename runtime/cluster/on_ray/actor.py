"""The process of a host, as Ray runs it: an async actor that hands bytes to the host and back.

Owns: nothing but that. Ray must never repeat a call (ids do), nor pickle anything but bytes, texts and numbers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from ..host.life import HostLife
from .environment import import_ray

__all__ = ["HostProcess", "actor_class"]


class HostProcess:
    """One host."""

    def __init__(self, name: str, spec: bytes) -> None:
        from .transport import RayTransport  # noqa: PLC0415 -- the two know each other

        logging.getLogger("understudy").setLevel(logging.INFO)
        ray = import_ray()
        self._life = HostLife(spec, name, RayTransport(ray), node=ray.get_runtime_context().get_node_id())
        # Ray makes the actor on its running loop, and would not call anything else by itself when it has started the process again.
        self._living = asyncio.get_running_loop().create_task(self._life.live(), name=f"host {name}")

    async def take(self, client: str, link: str, number: int, data: bytes) -> None:
        self._life.take(client, link, number, data)

    async def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        async for batch in self._life.replies(client, link, incarnation):
            yield batch

    async def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        async for batch in self._life.events(client, request):
            yield batch

    async def call(self, what: str, data: bytes) -> bytes:
        return await self._life.call(what, data)

    async def control(self) -> bytes:
        """In another thread, on another loop: it answers while the host's own is blocked."""
        return self._life.control()


def actor_class(ray: Any) -> Any:
    """The class, as Ray wants it: `control` in a concurrency group of its own."""
    HostProcess.control = ray.method(concurrency_group="control")(HostProcess.control)  # type: ignore[method-assign]  # it only marks it
    return ray.remote(concurrency_groups={"control": 4})(HostProcess)
