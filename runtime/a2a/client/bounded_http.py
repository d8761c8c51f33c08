"""HTTP with responses that are bounded in size, and that come from the requested server only.

Bytes are counted before anything decodes them: a whole response, or one event of a stream.
Compression is refused, because a small compressed response may expand; redirects are not followed,
because they would forward the credentials. A client that the user has passed is neither changed nor
closed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import httpx

from ..errors import A2AProtocolError
from .limits import ClientLimits

__all__ = ["make_http", "own_transport"]

_UNSAFE: Final = re.compile(b"\xc2\x85|\xe2\x80[\xa8\xa9]")
"""In UTF-8, the characters at which `splitlines` ends a line, but an event stream does not.

JSON may contain them unescaped.
"""
_ESCAPED: Final = {
    b"\xc2\x85": b"\\u0085",
    b"\xe2\x80\xa8": b"\\u2028",
    b"\xe2\x80\xa9": b"\\u2029",
}
_CUT: Final = re.compile(b"(?:\xc2|\xe2|\xe2\x80)\\Z")
_BLANK: Final = re.compile(rb"\n\r?\n|\r\r")


def own_transport(limits: ClientLimits) -> httpx.AsyncBaseTransport:
    """Return a transport with its own connections.

    TCP keepalive detects a peer that has disappeared silently, so that nothing waits for it
    forever.
    """
    options: list[tuple[int, int, int]] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    del limits
    return httpx.AsyncHTTPTransport(socket_options=options)


def make_http(
    limits: ClientLimits, given: httpx.AsyncClient | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    """Return a new client, which uses the connections of `given` if set."""
    inner = _Through(given) if given is not None else own_transport(limits)
    timeout = httpx.Timeout(None, connect=limits.connect, write=limits.request)
    return httpx.AsyncClient(
        transport=_Bounded(inner, limits),
        timeout=timeout,
        auth=auth,
        headers={"Accept-Encoding": "identity"},
        follow_redirects=False,
    )


class _Bounded(httpx.AsyncBaseTransport):
    def __init__(self, inner: httpx.AsyncBaseTransport, limits: ClientLimits) -> None:
        self._inner = inner
        self._limits = limits

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        where = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        if response.headers.get("content-encoding", "identity").strip().lower() not in (
            "",
            "identity",
        ):
            await response.stream.aclose()
            msg = (
                f"{where} sent a compressed response, although the request does not accept one. "
                "Turn compression off on the server or its proxy."
            )
            raise A2AProtocolError(msg)
        is_events = "text/event-stream" in response.headers.get("content-type", "").lower()
        counted = (_Events if is_events else _Body)(response.stream, self._limits, where)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=counted,
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx.AsyncByteStream):
    """A whole response."""

    what = "an answer"

    def __init__(self, inner: httpx.AsyncByteStream, limits: ClientLimits, where: str) -> None:
        self._inner = inner
        self._limits = limits
        self._where = where

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        async for chunk in self._inner:
            size += len(chunk)
            values += chunk.count(b",")
            self._check(size, values)
            yield chunk

    def _check(self, size: int, values: int) -> None:
        """Check the number of values as well as the size.

        An empty list has three bytes in JSON, and hundreds in memory.
        """
        limits = self._limits
        if size > limits.response:
            msg = (
                f"{self._where} sends {self.what} of more than {limits.response:,} bytes, which "
                "is the limit. If that is intended, raise ClientLimits(response=...)."
            )
            raise A2AProtocolError(msg)
        if values > limits.values:
            msg = (
                f"{self._where} sends {self.what} with more than {limits.values:,} values, which "
                "is the limit. If that is intended, raise ClientLimits(values=...)."
            )
            raise A2AProtocolError(msg)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Events(_Body):
    """A stream of events, each of which is bounded."""

    what = "an event"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        tail = held = b""
        async for raw in self._inner:
            chunk = held + raw
            cut = _CUT.search(chunk)
            held = b"" if cut is None else cut[0]
            chunk = _UNSAFE.sub(_escape, chunk[: len(chunk) - len(held)])
            seen, ends = tail + chunk, 0
            for blank in _BLANK.finditer(seen):
                ends = blank.end()
            size, values = (
                (len(seen) - ends, seen.count(b",", ends))
                if ends
                else (size + len(chunk), values + chunk.count(b","))
            )
            tail = seen[-2:] if ends < len(seen) - 1 else b""
            self._check(size, values)
            if chunk:
                yield chunk
        if held:
            yield held


def _escape(found: re.Match[bytes]) -> bytes:
    return _ESCAPED[found[0]]


class _Through(httpx.AsyncBaseTransport):
    """The user's client: its connections, proxies, certificates, hooks and credentials."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        extensions = dict(request.extensions)
        # The default of httpx, which would end quiet streams.
        if self._client.timeout != httpx.Timeout(5.0):
            own = self._client.timeout.as_dict()
            asked = extensions.get("timeout", {})
            extensions["timeout"] = {
                name: own.get(name) if asked.get(name) is None else asked[name]
                for name in ("connect", "read", "write", "pool")
            }
        content = await request.aread()
        twin = self._client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=content,
            extensions=extensions,
        )
        response = await self._client.send(twin, stream=True, follow_redirects=False)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Raw(response.aiter_raw(), response.aclose),
            extensions=response.extensions,
        )


class _Raw(httpx.AsyncByteStream):
    """The unmodified bytes of a response."""

    def __init__(self, chunks: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]) -> None:
        self._chunks = chunks
        self._close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._close()
