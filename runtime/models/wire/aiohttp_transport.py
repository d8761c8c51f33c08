"""The transport on aiohttp: one session on one event loop.

Owns: the session, its connections, and which of them a request may be sent on again. It must never be imported before a model is asked: aiohttp takes a
quarter of a second. It follows redirects by itself, because a key in a header of the provider's own must not go to another server.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from .protocol import CONNECT_SECONDS, SILENT_SECONDS, TransportError, TransportReply

if TYPE_CHECKING:
    import ssl

__all__ = ["AiohttpReply", "AiohttpTransport"]

_KEEP_ALIVE_SECONDS: Final = 60.0
_MOST_OF_A_HEADER: Final = 64 * 1024
_NEVER: Final = 1 << 31
_AT_ONCE: Final = 1e-9
_MOST_AT_ONCE: Final = 1 << 20
_MOST_REDIRECTS: Final = 20
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_AS_IT_WAS: Final = frozenset((307, 308))
_FOR_ALL: Final = frozenset(("accept", "content-type", "user-agent"))
"""What another server is told, to which one redirects: in all other headers there may be a key, whatever its gateway calls it."""
_OF_THE_BODY: Final = ("Content-Type", "Content-Length")
_OF_AN_ADDRESS: Final = "!#$%&'()*+,/:;=?@[]~"
_PORTS: Final = {"http": 80, "https": 443}


class _Handler(ResponseHandler):
    """A connection that knows whether it was used before, and whether anything has come for the request that is on it now, or since it is idle."""

    requests = 0
    has_received = False
    _silent_until = 0.0
    _left_to_send = 0

    def _reschedule_timeout(self) -> None:
        """aiohttp makes a new timer for each piece of a reply. Here one timer looks, when it is due, how long ago the last piece came."""
        timeout = self._read_timeout
        if not timeout:
            self._drop_timeout()
            return
        self._silent_until = self._loop.time() + timeout
        if self._read_timeout_handle is None:
            self._read_timeout_handle = self._loop.call_at(self._silent_until, self._on_read_timeout)

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        left = 0 if self.transport is None else self.transport.get_write_buffer_size()
        if left and left != self._left_to_send:  # the server is silent, but takes what it is sent
            self._left_to_send = left
            self._silent_until = self._loop.time() + (self._read_timeout or 0)
        if self._silent_until > self._loop.time():
            self._read_timeout_handle = self._loop.call_at(self._silent_until, self._on_read_timeout)
        else:
            super()._on_read_timeout()

    def resume_writing(self) -> None:
        self._left_to_send = -1  # some was taken, although there may be as much again by now
        super().resume_writing()

    def set_response_params(self, **params: Any) -> None:
        self.requests += 1
        self.has_received = False
        super().set_response_params(**params)
        self._reschedule_timeout()  # aiohttp begins when all is sent: a server that takes nothing would be waited for without an end

    def close(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()  # otherwise it stays open until the server has taken the rest
        else:
            super().close()

    def data_received(self, data: bytes) -> None:
        if data:  # without, aiohttp only goes on with what has come before
            self.has_received = True
        super().data_received(data)

    def is_connected(self) -> bool:
        """Whether it may serve a request. Not if something has come that was not asked for: that would be taken for the answer to what is asked next."""
        return not self.has_received and super().is_connected()

    @property
    def was_stale(self) -> bool:
        """Whether the server may have closed it while it was idle: nothing says that the request was ever looked at."""
        return self.requests > 1 and not self.has_received


class _Connector(aiohttp.TCPConnector):
    """The connections, each of which knows when it is idle."""

    async def _create_proxy_connection(self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout) -> Any:
        """aiohttp waits without an end for a proxy that is silent when it is asked for a tunnel."""
        async with asyncio.timeout(timeout.sock_read):
            return await super()._create_proxy_connection(req, traces, timeout)

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        is_idle = not (should_close or protocol.should_close)
        super()._release(key, protocol, should_close=should_close)
        if is_idle and isinstance(protocol, _Handler):
            protocol.has_received = False


class _Request(aiohttp.ClientRequest):
    """A request that knows its connection."""

    connection: aiohttp.connector.Connection | None = None
    handler: _Handler | None = None

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        self.handler = conn.protocol if isinstance(conn.protocol, _Handler) else None
        return await super().send(conn)


async def _sent_again(request: aiohttp.ClientRequest, send: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]) -> aiohttp.ClientResponse:
    """Send it; once more, if it went out on a connection that the server had closed meanwhile."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        handler = request.handler if isinstance(request, _Request) else None
        if handler is None or not handler.was_stale:
            raise
    return await send(request)


