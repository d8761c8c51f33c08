"""Adapts a model in the style of the Agents SDK.

Such a model stores the state of its session itself, so it serves only one session at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from ....runtime.errors import UsageError
from ..model import RealtimeConnection, RealtimeModel, RealtimeModelConfig
from ..model_events import RealtimeModelEvent
from ..model_inputs import (
    RealtimeModelSendDelete,
    RealtimeModelSendEvent,
    RealtimeModelSendItem,
    RealtimeModelSendRawMessage,
    RealtimeModelSendResponse,
)

__all__ = ["SdkModel", "adapted"]

_MOST: Final = 100_000


def adapted(model: Any) -> RealtimeModel:
    """Return the model, adapted if it is in the style of the SDK."""
    if hasattr(model, "add_listener") and hasattr(model, "send_event"):
        return SdkModel(model)
    if not hasattr(model, "connect"):
        msg = (
            f"model must be a realtime model with a method connect(), got {model!r}. Pass "
            "OpenAIRealtimeModel(...), or omit model."
        )
        raise UsageError(msg)
    found: RealtimeModel = model
    return found


class SdkModel:
    """An adapted model."""

    def __init__(self, model: Any) -> None:
        self._model = model

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        model = self._model
        if getattr(model, "offbook_session", False):
            msg = (
                f"{type(model).__name__} is a model in the style of the Agents SDK, which serves "
                "one session at a time, and is already in use. Create another model for this "
                "session."
            )
            raise UsageError(msg)
        connection = _SdkConnection(model)
        model.offbook_session = True
        model.add_listener(connection)
        try:
            await model.connect(options)
        except BaseException:
            model.offbook_session = False
            model.remove_listener(connection)
            raise
        return connection


class _SdkConnection:
    """The one session of an adapted model."""

    keeps_conversation = False

    def __init__(self, model: Any) -> None:
        self._model = model
        self._queue: asyncio.Queue[RealtimeModelEvent | None] = asyncio.Queue(_MOST)

    async def on_event(self, event: RealtimeModelEvent) -> None:
        """Queue an event of the model."""
        await self._queue.put(event)

    async def send(self, event: RealtimeModelSendEvent) -> None:
        if isinstance(event, RealtimeModelSendResponse):
            other: dict[str, Any] = dict(event.other_data or {})
            if event.tool_choice is not None:
                other["response"] = {**other.get("response", {}), "tool_choice": event.tool_choice}
            event = RealtimeModelSendRawMessage(
                {"type": "response.create", **({"other_data": other} if other else {})}  # type: ignore[typeddict-item]
            )
        elif isinstance(event, RealtimeModelSendDelete):
            event = RealtimeModelSendRawMessage(
                {"type": "conversation.item.delete", "other_data": {"item_id": event.item_id}}
            )
        elif isinstance(event, RealtimeModelSendItem):
            from ..wire.encode import raw_messages  # noqa: PLC0415 -- these models use OpenAI's protocol

            for message in raw_messages(event):
                kind = message.pop("type")
                await self._model.send_event(
                    RealtimeModelSendRawMessage({"type": kind, "other_data": message})
                )
            return
        await self._model.send_event(event)

    async def events(self) -> AsyncIterator[RealtimeModelEvent]:
        while True:
            event = await self._queue.get()
            if event is None:
                return
            yield event

    async def close(self) -> None:
        self._model.offbook_session = False
        self._model.remove_listener(self)
        await self._model.close()
