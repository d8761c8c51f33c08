"""Who may ask.

A request is let in by the token in its address, in the header `Authorization: Bearer`, or in the cookie that the first page sets; or by a function of the
service's own. What changes something has to come from the console's own page besides, or from a program that sends the token in the header.

Owns: these checks, and the headers of every answer: no script but the console's own runs in its page, and no other page frames it or reads what it gets. It
must never write a token to the log, nor send it anywhere.
"""

from __future__ import annotations

import hmac
import inspect
from collections.abc import Awaitable, Callable
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ..errors import UsageError
from ..log import loggers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CALLER", "Auth", "Gate", "is_loopback", "make_check"]

Caller: TypeAlias = str | bool | None
Auth: TypeAlias = str | Callable[[Request], Caller | Awaitable[Caller]]
"""A token; or a function of the request, which returns the name of who asks, True for one without a name, and None or False for one who may not."""

CALLER: Final = "understudy.console.caller"
"""Where the scope of a request has the name of who asks; empty, if there is none."""

_COOKIE: Final = "understudy_console"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
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
_CLOSED: Final = "The console wants its token: open the address that it was started with, which ends in ?token=…\n"


def is_loopback(host: str) -> bool:
    """Whether that address, or name, is this machine and nothing else."""
    name = host.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def make_check(auth: object) -> Auth:
    """Raise, if that does not say who may ask."""
    if isinstance(auth, str) and auth.strip() and auth.isprintable():
        return auth
    if callable(auth) and not isinstance(auth, type):
        return auth
    msg = (
        f"console_app(auth={'...' if isinstance(auth, str) else repr(auth)[:80]}): say who may use the console, which shows and changes all runs: give a "
        "token (a text that cannot be guessed: secrets.token_urlsafe()), or a function of the request that returns the name of who asks, or None."
    )
    raise UsageError(msg)


class Gate:
    """Stands in front of the console's app."""

    def __init__(self, app: ASGIApp, auth: Auth, *, only_loopback: bool = False) -> None:
        self._app = app
        self._auth = auth
        self._only_loopback = only_loopback
        self._token = auth.encode() if isinstance(auth, str) else None
        self._ticket = "" if self._token is None else hmac.new(self._token, b"understudy console", sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        request = Request(scope, receive)
        sending = _with_headers(send)
        problem = self._host_problem(request)
        by_header = False
        if problem is None and not _is_public(scope):
            caller, by_header, sets_cookie = await self._caller(request)
            if caller is None:
                problem = _refusal(request, 401, _CLOSED)
            else:
                scope[CALLER] = caller
                if sets_cookie:
                    sending = self._with_cookie(request, sending)
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
        """A name of a stranger's that leads to this machine is no address of the console: that is how pages of others would reach it."""
        if not self._only_loopback or is_loopback(_name_of(request.headers.get("host", ""))):
            return None
        return _refusal(request, 403, "The console is served on this machine only: open it at the address that it was started with.\n")

    async def _caller(self, request: Request) -> tuple[str | None, bool, bool]:
        """The name of who asks, or None; whether a program said so in a header; whether the browser is to remember it."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        by_header = scheme.lower() == "bearer"  # which no browser sends by itself
        if self._token is None:
            return await self._asked(request), by_header, False
        if by_header:
            return ("" if self._fits(given.strip()) else None), True, False
        given = (parse_qs(request.scope.get("query_string", b"").decode("latin-1")).get("token") or [""])[0]
        if given:
            return ("" if self._fits(given) else None), False, True
        cookie = request.cookies.get(self._cookie_name(request), "")
        is_known = hmac.compare_digest(cookie.encode("utf-8", "replace"), self._ticket.encode())
        return ("" if is_known else None), False, False

    async def _asked(self, request: Request) -> str | None:
        assert callable(self._auth)
        try:
            answer: Any = self._auth(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:  # noqa: BLE001 -- whatever it raises, no request is let in by that
            loggers.console.error("console_app(auth=...): the function raised %s: the request is refused.", type(error).__name__)
            return None
        if isinstance(answer, str):
            return answer[:200] or None
        return "" if answer is True else None

    def _fits(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _cookie_name(self, request: Request) -> str:
        """Cookies are for all ports of a host: each console has its own."""
        return f"{_COOKIE}_{request.url.port or 0}"

    def _with_cookie(self, request: Request, send: Send) -> Send:
        path = request.scope.get("root_path", "").rstrip("/") or "/"
        secure = "; Secure" if request.url.scheme == "https" else ""
        line = f"{self._cookie_name(request)}={self._ticket}; Path={path}; HttpOnly; SameSite=Strict{secure}"

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"set-cookie", line.encode())]}
            await send(message)

        return sending


def _is_public(scope: Scope) -> bool:
    """The page's own scripts and styles say nothing of any run."""
    return _path_of(scope).startswith("/static/")


def _path_of(scope: Scope) -> str:
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root and path.startswith(root) else path


def _origin_problem(request: Request, *, by_header: bool) -> Response | None:
    """Only the console's own page changes anything, and no other page reads what is only looked at."""
    site = request.headers.get("sec-fetch-site")
    if request.method in ("GET", "HEAD"):
        is_foreign = site in ("cross-site", "same-site") and request.headers.get("sec-fetch-mode") != "navigate"
        return _refusal(request, 403, "Another page asks: the console answers its own only.\n") if is_foreign else None
    origin = request.headers.get("origin")
    # Behind a proxy, the host may be another one than that of the page: then what the browser says counts, which no script can change.
    is_own = site == "same-origin" or (by_header if origin is None else urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower())
    if not is_own:
        return _refusal(request, 403, "Another page asks: the console is changed by its own page only, or with its token in the header Authorization.\n")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return _refusal(request, 415, "Send JSON, with Content-Type: application/json.\n")
    return None


def _refusal(request: Request, status: int, text: str) -> Response:
    if "/api/" in request.url.path:
        return JSONResponse({"error": text.strip(), "type": "Refused"}, status)
    return PlainTextResponse(text, status)


def _name_of(host: str) -> str:
    """A host without its port."""
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [(name, value) for name, value in message.get("headers", ()) if name.lower() != b"content-security-policy"]
            kept = [] if any(name.lower() == b"cache-control" for name, _ in given) else [(b"cache-control", b"no-store")]
            message = {**message, "headers": [*given, *_HEADERS, *kept]}
        await send(message)

    return sending