class AiohttpReply:
    """A `TransportReply`."""

    __slots__ = ("_content", "_response", "headers", "next_piece", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.next_piece: Callable[[], Awaitable[bytes]] = response.content.readany

    @property
    def is_at_end(self) -> bool:
        return self._content.at_eof()

    def error(self, problem: BaseException) -> TransportError | None:
        return _as_transport_error(problem)

    def drop(self) -> None:
        self._response.close()


class AiohttpTransport:
    """A `Transport`. To be made on its loop."""

    def __init__(self, max_connections: int, context: ssl.SSLContext | None, proxy: str | None) -> None:
        connector = _Connector(
            limit=max_connections,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            ssl=context if context is not None else True,
            resolver=aiohttp.ThreadedResolver(),  # as the operating system does it: another one would be taken if it happens to be installed
        )
        # Its own answers no question about a connection: whether it was used before, and whether anything has come.
        connector._factory = cast("partial[ResponseHandler]", partial(_Handler, loop=asyncio.get_running_loop()))
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            middlewares=(_sent_again,),
            timeout=_timeout(None),
            proxy=proxy,
            max_line_size=_MOST_OF_A_HEADER,
            max_field_size=_MOST_OF_A_HEADER,
        )
        self._connector = connector

    async def send(self, url: str, headers: Mapping[str, str], body: bytes, timeout: float | None) -> TransportReply:
        target = URL(url, encoded=True)
        limits = self._session.timeout if timeout is None else _timeout(timeout)
        try:
            response = await self._session.request("POST", target, data=_payload(body), headers=headers, allow_redirects=False, timeout=limits)
            if response.status in _REDIRECTS and "Location" in response.headers:
                response = await self._redirected(response, headers, body, limits)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_closed() or (task is not None and task.cancelling()):
                raise
            raise _closed_meanwhile() from None  # whoever waits for a connection is cancelled by aiohttp, if that is closed
        except Exception as problem:
            error = _closed_meanwhile() if self.is_closed() else _as_transport_error(problem)
            if error is None:
                raise
            raise error from None  # what aiohttp raises may hold the headers
        return AiohttpReply(response)

    async def _redirected(
        self, response: aiohttp.ClientResponse, headers: Mapping[str, str], body: bytes, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        method, data, left = "POST", body, CIMultiDict(headers)
        for _ in range(_MOST_REDIRECTS):
            response.close()
            status, target = response.status, _redirect_target(response)
            if _leaves(response.url, target):
                for name in [name for name in left if name.lower() not in _FOR_ALL]:
                    left.popall(name, None)
            if status not in _AS_IT_WAS and method != "GET":
                method, data = "GET", b""
                for name in _OF_THE_BODY:
                    left.popall(name, None)
            response = await self._session.request(method, target, data=_payload(data) if data else None, headers=left, allow_redirects=False, timeout=limits)
            if response.status not in _REDIRECTS or "Location" not in response.headers:
                return response
        response.close()
        raise TransportError("TooManyRedirects", f"The server redirects more than {_MOST_REDIRECTS} times.")

    def is_closed(self) -> bool:
        return self._session.closed

    async def close(self) -> None:
        # Closing by aiohttp's own `close` waits, in a task of its own, until each server has answered the farewell. Here all of them are told at once.
        self._connector._close(abort_ssl=True)
        self._session.detach()
        await asyncio.sleep(0)  # in which the loop lets go of the sockets


def _payload(body: bytes) -> bytes | io.BytesIO:
    """What aiohttp takes for a body: of one that is large, it asks that it can be read piece by piece."""
    return body if len(body) <= _MOST_AT_ONCE else io.BytesIO(body)


def _closed_meanwhile() -> TransportError:
    return TransportError("ReadError", "The model's connections were closed, by aclose() or at the end of the loop, before the reply had come.")


def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    if seconds == inf:
        return aiohttp.ClientTimeout(total=None, ceil_threshold=_NEVER)
    silent = SILENT_SECONDS if seconds is None else seconds if seconds > 0 else _AT_ONCE  # aiohttp takes 0 for no limit at all
    return aiohttp.ClientTimeout(total=None, sock_read=silent, sock_connect=CONNECT_SECONDS if seconds is None else silent, ceil_threshold=_NEVER)


def _redirect_target(response: aiohttp.ClientResponse) -> URL:
    """Where it sends the request. What an address cannot hold is quoted; a name and a password in it are not taken over, since the request has its own."""
    location = response.headers["Location"]
    try:
        target = response.url.join(URL(quote(location, safe=_OF_AN_ADDRESS, errors="surrogateescape"), encoded=True))
        if target.scheme in _PORTS and (target.raw_host or "").encode("idna") and target.port is not None:
            return target.with_user(None)
    except ValueError:
        pass
    where = location.partition("?")[0].rpartition("@")[2]
    raise TransportError("UnsupportedProtocol", f"The server redirects to {where[:200]!r}, which is no address for HTTP.")


def _leaves(before: URL, after: URL) -> bool:
    """Whether a redirect goes to another server. From HTTP to HTTPS at the same one is none."""
    if before.origin() == after.origin():
        return False
    return not (before.host == after.host and (before.scheme, before.port, after.scheme, after.port) == ("http", 80, "https", 443))


def _as_transport_error(problem: BaseException) -> TransportError | None:
    if isinstance(problem, TransportError):
        return problem
    if isinstance(problem, TimeoutError):
        return TransportError("ConnectTimeout" if isinstance(problem, aiohttp.ConnectionTimeoutError) else "ReadTimeout", str(problem), "timeout")
    if isinstance(problem, aiohttp.ClientConnectorError | aiohttp.ClientConnectorSSLError):
        return TransportError("ConnectError", str(problem))
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        return TransportError("ProxyError", f"The proxy answered {problem.status} {problem.message}.")
    if isinstance(problem, aiohttp.ServerDisconnectedError):
        return TransportError("RemoteProtocolError", "Server disconnected without sending a response.")
    if isinstance(problem, aiohttp.ClientPayloadError):
        return TransportError("RemoteProtocolError", f"The reply ends early: {_short(problem)}")
    if isinstance(problem, aiohttp.ClientResponseError | HttpProcessingError):
        return TransportError("RemoteProtocolError", f"The server's answer is no HTTP: {_short(problem.message)}")
    if isinstance(problem, aiohttp.ClientError | OSError):
        return TransportError("ReadError", str(problem) or type(problem).__name__)
    return None


def _short(text: object) -> str:
    return " ".join(str(text).split())[:200]
