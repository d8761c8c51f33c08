"""Sessions in a store of understudy's.

Owns: `StoreSession`: the items of a conversation in any store: a file, a directory, Redis, PostgreSQL. It must never be written by two processes at once: the
one that writes last would win.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ....runtime.maybe_await import maybe_await
from ..coercion import as_settings
from .session import SessionABC
from .session_settings import SessionSettings, session_limit

if TYPE_CHECKING:
    from ....runtime.stores import Store

__all__ = ["StoreSession"]


class StoreSession(SessionABC):
    """A session in a store."""

    def __init__(self, store: Store, session_id: str, *, session_settings: SessionSettings | dict[str, Any] | None = None) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else as_settings(session_settings, SessionSettings, "session_settings")
        self._store = store
        self._key = f"agents_sdk/session/{session_id}"
        self._writing = asyncio.Lock()

    async def _read(self) -> list[Any]:
        kept = await maybe_await(self._store.get(self._key))
        return [] if kept is None else list(json.loads(kept))

    async def _write(self, items: list[Any]) -> None:
        await maybe_await(self._store.set(self._key, json.dumps(items).encode()))

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items, most = await self._read(), session_limit(limit, self.session_settings)
        return items if most is None or most < 0 else items[len(items) - min(most, len(items)) :]

    async def add_items(self, items: list[Any]) -> None:
        if items:
            async with self._writing:
                await self._write([*await self._read(), *items])

    async def pop_item(self) -> Any | None:
        async with self._writing:
            items = await self._read()
            if not items:
                return None
            last = items.pop()
            await self._write(items)
            return last

    async def clear_session(self) -> None:
        async with self._writing:
            await maybe_await(self._store.delete(self._key))
