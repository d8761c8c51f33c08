"""What a request has to pass before anything of it is understood: its size, who makes it, what kind of body it has, how deep that is.

Owns: the ASGI middleware around the routes. A body is read here, once, with a bound on its size and on its time; the routes get it whole,
and the scope has it as well. It must never look for more in a body than what would harm a parser.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Final

from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import A2AError, ContentTypeNotSupportedError, InternalError, InvalidParamsError, InvalidRequestError
from starlette.responses import JSONResponse

from ...errors import UsageError
from ...log import loggers

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .auth import Authenticator

__all__ = ["Gate"]

_DEEPEST: Final = 64
_LONGEST_NUMBER: Final = 300
_OK: Final = 200
_BAD_REQUEST: Final = 400
_BODY_SECONDS: Final = 30.0
_SEND_SECONDS: Final = 60.0
"""How long a client may leave unread what it is sent."""
# What may be a number that JSON or Python cannot hold; whether it is one is looked at only then.
_SUSPICIOUS: Final = re.compile(rb"NaN|Infinity|[0-9]{300}|[eE]\+?[0-9]{3}")
_BRACKETS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class _Refused(Exception):
    """The request goes no further."""

    def __init__(self, status: int, error: A2AError) -> None:
        self.status = status
        self.error = error


class Gate:
    """The middleware."""

    def __init__(self, app: ASGIApp, auth: Authenticator | None, max_body: int, is_public: Callable[[str], bool], is_rpc: Callable[[str], bool]) -> None:
        if not isinstance(max_body, int) or max_body < 1:
            msg = f"a2a_app(max_body={max_body!r}): give a number of bytes, 1 or more."
            raise UsageError(msg)
        self._app = app
        self._auth = auth
        self._max = max_body
        self._is_public = is_public
        self._is_rpc = is_rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        challenge: dict[str, str] = {}
        try:
            self._check_length(headers)
            known = await self._authenticated(scope, headers)
            if scope["method"] == "POST":
                # The body of an unknown client has to be read to the end of the limit, too: that a body is too large is said first. It is not kept.
                body = await self._read(receive, keep=known)
                if known:
                    _check_type(headers)
                    _check_json(body)
                    scope["understudy.body"] = body
                    receive = _replay(body, receive)
            if not known:
                assert self._auth is not None
                challenge = {"WWW-Authenticate": self._auth.challenge}
                raise _Refused(401, InvalidRequestError("Who are you? This agent needs credentials; its card says which."))  # noqa: TRY301 -- refused as all else is
        except _Refused as refused:
            await self._refuse(refused, challenge, scope, receive, send)
            return
        except ConnectionError:
            return
        await self._app(scope, receive, _watched(send))

    async def _refuse(self, refused: _Refused, headers: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        close = {"Connection": "close"} if refused.status in (408, 413) else {}
        error, status = refused.error, refused.status
        if self._is_rpc(_path(scope)):
            body = build_error_response(None, error)
            status = _OK if status == _BAD_REQUEST else status  # an answer like any other: what is wrong is in it
        else:
            body = build_rest_error_payload(error)
            body["error"]["code"] = status
        await JSONResponse(body, status, headers={**headers, **close})(scope, receive, send)

    def _check_length(self, headers: dict[str, str]) -> None:
        said = headers.get("content-length")
        if said is not None and (not said.isdigit() or int(said) > self._max):
            raise self._too_large()

    def _too_large(self) -> _Refused:
        return _Refused(413, InvalidRequestError(f"The body is too large: {self._max} bytes are taken."))

    async def _authenticated(self, scope: Scope, headers: dict[str, str]) -> bool:
        """Whether the request may go on. Who makes it is in the scope then."""
        if self._auth is None or self._is_public(_path(scope)):
            return True
        try:
            principal = await self._auth.authenticate(headers)
        except Exception:  # noqa: BLE001 -- whatever an authenticator raises, the client stays out
            loggers.a2a.exception("The authenticator has failed; the request is refused.")
            raise _Refused(503, InternalError("Who you are cannot be found out now.")) from None
        if principal is not None:
            scope["understudy.principal"] = principal
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
            raise _Refused(408, InvalidRequestError(f"The body did not come within {_BODY_SECONDS:g} s.")) from None


def _path(scope: Scope) -> str:
    """The path within the app, wherever that is mounted."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _check_type(headers: dict[str, str]) -> None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/json", "application/a2a+json") and not (kind == "" and headers.get("content-length") == "0"):
        raise _Refused(415, ContentTypeNotSupportedError(f"The body is {kind[:100] or 'of no known type'}, and application/json is taken."))


def _check_json(body: bytes) -> None:
    """Refuse what parsers choke on: bodies of great depth, numbers that nothing can hold. What is no JSON at all is for the routes to say."""
    if body.count(b"{") + body.count(b"[") > _DEEPEST and _depth(body) > _DEEPEST:
        raise _Refused(400, InvalidParamsError(f"The body is more than {_DEEPEST} levels deep."))
    if _SUSPICIOUS.search(body):
        try:
            json.loads(body, parse_constant=_no_number, parse_float=_checked_float, parse_int=_checked_int)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return


def _depth(body: bytes) -> int:
    depth = deepest = 0
    for match in _BRACKETS.finditer(body):
        first = match.group()[:1]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest


def _no_number(text: str) -> Any:
    raise _Refused(400, InvalidParamsError(f"The body holds {text}, which is no number of JSON."))


def _checked_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused(400, InvalidParamsError(f"The body holds a number that cannot be held: {text[:40]}."))
    return value


def _checked_int(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _Refused(400, InvalidParamsError(f"The body holds a number that cannot be held: {text[:40]}..."))
    return int(text)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body, whole; then what else comes: that the client is gone."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _watched(send: Send) -> Send:
    """A client that takes nothing for a long time is taken for gone."""

    async def send_in_time(message: Message) -> None:
        if message["type"] == "http.response.body" and message.get("more_body"):
            async with asyncio.timeout(_SEND_SECONDS):
                await send(message)
        else:
            await send(message)

    return send_in_time
