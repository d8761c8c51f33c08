"""The process of a host, as Ray runs it: an async actor that passes bytes to the host and back.

Ray never repeats a call (request ids do that), and pickles only bytes, strings and numbers.
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
        from .transport import RayTransport  # noqa: PLC0415 -- a circular import

        _log_to_stderr()
        ray = import_ray()
        self._life = HostLife(
            spec, name, RayTransport(ray), node=ray.get_runtime_context().get_node_id()
        )
        # Ray makes the actor on its running event loop, and would call no other method by itself
        # after restarting the process.
        self._living = asyncio.get_running_loop().create_task(
            self._life.live(), name=f"host {name}"
        )

    async def take(self, client: str, link: str, number: int, data: bytes) -> bytes:
        return await self._life.take(client, link, number, data)

    async def replies(
        self, client: str, link: str, incarnation: str | None
    ) -> AsyncIterator[bytes]:
        async for batch in self._life.replies(client, link, incarnation):
            yield batch

    async def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        async for batch in self._life.events(client, request):
            yield batch

    async def call(self, what: str, data: bytes) -> bytes:
        return await self._life.call(what, data)

    async def control(self) -> bytes:
        """Return the control answer, in another thread and on another event loop.

        It answers while the host's own event loop is blocked.
        """
        return self._life.control()


def _log_to_stderr() -> None:
    """Log to the worker's stderr, unless the program has set up logging itself."""
    logger = logging.getLogger("offbook")
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)


def actor_class(ray: Any) -> Any:
    """Return the class for Ray, with `control` in its own concurrency group."""
    in_control = ray.method(concurrency_group="control")
    HostProcess.control = in_control(HostProcess.control)  # type: ignore[method-assign]
    return ray.remote(concurrency_groups={"control": 4})(HostProcess)
