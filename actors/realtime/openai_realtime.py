"""OpenAI's realtime models, and servers that implement their protocol.

The client's own reconnecting is off, because it would send data meant for the old conversation to
an empty one. A model stores nothing of a session.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.chat import new_id
from ...runtime.errors import ModelError, UsageError
from ...runtime.maybe_await import maybe_await
from .agent import RealtimeAgent
from .config import RealtimeRunConfig, checked_config
from .model import RealtimeConnection, RealtimeModelConfig
from .model_events import RealtimeModelErrorEvent, RealtimeModelEvent, RealtimeModelRawServerEvent
from .model_inputs import (
    RealtimeModelSendAudio,
    RealtimeModelSendEvent,
    RealtimeModelSendSessionUpdate,
)
from .state.settings import DEFAULT_MODEL_SETTINGS, agent_settings, flatten
from .wire.decode import decode, read_message
from .wire.encode import messages_of, session_payload
from .wire.socket import Socket, closed_error, is_clean_close, open_client_socket, open_socket

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = [
    "OpenAIRealtimeModel",
    "OpenAIRealtimeSIPModel",
    "OpenAIRealtimeWebSocketModel",
    "get_api_key",
]

_TRANSPORT: Final = ("ping_interval", "ping_timeout", "handshake_timeout", "max_size")
_MOST_UNREADABLE: Final = 10
_SETTINGS_SECONDS: Final = 15.0


async def get_api_key(key: str | Callable[[], str | Awaitable[str]] | None) -> str | None:
    """Return the key: a string, the result of a function, or the environment's key for None."""
    if callable(key):
        found: str = await maybe_await(key())
        return found
    return key if key is not None else os.environ.get("OPENAI_API_KEY")


class OpenAIRealtimeModel:
    """A realtime model of OpenAI, over a websocket."""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | Callable[[], str | Awaitable[str]] | None = None,
        base_url: str | None = None,
        client: AsyncOpenAI | None = None,
        transport_config: Mapping[str, Any] | None = None,
    ) -> None:
        for name in transport_config or {}:
            if name not in _TRANSPORT:
                msg = (
                    f"transport_config has the unknown key {name!r}. Known keys: "
                    f"{', '.join(_TRANSPORT)}."
                )
                raise UsageError(msg)
        self.model = model or "gpt-realtime-2.1"
        self._api_key = api_key
        self._base_url = base_url
        self._client = client
        self._transport = dict(transport_config or {})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r}>"

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        """Connect one session. Return when its settings are in force."""
        settings = flatten(options.get("initial_model_settings"))
        call_id = options.get("call_id")
        if call_id and "model_name" in settings:
            msg = (
                "model_config must not have both call_id and model_name, because a call already "
                "has its model. Omit one of them."
            )
            raise UsageError(msg)
        flat = settings if call_id else {**flatten(DEFAULT_MODEL_SETTINGS), **settings}
        model = None if call_id else str(flat.pop("model_name", None) or self.model)
        if self._client is not None and "url" not in options:
            socket = await open_client_socket(self._client, options, model, self._transport)
        else:
            socket = await open_socket(
                options, model, self._api_key, self._base_url, self._transport
            )
        connection = _Connection(socket, keeps_conversation=bool(call_id))
        try:
            async with asyncio.timeout(_SETTINGS_SECONDS):
                await connection.begin(flat)
        except BaseException as error:
            await socket.close()
            if isinstance(error, TimeoutError):
                msg = (
                    "the realtime server did not confirm the first settings within "
                    f"{_SETTINGS_SECONDS:g} s. Check the url and the network, and try again"
                )
                raise ModelError(msg, kind="timeout", retryable=True) from None
            raise
        return connection


OpenAIRealtimeWebSocketModel = OpenAIRealtimeModel


