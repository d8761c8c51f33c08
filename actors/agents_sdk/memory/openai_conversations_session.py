"""Sessions that OpenAI keeps.

Owns: `OpenAIConversationsSession`. It must never keep an item itself.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..coercion import as_settings
from .session import SessionABC
from .session_settings import SessionSettings, session_limit

__all__ = ["OpenAIConversationsSession", "start_openai_conversations_session"]


async def start_openai_conversations_session(openai_client: Any = None) -> str:
    """Begin a conversation at OpenAI. Returns its id."""
    from ..models.settings import client_for  # noqa: PLC0415 -- it brings OpenAI's client

    conversation = await client_for(openai_client).conversations.create(items=[])
    return str(conversation.id)


class OpenAIConversationsSession(SessionABC):
    """A conversation at OpenAI. It begins with the first call that needs it."""

    keeps_at_openai = True

    def __init__(
        self, *, conversation_id: str | None = None, openai_client: Any = None, session_settings: SessionSettings | dict[str, Any] | None = None
    ) -> None:
        from ..models.settings import client_for  # noqa: PLC0415 -- it brings OpenAI's client

        self._session_id = conversation_id
        self._beginning = asyncio.Lock()
        self._client = client_for(openai_client)
        self.session_settings = SessionSettings() if session_settings is None else as_settings(session_settings, SessionSettings, "session_settings")

    @property
    def session_id(self) -> str:
        if self._session_id is None:
            msg = "Session ID not yet available. The conversation begins with the first call that needs it: call get_items() or add_items([...]) first."
            raise ValueError(msg)
        return self._session_id

    @session_id.setter
    def session_id(self, value: str) -> None:
        self._session_id = value

    async def _id(self) -> str:
        async with self._beginning:
            if self._session_id is None:
                self._session_id = await start_openai_conversations_session(self._client)
            return self._session_id

    async def get_items(self, limit: int | None = None) -> list[Any]:
        conversation_id = await self._id()
        most = session_limit(limit, self.session_settings)
        if most == 0:
            return []
        items = self._client.conversations.items
        if most is None:
            return [item.model_dump(exclude_unset=True) async for item in items.list(conversation_id=conversation_id, order="asc")]
        found: list[Any] = []
        async for item in items.list(conversation_id=conversation_id, limit=most, order="desc"):
            found.append(item.model_dump(exclude_unset=True))
            if len(found) >= most:
                break
        return found[::-1]

    async def add_items(self, items: list[Any]) -> None:
        if items:
            await self._client.conversations.items.create(conversation_id=await self._id(), items=items)

    async def pop_item(self) -> Any | None:
        conversation_id = await self._id()
        items = await self.get_items(limit=1)
        if not items:
            return None
        await self._client.conversations.items.delete(conversation_id=conversation_id, item_id=str(items[0]["id"]))
        return items[0]

    async def clear_session(self) -> None:
        async with self._beginning:
            if self._session_id is not None:
                await self._client.conversations.delete(conversation_id=self._session_id)
                self._session_id = None
