"""Where a model's requests go, what stands in front of them, and what its errors are: as the `openai` client would have it.

Owns: the client that is never let on to the network. It is asked to make a request, which is caught on the way out, and its address and headers are used for
all that follow. Replies with an error are handed to it, so that it raises what it always raises. It must never see a message of a conversation.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol
from urllib.parse import SplitResult, urlsplit, urlunsplit

from .protocol import TransportError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Probe", "Target", "TargetFinder", "check_url"]

_LEFT_OUT: Final = frozenset(("accept-encoding", "connection", "content-length", "host", "transfer-encoding"))
"""What each HTTP client says for itself."""

_ABOUT_THE_CLIENT: Final = "x-stainless-"
_OF_THE_BODY: Final = frozenset(("content-encoding", "content-length", "transfer-encoding"))
_SCHEMES: Final = frozenset(("http", "https"))


@dataclass(frozen=True, slots=True)
class Target:
    """The address, and the headers with the key in them, which no text of this shows."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "<Target>"


class _Request(Protocol):
    """A request of the `openai` client's, whichever HTTP library it stands on."""

    url: Any
    headers: Any


class Probe:
    """What the `openai` client takes for its way to the network."""

    def __init__(self) -> None:
        self.request: _Request | None = None
        self.answer: Callable[[_Request], Any] | None = None

    async def handle_async_request(self, request: _Request) -> Any:
        """Keep what is asked; give the answer that there is for it, or fail."""
        self.request = request
        answer = self.answer
        if answer is None:
            raise _of_client(request, "ConnectError")("The request was only looked at.", request=request)
        return answer(request)

    async def aclose(self) -> None:
        """There is nothing to close."""


class TargetFinder:
    """The `openai` client behind a model, on one loop. `ask` makes the least request that there is to the model's API."""

    def __init__(self, client: AsyncOpenAI, probe: Probe, ask: Callable[[AsyncOpenAI], Awaitable[object]]) -> None:
        self._client = client
        self._probe = probe
        self._ask = ask
        self._turn = asyncio.Lock()  # one question at a time: the probe has one answer
        self._target: Target | None = None

    async def find(self) -> Target:
        """Raises what the client raises, if it cannot make a request."""
        from openai import OpenAIError  # noqa: PLC0415 -- it was imported before this was made

        async with self._turn:
            if self._target is None:
                try:
                    await self._ask(self._client)
                except OpenAIError:
                    if self._probe.request is None:
                        raise
                request, self._probe.request = self._probe.request, None
                assert request is not None
                self._target = _target_of(request)
            return self._target

    async def status_error(self, status: int, headers: Mapping[str, str], body: bytes) -> Exception:
        """What the client raises for such a reply."""
        # The body is unpacked, and whole. As bytes, since a client would write text as ASCII, and servers send what they like.
        plain = [(name.encode(), value.encode(errors="surrogateescape")) for name, value in headers.items() if name.lower() not in _OF_THE_BODY]
        return await self._raised(lambda request: _of_client(request, "Response")(status, headers=plain, content=body, request=request))

    async def lost_error(self, error: TransportError) -> Exception:
        """What the client raises for a request that did not get through."""

        def fail(request: _Request) -> NoReturn:
            raise _of_client(request, error.name)(str(error), request=request)

        return await self._raised(fail)

    async def _raised(self, answer: Callable[[_Request], Any]) -> Exception:
        async with self._turn:
            self._probe.answer = answer
            try:
                await self._ask(self._client)
            except Exception as error:  # noqa: BLE001 -- the caller raises it
                return error
            finally:
                self._probe.answer = self._probe.request = None
        raise AssertionError  # it was given nothing but errors


def _target_of(request: _Request) -> Target:
    parts = urlsplit(str(request.url))
    # A name and a password before the host are in the headers by now.
    url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))
    headers = {name: value for name, value in request.headers.items() if name not in _LEFT_OUT and not name.startswith(_ABOUT_THE_CLIENT)}
    return Target(url, headers)


def _of_client(request: object, name: str) -> Any:
    """A class of the HTTP library that the client stands on, whose request this is."""
    return getattr(sys.modules[type(request).__module__.partition(".")[0]], name)


def check_url(url: str) -> None:
    """Raise, if that is no address for HTTP."""
    parts = urlsplit(url)
    if parts.scheme in _SCHEMES and parts.hostname:
        _check_host_and_port(parts)
        return
    if parts.scheme and parts.hostname:
        raise TransportError("UnsupportedProtocol", f"Request URL has an unsupported protocol '{parts.scheme}://'.")
    raise TransportError("UnsupportedProtocol", "Request URL is missing an 'http://' or 'https://' protocol.")


def _check_host_and_port(parts: SplitResult) -> None:
    try:
        _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:  # so it would be raised by the loop, when it connects
        msg = "The host in the address is no name that can be looked up, or its port is no number up to 65535. Check the base_url."
        raise TransportError("UnsupportedProtocol", msg) from None
