"""The transport on aiohttp: one session on one event loop.

This module must only be imported when a model is first called: importing aiohttp takes a quarter of
a second. It follows redirects itself, because a key in a custom header of the provider must not be
sent to another server.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import inf
from traceback import clear_frames
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import TimerNoop, strip_auth_from_url
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict
from yarl import URL

from ...log import loggers
from .names import resolver
from .protocol import CONNECT_SECONDS, SILENT_SECONDS, TransportError, TransportReply

if TYPE_CHECKING:
    import ssl

    from aiohttp.tracing import Trace

__all__ = ["AiohttpReply", "AiohttpTransport"]

_KEEP_ALIVE_SECONDS: Final = 60.0
_STALE_SECONDS: Final = 0.5
"""Seconds after sending a request.

If its connection is lost within them, the server is assumed to have closed it before.
"""
_MOST_OF_A_HEADER: Final = 64 * 1024
_NEVER: Final = 1 << 31
_AT_ONCE: Final = 1e-9
_MOST_AT_ONCE: Final = 1 << 20
_MOST_REDIRECTS: Final = 20
_MOST_ERRORS: Final = 8  # in a chain of causes
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_AS_IT_WAS: Final = frozenset((307, 308))
_FOR_ALL: Final = frozenset(("accept", "content-type", "user-agent"))
"""Headers that are sent to another server after a redirect.

