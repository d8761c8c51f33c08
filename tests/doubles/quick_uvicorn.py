"""uvicorn in the process of the tests, which sees within milliseconds that it is to stop.

Owns: `Server`. By itself it looks ten times a second, and rests a tenth of one while it stops:
hundreds of servers would take minutes of nothing else.
"""

import asyncio
from typing import Any

import uvicorn

__all__ = ["Server"]


class _Asyncio:
    """What `uvicorn.server` has as `asyncio`: its rests are a fiftieth."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 50)


uvicorn.server.asyncio = _Asyncio()  # type: ignore[assignment]
Server = uvicorn.Server
