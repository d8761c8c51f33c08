"""A session of the SDK in an offbook store."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from agents import SessionSettings
from agents.memory import SessionABC

from ...runtime.maybe_await import maybe_await

if TYPE_CHECKING:
    from ...runtime.stores import Store

__all__ = ["StoreSession"]


class StoreSession(SessionABC):
    """The items of a conversation in any store: a file, Redis, PostgreSQL.

    Only one process at a time may write to a session.
    """

    def __init__(
        self, store: Store, session_id: str, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._store = store
        self._key = f"agents_sdk/session/{session_id}"
        self._writing = asyncio.Lock()

    async def _read(self) -> list[Any]:
        stored = await maybe_await(self._store.get(self._key))
        return [] if stored is None else list(json.loads(stored))

    async def _write(self, items: list[Any]) -> None:
        await maybe_await(self._store.set(self._key, json.dumps(items).encode()))

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items = await self._read()
        settings = self.session_settings
        most = settings.limit if limit is None and settings is not None else limit
        return items if most is None or most < 0 else items[max(0, len(items) - most) :]

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
