"""How the examples serve an agent: on a local port, for the duration of a block.

In your own service, use `uvicorn module:app`.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

App = Callable[[Any, Any, Any], Awaitable[None]]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@asynccontextmanager
async def serving(app: App, port: int | None = None) -> AsyncIterator[str]:
    """Serve, and give the address."""
    port = port or free_port()
    server = uvicorn.Server(
        uvicorn.Config(
            app, port=port, log_level="error", interface="asgi3", timeout_graceful_shutdown=1
        )
    )
    task = asyncio.create_task(server.serve())
    while not server.started and not task.done():  # noqa: ASYNC110 -- it says so by an attribute, and by nothing else
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
