"""Checks of a request before it is parsed: its size, its caller, the type and depth of its body.

This ASGI middleware reads a body once, with a bound on its size and time; the routes receive it
complete, and it is also in the scope.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a.server.jsonrpc_models import JSONParseError as RpcParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidRequestError,
    JSONParseError,
)
from starlette.responses import JSONResponse

from ...errors import UsageError
from ...log import loggers
from ...loopback import foreign_request
from .json_bounds import RefusedBody, check_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .auth import Authenticator

__all__ = ["Bounds", "Gate", "replayed", "too_many"]

_OK: Final = 200
_BAD_REQUEST: Final = 400
_BODY_SECONDS: Final = 30.0
_SEND_SECONDS: Final = 60.0
"""Seconds for which a client may leave sent data unread."""


_RETRY_SECONDS: Final = 5
# For the current request; the operations, which the SDK's routes call, append to it.
_refused_for_now: Final[ContextVar[list[bool]]] = ContextVar("a2a_refused_for_now")


class _Refused(Exception):
    """The request is refused."""

    def __init__(self, status: int, error: A2AError) -> None:
        self.status = status
        self.error = error


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a request.

    `only_local`: an address of this machine refuses other host names and pages of other origins.
    """

    body: int
    values: int
    only_local: bool
    logger: logging.Logger = loggers.a2a

    def __post_init__(self) -> None:
        if not isinstance(self.body, int) or self.body < 1:
            msg = f"a2a_app(max_body={self.body!r}): max_body must be a number of bytes, 1 or more."
            raise UsageError(msg)


class Gate:
    """The middleware."""

    def __init__(
        self,
        app: ASGIApp,
        auth: Authenticator | None,
        bounds: Bounds,
        is_public: Callable[[str], bool],
        is_rpc: Callable[[str], bool],
    ) -> None:
        self._app = app
        self._auth = auth
        self._max = bounds.body
        self._bounds = bounds
        self._is_public = is_public
        self._is_rpc = is_rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        challenge: dict[str, str] = {}
        try:
            if self._bounds.only_local and (problem := foreign_request(scope)) is not None:
                msg = (
                    f"{problem} Pass auth= to a2a_app, or allow_anonymous=True to accept all "
                    "requests."
                )
                raise _Refused(403, InvalidRequestError(msg))  # noqa: TRY301 -- refused as all else is
            self._check_length(headers)
            known = await self._authenticated(scope, headers)
            if scope["method"] == "POST":
                # The body of an unknown client must be read up to the limit, too, because the size
                # error takes precedence. It is discarded.
                body = await self._read(receive, keep=known)
                if known:
                    _check_type(headers)
                    _check_body(body, self._bounds.values)
                    scope["offbook.body"] = body
                    receive = replayed(body, receive)
            if not known:
                assert self._auth is not None
                challenge = {"WWW-Authenticate": self._auth.challenge}
                raise _Refused(  # noqa: TRY301 -- refused as all else is
                    401,
                    InvalidRequestError(
                        "The request has no valid credentials. Send those that the agent's card "
                        "requires."
                    ),
                )
        except _Refused as refused:
            await self._refuse(refused, challenge, scope, receive, send)
            return
        except ConnectionError:
            return
        said = _refused_for_now.set([])
        try:
            await self._app(scope, receive, _watched(_with_retry(send, _refused_for_now.get())))
        finally:
            _refused_for_now.reset(said)

    async def _refuse(
        self, refused: _Refused, headers: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        close = {"Connection": "close"} if refused.status in (403, 408, 413) else {}
        error, status = refused.error, refused.status
        if self._is_rpc(_path(scope)):
            if isinstance(error, JSONParseError):
                # The SDK cannot build one from its own error.
                body = build_error_response(None, RpcParseError(message=str(error)))
            else:
                body = build_error_response(None, error)
                # An ordinary response: it contains the error.
                status = _OK if status == _BAD_REQUEST else status
        else:
            body = build_rest_error_payload(error)
            body["error"]["code"] = status
        await JSONResponse(body, status, headers={**headers, **close})(scope, receive, send)

    def _check_length(self, headers: dict[str, str]) -> None:
        said = headers.get("content-length")
        if said is not None and (not said.isdigit() or int(said) > self._max):
            raise self._too_large()

    def _too_large(self) -> _Refused:
        return _Refused(413, InvalidRequestError(f"The body must have at most {self._max} bytes."))

    async def _authenticated(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Return whether the request may continue. The caller is in the scope then."""
        if self._auth is None or self._is_public(_path(scope)):
            return True
        try:
            principal = await self._auth.authenticate(headers)
        except Exception:
            self._bounds.logger.exception("The authenticator has failed; the request is refused.")
            raise _Refused(
                503, InternalError("The credentials cannot be checked now. Try again later.")
            ) from None
        if principal is not None:
            scope["offbook.principal"] = principal
        return principal is not None

    async def _read(self, receive: Receive, *, keep: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionError
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > self._max:
                        raise self._too_large()
                    if keep:
                        chunks.append(chunk)
                    if not message.get("more_body", False):
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except TimeoutError:
            raise _Refused(
                408,
                InvalidRequestError(
                    f"The body did not arrive within {_BODY_SECONDS:g} s. Send it again."
                ),
            ) from None


def _path(scope: Scope) -> str:
    """Return the path within the app, wherever that is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _check_type(headers: dict[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", "application/a2a+json") and not (
        kind == "" and headers.get("content-length") == "0"
    ):
        raise _Refused(
            415,
            ContentTypeNotSupportedError(
                f"The body must be application/json, got {kind[:100] or 'no content type'}."
            ),
        )


def _check_body(body: bytes, most_values: int) -> None:
    try:
        check_json(body, most_values)
    except RefusedBody as refused:
        raise _Refused(400, refused.error) from None


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns the whole body, and then waits for the disconnect."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def too_many() -> None:
    """Answer the current request with HTTP 429: its client has too many in progress.

    The body of the answer is unchanged.
    """
    if (said := _refused_for_now.get(None)) is not None:
        said.append(True)


def _with_retry(send: Send, said: list[bool]) -> Send:
    async def sending(message: Message) -> None:
        if said and message["type"] == "http.response.start":
            message = {
                **message,
                "status": 429,
                "headers": [*message["headers"], (b"retry-after", b"%d" % _RETRY_SECONDS)],
            }
        await send(message)

    return sending


def _watched(send: Send) -> Send:
    """Treat a client that reads nothing for a long time as disconnected."""

    async def send_in_time(message: Message) -> None:
        if message["type"] == "http.response.body" and message.get("more_body"):
            async with asyncio.timeout(_SEND_SECONDS):
                await send(message)
        else:
            await send(message)

    return send_in_time