Every other header may contain a key, whatever a gateway calls it.
"""
_OF_THE_BODY: Final = ("Content-Type", "Content-Length")
_OF_AN_ADDRESS: Final = "!#$%&'()*+,/:;=?@[]~"
_PORTS: Final = {"http": 80, "https": 443}


class _Handler(ResponseHandler):
    """A connection that tracks its previous use, and the arrival of data.

    Data may arrive for its current request, or while it is idle.
    """

    requests = 0
    has_received = False
    _asked_at = 0.0
    _lost_at = 0.0
    _silent_until = 0.0
    _left_to_send = 0

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        super().__init__(loop)
        self._context = context  # of its timers: they need none of the caller's variables

    def _reschedule_timeout(self) -> None:
        """Use one timer that checks the time of the last data when it is due.

        aiohttp makes a new timer for each chunk of a reply.
        """
        timeout = self._read_timeout
        if not timeout:
            self._drop_timeout()
            return
        self._silent_until = self._loop.time() + timeout
        if self._read_timeout_handle is None:
            self._read_timeout_handle = self._loop.call_at(
                self._silent_until, self._on_read_timeout, context=self._context
            )

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        left = 0 if self.transport is None else self.transport.get_write_buffer_size()
        if left and left != self._left_to_send:  # the server is silent, but still accepts data
            self._left_to_send = left
            self._silent_until = self._loop.time() + (self._read_timeout or 0)
        if self._silent_until > self._loop.time():
            self._read_timeout_handle = self._loop.call_at(
                self._silent_until, self._on_read_timeout, context=self._context
            )
        else:
            super()._on_read_timeout()

    def resume_writing(self) -> None:
        self._left_to_send = -1  # some data was accepted, although as much may be pending again
        super().resume_writing()

    def set_response_params(self, **params: Any) -> None:
        self.requests += 1
        self.has_received = False
        self._asked_at = self._loop.time()
        super().set_response_params(**params)
        # aiohttp starts its timer when everything is sent: it would wait forever for a server that
        # accepts nothing.
        self._reschedule_timeout()

    def close(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.abort()  # otherwise it stays open until the server has accepted the rest
        else:
            super().close()

    def data_received(self, data: bytes) -> None:
        if data:  # called without data, aiohttp only processes earlier data
            self.has_received = True
        super().data_received(data)

    def is_connected(self) -> bool:
        """Return whether it may serve a request.

        A connection with unsolicited data cannot: that data would be taken for the answer to the
        next request.
        """
        return not self.has_received and super().is_connected()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._lost_at = self._loop.time()
        super().connection_lost(exc)

    @property
    def was_stale(self) -> bool:
        """True if the server had closed it while it was idle, which is detected at once.

        A connection that is lost later may be lost with a request in progress.
        """
        return (
            self.requests > 1
            and not self.has_received
            and self._lost_at - self._asked_at < _STALE_SECONDS
        )


class _Connector(aiohttp.TCPConnector):
    """The connections, each of which tracks whether it is idle."""

    async def _create_proxy_connection(
        self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout
    ) -> Any:
        """Limit the time to open a tunnel: aiohttp would wait forever for a silent proxy."""
        async with asyncio.timeout(timeout.sock_read):
            return await super()._create_proxy_connection(req, traces, timeout)

    async def _create_direct_connection(
        self, req: aiohttp.ClientRequest, traces: Any, timeout: aiohttp.ClientTimeout, **more: Any
    ) -> Any:
        """Limit the time to look up a name: aiohttp would wait forever.

        The result is in aiohttp's cache afterwards.
        """
        host, port = req.url.raw_host, req.url.port
        if host is not None and port is not None and timeout.sock_connect is not None:
            try:
                async with asyncio.timeout(timeout.sock_connect):
                    await self._resolve_host(
                        host.rstrip(".") + "." if host.endswith("..") else host, port, traces=traces
                    )
            except TimeoutError as problem:
                msg = (
                    f"The name {host!r} was not resolved within {timeout.sock_connect:g} s. "
                    "Check the base_url and the DNS."
                )
                raise aiohttp.ConnectionTimeoutError(msg) from problem
            except OSError as problem:
                raise aiohttp.ClientConnectorDNSError(req.connection_key, problem) from problem
        return await super()._create_direct_connection(req, traces, timeout, **more)

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


class _Response(aiohttp.ClientResponse):
    """A response that knows how often its request was sent."""

    sends = 1


class AiohttpReply:
    """A `TransportReply`."""

    __slots__ = ("_content", "_response", "headers", "next_piece", "sends", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self.status = response.status
        self.sends = response.sends if isinstance(response, _Response) else 1
        self.headers: Mapping[str, str] = response.headers
        self.next_piece: Callable[[], Awaitable[bytes]] = response.content.readany

    @property
    def is_at_end(self) -> bool:
        return self._content.at_eof()

    def expire(self, error: TransportError) -> None:
        self._content.set_exception(error)

    def error(self, problem: BaseException) -> TransportError | None:
        return _as_transport_error(problem)

    def drop(self) -> None:
        self._response.close()


class AiohttpTransport:
    """A `Transport`. Must be made on its loop."""

    def __init__(
        self, max_connections: int, context: ssl.SSLContext | None, proxy: str | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        connector = _Connector(
            limit=max_connections,
            keepalive_timeout=_KEEP_ALIVE_SECONDS,
            ssl=context if context is not None else True,
            # The operating system's: otherwise aiohttp would use another resolver that happens to
            # be installed.
            resolver=resolver(),
        )
        # aiohttp's own class does not record whether a connection was used before, and whether data
        # has arrived.
        connector._factory = cast(
            "partial[ResponseHandler]", partial(_Handler, self._loop, contextvars.Context())
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            response_class=_Response,
            timeout=_timeout(None),
        )
        self._connector = connector
        self._proxy = None if proxy is None else URL(proxy)
        self._timer = TimerNoop()  # no request has a limit for its total time
        self._traces: list[Trace] = []  # of all requests: nothing traces them

    async def send(
        self, url: str, headers: Mapping[str, str], body: bytes, timeout: float | None
    ) -> TransportReply:
        target = URL(url, encoded=True)
        limits = self._session.timeout if timeout is None else _timeout(timeout)
        try:
            response = await self._exchange("POST", target, headers, _payload(body), limits)
            if response.status in _REDIRECTS and "Location" in response.headers:
                response = await self._redirected(response, headers, body, limits)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.is_closed() or (task is not None and task.cancelling()):
                raise
            # aiohttp cancels callers that wait for a connection when it is closed.
            raise _closed_meanwhile() from None
        except Exception as problem:
            error = _closed_meanwhile() if self.is_closed() else _as_transport_error(problem)
            if error is None:
                raise
            _clear_frames(problem)
        else:
            return AiohttpReply(response)
        # Not where it is handled: errors of aiohttp may contain the headers.
        try:
            raise error from None
        finally:
            del error  # its traceback has this frame

    async def _exchange(
        self,
        method: str,
        target: URL,
        headers: Mapping[str, str],
        data: bytes | io.BytesIO | None,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send a request, and return the head of its response.

        Send it again if the server had already closed the connection. This is the part of
        `ClientSession.request` that a model needs: the rest adds 30 objects to each waiting
        request, which the garbage collector looks at.
        """
        url, auth = strip_auth_from_url(target)
        request = _Request(
            method,
            url,
            headers=headers,
            data=data,
            auth=auth,
            loop=self._loop,
            response_class=_Response,
            proxy=self._proxy,
            timer=self._timer,
            session=self._session,
            traces=self._traces,
        )
        sends = 0
        while True:
            sends += 1
            try:
                connection = await self._connector.connect(request, self._traces, limits)
            except TimeoutError as problem:
                msg = f"Connection timeout to host {url}"
                raise aiohttp.ConnectionTimeoutError(msg) from problem
            try:
                assert connection.protocol is not None
                connection.protocol.set_response_params(
                    timer=self._timer,
                    read_until_eof=True,
                    read_timeout=limits.sock_read,
                    max_line_size=_MOST_OF_A_HEADER,
                    max_field_size=_MOST_OF_A_HEADER,
                )
                response = await request.send(connection)
                try:
                    await response.start(connection)
                except BaseException:
                    response.close()
                    raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                connection.close()
                if sends > 1 or request.handler is None or not request.handler.was_stale:
                    raise
            except BaseException:
                connection.close()
                raise
            else:
                response.sends = sends  # type: ignore[attr-defined]  # it is a `_Response`
                return response
            loggers.models.info(
                "A request to %s is sent again, because the server had closed the reused "
                "connection.",
                url.host,
            )

    async def _redirected(
        self,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        body: bytes,
        limits: aiohttp.ClientTimeout,
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
            response = await self._exchange(
                method, target, left, _payload(data) if data else None, limits
            )
            if response.status not in _REDIRECTS or "Location" not in response.headers:
                return response
        response.close()
        raise TransportError(
            "TooManyRedirects",
            f"The server redirects more than {_MOST_REDIRECTS} times. Check the base_url.",
        )

    def is_closed(self) -> bool:
        return self._session.closed

    async def close(self) -> None:
        # aiohttp's own `close` waits, in a separate task, until each server has answered the TLS
        # shutdown. Here all connections are aborted at once.
        self._connector._close(abort_ssl=True)
        self._session.detach()
        await asyncio.sleep(0)  # lets the loop close the sockets


def _payload(body: bytes) -> bytes | io.BytesIO:
    """Return a body for aiohttp: a large one must be readable in chunks."""
    return body if len(body) <= _MOST_AT_ONCE else io.BytesIO(body)


def _clear_frames(problem: BaseException) -> None:
    """Break the reference cycles between aiohttp's errors and the frames that keep them.

    All these frames have ended. Errors of other kinds may come from a caller that handles one.
    """
    link: BaseException | None = problem
    for _ in range(_MOST_ERRORS):
        if not isinstance(link, aiohttp.ClientError | OSError):
            return
        clear_frames(link.__traceback__)
        link = link.__cause__ or link.__context__


def _closed_meanwhile() -> TransportError:
    return TransportError(
        "ReadError",
        "The model's connections were closed, by aclose() or at the end of the loop, before the "
        "reply arrived. Await the call before you close the model.",
    )


def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    if seconds == inf:
        return aiohttp.ClientTimeout(total=None, ceil_threshold=_NEVER)
    # Aiohttp treats 0 as no limit.
    silent = SILENT_SECONDS if seconds is None else seconds if seconds > 0 else _AT_ONCE
    return aiohttp.ClientTimeout(
        total=None,
        sock_read=silent,
        sock_connect=CONNECT_SECONDS if seconds is None else silent,
        ceil_threshold=_NEVER,
    )


def _redirect_target(response: aiohttp.ClientResponse) -> URL:
    """Return the target of a redirect.

    Invalid characters are quoted; a user name and a password in it are dropped, since the request
    has its own.
    """
    location = response.headers["Location"]
    try:
        target = response.url.join(
            URL(quote(location, safe=_OF_AN_ADDRESS, errors="surrogateescape"), encoded=True)
        )
        if (
            target.scheme in _PORTS
            and (target.raw_host or "").encode("idna")
            and target.port is not None
        ):
            return target.with_user(None)
    except ValueError:
        pass
    where = location.partition("?")[0].rpartition("@")[2]
    raise TransportError(
        "UnsupportedProtocol",
        f"The server redirects to {where[:200]!r}, which is not an HTTP URL. Check the base_url.",
    )


def _leaves(before: URL, after: URL) -> bool:
    """Return whether a redirect goes to another server.

    From HTTP to HTTPS on the same host it does not.
    """
    if before.origin() == after.origin():
        return False
    return not (
        before.host == after.host
        and (before.scheme, before.port, after.scheme, after.port) == ("http", 80, "https", 443)
    )


def _as_transport_error(problem: BaseException) -> TransportError | None:
    if isinstance(problem, TransportError):
        return problem
    if isinstance(problem, TimeoutError):
        return TransportError(
            "ConnectTimeout"
            if isinstance(problem, aiohttp.ConnectionTimeoutError)
            else "ReadTimeout",
            str(problem),
            "timeout",
        )
    if isinstance(problem, aiohttp.ClientConnectorError | aiohttp.ClientConnectorSSLError):
        return TransportError("ConnectError", str(problem))
    if isinstance(problem, aiohttp.ClientHttpProxyError):
        return TransportError(
            "ProxyError",
            f"The proxy answered {problem.status} {problem.message}. Check HTTP_PROXY and "
            "HTTPS_PROXY.",
        )
    if isinstance(problem, aiohttp.ServerDisconnectedError):
        return TransportError(
            "RemoteProtocolError",
            "The server closed the connection without sending a response. Check the "
            "base_url, or try again.",
        )
    if isinstance(problem, aiohttp.ClientPayloadError):
        return TransportError(
            "RemoteProtocolError", f"The reply ended early: {_short(problem)}. Try again"
        )
    if isinstance(problem, aiohttp.ClientResponseError | HttpProcessingError):
        return TransportError(
            "RemoteProtocolError",
            f"The server's answer is not HTTP: {_short(problem.message)}. Check the base_url",
        )
    if isinstance(problem, aiohttp.ClientError | OSError):
        return TransportError("ReadError", str(problem) or type(problem).__name__)
    return None


def _short(text: object) -> str:
    return " ".join(str(text).split())[:200]