class OpenAIRealtimeSIPModel(OpenAIRealtimeModel):
    """A realtime model attached to a telephone call, which `call_id` identifies.

    The audio of the call does not pass through this process.
    """

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        if not options.get("call_id"):
            msg = (
                "OpenAIRealtimeSIPModel needs the id of the call that it attaches to. "
                "Pass model_config={'call_id': ...}."
            )
            raise UsageError(msg)
        return await super().connect(options)

    @staticmethod
    async def build_initial_session_payload(
        agent: RealtimeAgent,
        *,
        context: object = None,
        model_config: RealtimeModelConfig | None = None,
        run_config: RealtimeRunConfig | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Build the session for the request that accepts a call."""
        run = RunContext(new_id(), None, SessionValues(), (), ())
        run.context = context
        first = (model_config or {}).get("initial_model_settings")
        settings = await agent_settings(
            agent,
            run,
            (checked_config(run_config).get("model_settings"), first, overrides),
            first=first,
        )
        return session_payload(settings.flat)


class _Connection:
    """One session's connection."""

    shows_wire = False
    """Whether the server's own messages are shown as well."""

    def __init__(self, socket: Socket, *, keeps_conversation: bool) -> None:
        self._socket = socket
        self.keeps_conversation = keeps_conversation
        self._updates: list[
            tuple[str, asyncio.Future[None]]
        ] = []  # updates that are not in force yet, in order
        self._closed = False
        self._unreadable = 0

    async def begin(self, flat: Mapping[str, Any]) -> None:
        """Send the first settings, and wait until they are in force."""
        event_id = f"event_{new_id()}"
        await self._send_update(event_id, flat)
        while True:
            message = read_message(await self._receive())
            if message["type"] == "session.updated":
                return
            if message["type"] == "error":
                error = message["error"]
                msg = f"the model has refused the settings: {error.get('message')}"
                code = error.get("code") or error.get("type") or "other"
                raise ModelError(
                    msg, kind=str(code), retryable=code in ("server_error", "session_expired")
                )

    async def _receive(self) -> bytes | str:
        try:
            return await self._socket.recv(decode=False)
        except Exception as error:  # noqa: BLE001 -- any error ends the connection
            raise closed_error(error) from None

    async def _send_update(self, event_id: str, flat: Mapping[str, Any]) -> None:
        import json  # noqa: PLC0415 -- used only here

        await self._put(
            json.dumps(
                {"type": "session.update", "event_id": event_id, "session": session_payload(flat)},
                ensure_ascii=False,
            )
        )

    async def send(self, event: RealtimeModelSendEvent) -> None:
        if self._closed:
            msg = "the connection to the realtime server is closed, so nothing was sent"
            raise ModelError(msg, kind="connection", retryable=True)
        if isinstance(event, RealtimeModelSendSessionUpdate):
            event_id = f"event_{new_id()}"
            waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = (event_id, waits)
            self._updates.append(entry)
            try:
                await self._send_update(event_id, flatten(event.session_settings))
                await waits
            finally:
                if entry in self._updates:
                    self._updates.remove(entry)
            return
        if isinstance(event, RealtimeModelSendAudio) and not event.audio and not event.commit:
            return
        for message in messages_of(event):
            await self._put(message)

    async def _put(self, message: str) -> None:
        try:
            await self._socket.send(message)
        except Exception as error:  # noqa: BLE001 -- any error ends the connection
            raise closed_error(error) from None

    async def events(self) -> AsyncIterator[RealtimeModelEvent]:
        while True:
            try:
                data = await self._socket.recv(decode=False)
            except Exception as error:  # noqa: BLE001 -- any error ends the connection
                self._void_updates()
                if self._closed or is_clean_close(error):
                    return
                raise closed_error(error) from None
            try:
                message = read_message(data)
                found = self._known(message)
                decoded = decode(message) if found is None else found
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                yield self._unread(error)
                continue
            self._unreadable = 0
            if self.shows_wire:
                yield RealtimeModelRawServerEvent(message)
            for event in decoded:
                yield event

    def _unread(self, error: Exception) -> RealtimeModelErrorEvent:
        self._unreadable += 1
        if self._unreadable > _MOST_UNREADABLE:
            msg = (
                f"more than {_MOST_UNREADABLE} messages of the realtime server in a row were not "
                "valid JSON of its protocol, so the connection was closed. Check the url"
            )
            raise ModelError(msg, kind="malformed")
        msg = (
            f"a message of the realtime server is not valid and was skipped: {type(error).__name__}"
        )
        return RealtimeModelErrorEvent(
            ModelError(msg, kind="malformed", retryable=True), code="unreadable_message"
        )

    def _known(self, message: dict[str, Any]) -> list[RealtimeModelEvent] | None:
        """Return the events of a message that concerns the connection alone.

        None: the session handles it.
        """
        kind = message["type"]
        if kind == "session.updated":
            if self._updates:
                _, waits = self._updates.pop(0)
                if not waits.done():
                    waits.set_result(None)
            return None
        if kind != "error":
            return None
        error = message["error"]
        if error.get("code") == "session_expired":
            msg = (
                "the realtime server ended the connection, because its session expired. The "
                "session reconnects if config['reconnect'] allows it"
            )
            raise ModelError(msg, kind="session_expired", retryable=True)
        for entry in self._updates:
            if entry[0] == error.get("event_id"):
                self._updates.remove(entry)
                if not entry[1].done():
                    msg = f"the model has refused the settings: {error.get('message')}"
                    entry[1].set_exception(
                        ModelError(
                            msg, kind=str(error.get("code") or error.get("type") or "bad_request")
                        )
                    )
                return []
        return None

    def _void_updates(self) -> None:
        while self._updates:
            _, waits = self._updates.pop(0)
            if not waits.done():
                waits.set_exception(
                    ModelError(
                        "the connection was lost before the realtime server confirmed the new "
                        "settings. Send them again after `connection_status` is 'connected'",
                        kind="connection",
                        retryable=True,
                    )
                )

    async def close(self) -> None:
        self._closed = True
        self._void_updates()
        await self._socket.close()
