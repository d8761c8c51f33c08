"""The websocket that carries the protocol.

It is opened with the model's headers, and its errors become errors of a session. No error message
contains a key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from ....runtime.errors import ModelError, UsageError
from ....runtime.maybe_await import maybe_await
from ..model import RealtimeModelConfig

__all__ = ["Socket", "closed_error", "is_clean_close", "open_client_socket", "open_socket"]

_MOST: Final = 32 * 1024 * 1024
_KINDS: Final = {
    401: "auth",
    403: "permission",
    404: "not_found",
    400: "bad_request",
    408: "timeout",
    429: "rate_limit",
}
_AGAIN: Final = (408, 429)
_BASE: Final = "https://api.openai.com/v1"


class Socket(Protocol):
    """The part of a websocket's interface that is used here."""

    async def recv(self, decode: bool | None = None) -> bytes | str: ...  # noqa: FBT001 -- websockets' signature
    async def send(self, message: str) -> None: ...
    async def close(self) -> None: ...


async def open_socket(
    options: RealtimeModelConfig,
    model: str | None,
    key: Any,
    base_url: str | None,
    transport: Mapping[str, Any],
) -> Socket:
    """Open a websocket to OpenAI, or to the `url` of the options."""
    connect = _connect_function()
    url = options.get("url") or _url(base_url, model, options.get("call_id"))
    headers = options.get("headers")
    if headers is None:
        found = options.get("api_key", key)
        value = (
            await maybe_await(found())
            if callable(found)
            else found or os.environ.get("OPENAI_API_KEY")
        )
        if not value:
            msg = (
                "no API key is set. Set OPENAI_API_KEY, or pass api_key= to the model or "
                "in model_config, or headers in model_config."
            )
            raise UsageError(msg)
        headers = {"Authorization": f"Bearer {value}"}
    if urlsplit(url).scheme not in ("ws", "wss"):
        msg = (
            "model_config['url'] must start with ws:// or wss://, got the scheme "
            f"{urlsplit(url).scheme!r}."
        )
        raise UsageError(msg)
    try:
        found_socket: Socket = await connect(
            url, user_agent_header=None, additional_headers=dict(headers), **_transport(transport)
        )
    except Exception as error:  # noqa: BLE001 -- converted for the session below
        raise _refused(error, url) from None  # the cause may contain headers
    return found_socket


async def open_client_socket(
    client: Any, options: RealtimeModelConfig, model: str | None, transport: Mapping[str, Any]
) -> Socket:
    """Open a websocket through a client of the `openai` package, for example Azure's."""
    _connect_function()
    call_id = options.get("call_id")
    chosen: dict[str, Any] = {"call_id": call_id} if call_id else {"model": model}
    try:
        connection = await client.realtime.connect(
            **chosen,
            extra_headers=dict(options.get("headers") or {}),
            websocket_connection_options=_transport(transport),
        ).enter()
    except Exception as error:  # noqa: BLE001 -- converted for the session below
        raise _refused(error, "the address of the OpenAI client") from None
    return _ClientSocket(connection)


class _ClientSocket:
    """A connection of the `openai` package, as a websocket."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def recv(self, decode: bool | None = None) -> bytes | str:  # noqa: FBT001 -- websockets' parameter
        del decode
        found: bytes = await self._connection.recv_bytes()
        return found

    async def send(self, message: str) -> None:
        await self._connection.send_raw(message)

    async def close(self) -> None:
        await self._connection.close()


def _connect_function() -> Any:
    try:
        from websockets.asyncio.client import connect  # noqa: PLC0415 -- an extra
    except ImportError as error:
        msg = (
            "a realtime model needs the package websockets, which is not installed: pip install "
            "'offbook[realtime]'"
        )
        raise UsageError(msg) from error
    return connect


def _url(base_url: str | None, model: str | None, call_id: str | None) -> str:
    base = (base_url or os.environ.get("OPENAI_BASE_URL") or _BASE).rstrip("/")
    base = base.replace("http", "ws", 1) if base.startswith("http") else base
    return f"{base}/realtime?" + (
        f"call_id={quote(call_id)}" if call_id else f"model={quote(model or '')}"
    )


def _transport(given: Mapping[str, Any]) -> dict[str, Any]:
    # Compression costs about 60 KiB for each connection, and does not shrink base64 audio.
    made: dict[str, Any] = {"max_size": _MOST, "compression": None}
    made.update(
        {
            {"handshake_timeout": "open_timeout"}.get(name, name): value
            for name, value in given.items()
        }
    )
    return made


def _refused(error: Exception, url: str) -> Exception:
    """Return the error of a failed handshake, without headers and query, which may contain keys."""
    if isinstance(error, UsageError):
        return error
    where = urlsplit(url)
    shown = (
        url
        if not where.scheme
        else f"{where.scheme}://{where.netloc.rpartition('@')[2]}{where.path}"
    )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int):
        kind = _KINDS.get(status, "server" if status >= 500 else "bad_request")  # noqa: PLR2004 -- HTTP status codes
        again = status >= 500 or status in _AGAIN  # noqa: PLR2004 -- as above
        return ModelError(
            f"{shown} refused the connection with HTTP status {status}. Check the API key and "
            "the url",
            kind=kind,
            status=status,
            retryable=again,
        )
    kind = "timeout" if isinstance(error, TimeoutError) else "connection"
    return ModelError(
        f"{shown} cannot be reached: {type(error).__name__}. Check the url and the network",
        kind=kind,
        retryable=isinstance(error, OSError | TimeoutError | EOFError),
    )


def is_clean_close(error: Exception) -> bool:
    """Return whether the server closed the connection normally."""
    received = getattr(error, "rcvd", None)
    return received is not None and received.code == 1000  # noqa: PLR2004 -- the code of a normal close


def closed_error(error: Exception) -> ModelError:
    """Return the error of a connection that has ended."""
    received = getattr(error, "rcvd", None)
    if received is not None:
        said = f": {received.reason}" if received.reason else ""
        return ModelError(
            f"the realtime server closed the connection with code {received.code}{said}",
            kind="connection",
            retryable=True,
        )
    return ModelError(
        f"the connection to the realtime server was lost: {type(error).__name__}",
        kind="connection",
        retryable=True,
    )
