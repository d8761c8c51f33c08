"""Authentication and origin checks.

A request is accepted with the token in the header `Authorization: Bearer`, with the cookie that the
browser receives when the page posts the token to `login`, or by a function of the service. A
request that changes something must also come from the console's own page, or from a program that
sends the token in the header.

Every response has headers so that only the console's own scripts run in its page, and no other page
can frame it or read its responses. A token is never logged, nor sent anywhere.
"""

from __future__ import annotations

import hmac
import inspect
import json
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..errors import UsageError
from ..log import loggers
from ..loopback import is_loopback_host, netloc_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CALLER", "Auth", "Gate", "make_check"]

Caller: TypeAlias = str | bool | None
Auth: TypeAlias = str | Callable[[Request], Caller | Awaitable[Caller]]
"""A token, or a function of the request.

The function returns the name of the caller, True for a caller without a name, and None or False to
refuse.
"""

CALLER: Final = "offbook.console.caller"
"""The key in a request's scope with the name of the caller; empty if there is none."""

_COOKIE: Final = "offbook_console"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_CLOSED: Final = (
    "The console requires its token. Open the address that it printed when it started, which "
    "ends in #token=…, or enter the token on its page.\n"
)
_LOGGED_IN: Final = 204
_LONGEST_LOGIN: Final = 10_000


def make_check(auth: object) -> Auth:
    """Raise UsageError if this is not a valid `auth` argument."""
    if isinstance(auth, str) and auth.strip() and auth.isprintable():
        return auth
    if callable(auth) and not isinstance(auth, type):
        return auth
    msg = (
        "console_app(auth=) must be a token or a function of the request, got "
        f"{'a blank or unprintable string' if isinstance(auth, str) else repr(auth)[:80]}. The "
        "console shows and changes all runs. Pass a token that cannot be guessed, such as "
        "secrets.token_urlsafe(), or a function that returns the user's name, or None to refuse."
    )
    raise UsageError(msg)


