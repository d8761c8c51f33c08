"""Custom transports: six calls, in offbook's values. The SDK is not imported."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..data.card import AgentCard
from ..data.message import A2AMessage
from ..data.parts import Metadata
from ..data.task import StreamEvent, Task
from ..errors import A2AProtocolError, A2ARequestError

if TYPE_CHECKING:
    from .limits import ClientLimits

__all__ = ["ClientTransport", "GivenConnection"]


@runtime_checkable
class ClientTransport(Protocol):
    """A custom transport to a remote agent: pass it to `A2AClient` or `RemoteAgent` as
    `transport=`.

    Failures raise `A2AConnectionError`, `A2ARequestError` or `A2AProtocolError`. `stream` and
    `subscribe` are async generators: they yield one message, or the task first and then its
    updates.
    """

    async def card(self) -> AgentCard:
        """Return the agent's card."""

    async def send(self, message: A2AMessage, metadata: Metadata, /) -> Task | A2AMessage:
        """Send a message; return a message, or the task when it has ended or waits."""

    def stream(self, message: A2AMessage, metadata: Metadata, /) -> AsyncIterator[StreamEvent]:
        """Send a message, and yield its events."""

    async def get(self, task_id: str, /) -> Task:
        """Return the current state of the task."""

    async def cancel(self, task_id: str, /) -> Task:
        """Cancel the task."""

    def subscribe(self, task_id: str, /) -> AsyncIterator[StreamEvent]:
        """Yield the current state of the task, and its changes."""


class GivenConnection:
    """One agent, called by a custom transport."""

    def __init__(self, transport: ClientTransport, limits: ClientLimits) -> None:
        self._transport = transport
        self._limits = limits
        self._card: AgentCard | None = None
        self.is_closed = False

    async def card(self) -> AgentCard:
        if self._card is None:
            self._card = await self._transport.card()
        return self._card

    async def send(
        self, message: A2AMessage, metadata: Metadata, *, wait: bool, history: int | None
    ) -> Task | A2AMessage:
        del wait, history  # a transport does not support these
        return await self._transport.send(message, metadata)

    async def stream(
        self, message: A2AMessage, metadata: Metadata
    ) -> AsyncGenerator[StreamEvent, None]:
        async for event in self._bounded(self._transport.stream(message, metadata)):
            yield event

    async def subscribe(self, task_id: str) -> AsyncGenerator[StreamEvent, None]:
        async for event in self._bounded(self._transport.subscribe(task_id)):
            yield event

    async def _bounded(self, events: Any) -> AsyncGenerator[StreamEvent, None]:
        count = 0
        async with aclosing(events):
            async for event in events:
                count += 1
                if count > self._limits.events:
                    msg = (
                        f"the transport returned more than {self._limits.events:,} events in one "
                        "stream, which is the limit. If that is intended, raise "
                        "ClientLimits(events=...)."
                    )
                    raise A2AProtocolError(msg)
                yield event

    async def get(self, task_id: str, history: int | None) -> Task:
        del history
        return await self._transport.get(task_id)

    async def cancel(self, task_id: str) -> Task:
        return await self._transport.cancel(task_id)

    async def find(self, message_id: str) -> Task | None:
        msg = (
            f"a custom transport cannot look up the task of message {message_id!r}. Pass its "
            "task_id."
        )
        raise A2ARequestError(msg, "UNSUPPORTED_OPERATION")

    async def forget_card(self) -> None:
        self._card = None

    async def close(self) -> None:
        """Mark the connection as closed. The transport is closed by its creator."""
        self.is_closed = True