class Gate:
    """Checks each request before the console's app receives it."""

    def __init__(self, app: ASGIApp, auth: Auth, *, only_loopback: bool = False) -> None:
        self._app = app
        self._auth = auth
        self._only_loopback = only_loopback
        self._token = auth.encode() if isinstance(auth, str) else None
        self._ticket = (
            ""
            if self._token is None
            else hmac.new(self._token, b"offbook console", sha256).hexdigest()
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request = Request(scope, receive)
        sending = _with_headers(send)
        problem = self._host_problem(request)
        by_header = False
        if (
            problem is None
            and self._token is not None
            and _path_of(scope) == "/login"
            and request.method == "POST"
        ):
            problem = _origin_problem(request, by_header=False) or await self._log_in(request)
            if problem.status_code == _LOGGED_IN:
                sending = self._with_cookie(request, sending)
        elif problem is None and not self._is_public(scope):
            caller, by_header = await self._caller(request)
            if caller is None:
                problem = _refusal(request, 401, _CLOSED)
            else:
                scope[CALLER] = caller
        if problem is None:
            problem = _origin_problem(request, by_header=by_header)
        await (problem or self._app)(scope, receive, sending)

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
        else:
            await self._app(scope, receive, send)

    def _host_problem(self, request: Request) -> Response | None:
        """Refuse other host names that resolve to this machine (DNS rebinding).

        Otherwise, other sites could reach the console by them.
        """
        if not self._only_loopback or is_loopback_host(request.headers.get("host", "")):
            return None
        return _refusal(
            request,
            403,
            "The console is served on this machine only. Open the address that it printed when "
            "it started.\n",
        )

    def _is_public(self, scope: Scope) -> bool:
        """Return whether a path is public: the page, its scripts and its styles contain no data of
        runs.

        If a token is required, the page asks for it.
        """
        path = _path_of(scope)
        return path.startswith("/static/") or (self._token is not None and path in ("", "/"))

    async def _log_in(self, request: Request) -> Response:
        """Log in with a token.

        The page has it from the address's fragment, which no browser sends, or from the person who
        types it.
        """
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > _LONGEST_LOGIN:
                return _refusal(request, 413, "The token is too long.\n")
        try:
            given = json.loads(body)["token"]
        except (ValueError, LookupError, TypeError):
            given = None
        if not isinstance(given, str):
            return _refusal(request, 400, 'Send {"token": "..."}.\n')
        return (
            Response(status_code=_LOGGED_IN)
            if self._fits(given)
            else _refusal(request, 401, _CLOSED)
        )

    async def _caller(self, request: Request) -> tuple[str | None, bool]:
        """Return the name of the caller, or None; and whether a header authenticated a program."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer"  # no browser sends it by itself
        if self._token is None:
            return await self._asked(request), by_header
        if by_header:
            return ("" if self._fits(given.strip()) else None), True
        cookie = request.cookies.get(self._cookie_name(request), "")
        is_known = hmac.compare_digest(cookie.encode("utf-8", "replace"), self._ticket.encode())
        return ("" if is_known else None), False

    async def _asked(self, request: Request) -> str | None:
        assert callable(self._auth)
        try:
            answer: Any = self._auth(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 -- no error lets a request in
            loggers.console.error(
                "console_app(auth=...): the function raised %s, so the request is refused.",
                type(error).__name__,
            )
            return None
        if isinstance(answer, str):
            return answer[:200] or None
        return "" if answer is True else None

    def _fits(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _cookie_name(self, request: Request) -> str:
        """Return the cookie's name, which is different for each console.

        Cookies apply to all ports of a host.
        """
        return f"{_COOKIE}_{request.url.port or 0}"

    def _with_cookie(self, request: Request, send: Send) -> Send:
        path = request.scope.get("root_path", "").rstrip("/") or "/"
        secure = "; Secure" if request.url.scheme == "https" else ""
        line = (
            f"{self._cookie_name(request)}={self._ticket}; Path={path}; HttpOnly; "
            f"SameSite=Strict{secure}"
        )

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message["headers"], (b"set-cookie", line.encode())],
                }
            await send(message)

        return sending


def _path_of(scope: Scope) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root and path.startswith(root) else path


def _origin_problem(request: Request, *, by_header: bool) -> Response | None:
    """Refuse changes that do not come from the console's own page, and reads by other pages."""
    site = request.headers.get("sec-fetch-site")
    if request.method in ("GET", "HEAD"):
        is_foreign = (
            site in ("cross-site", "same-site")
            and request.headers.get("sec-fetch-mode") != "navigate"
        )
        return (
            _refusal(
                request, 403, "This request comes from another page. Open the console itself.\n"
            )
            if is_foreign
            else None
        )
    origin = request.headers.get("origin")
    if origin is not None and origin != "null" and not netloc_of(origin):
        return _refusal(
            request, 400, "The header Origin must be an origin, such as https://console.example.\n"
        )
    # Behind a proxy, the host may differ from that of the page: then the browser's own header
    # counts, which no script can change.
    is_own = site == "same-origin" or (
        by_header
        if origin is None
        else netloc_of(origin) == request.headers.get("host", "").lower()
    )
    if not is_own:
        return _refusal(
            request,
            403,
            "This request comes from another page. Use the console's own page, or send the token "
            "in the header Authorization.\n",
        )
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        return _refusal(request, 415, "Send JSON, with Content-Type: application/json.\n")
    return None


def _refusal(request: Request, status: int, text: str) -> Response:
    if "/api/" in request.url.path:
        return JSONResponse({"error": text.strip(), "type": "Refused"}, status)
    return PlainTextResponse(text, status)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [
                (name, value)
                for name, value in message.get("headers", ())
                if name.lower() != b"content-security-policy"
            ]
            kept = (
                []
                if any(name.lower() == b"cache-control" for name, _ in given)
                else [(b"cache-control", b"no-store")]
            )
            message = {**message, "headers": [*given, *_HEADERS, *kept]}
        await send(message)

    return sending
