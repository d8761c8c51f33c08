"""The address, headers and errors of a model's requests, taken from the `openai` client.

That client never accesses the network. It is asked to make a request, which is intercepted, and its
address and headers are used for all later requests. Error replies are passed to it, so that it
raises its usual errors. It never sees a message of a conversation.
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

_LEFT_OUT: Final = frozenset(
    ("accept-encoding", "connection", "content-length", "host", "transfer-encoding")
)
"""Headers that each HTTP client sets itself."""

_ABOUT_THE_CLIENT: Final = "x-stainless-"
_OF_THE_BODY: Final = frozenset(("content-encoding", "content-length", "transfer-encoding"))
_SCHEMES: Final = frozenset(("http", "https"))


@dataclass(frozen=True, slots=True)
class Target:
    """The address, and the headers with the key, which the repr never shows."""

    url: str
    headers: Mapping[str, str]

    def __repr__(self) -> str:
        return "<Target>"


class _Request(Protocol):
    """A request of the `openai` client, with any HTTP library."""

    url: Any
    headers: Any


class Probe:
    """A fake transport for the `openai` client."""

    def __init__(self) -> None:
        self.request: _Request | None = None
        self.answer: Callable[[_Request], Any] | None = None

    async def handle_async_request(self, request: _Request) -> Any:
        """Record the request; return the prepared answer, or fail."""
        self.request = request
        answer = self.answer
        if answer is None:
            raise _of_client(request, "ConnectError")(
                "The request was only looked at.", request=request
            )
        return answer(request)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


class TargetFinder:
    """The `openai` client behind a model, on one loop.

    `ask` makes a minimal request to the model's API.
    """

    def __init__(
        self, client: AsyncOpenAI, probe: Probe, ask: Callable[[AsyncOpenAI], Awaitable[object]]
    ) -> None:
        self._client = client
        self._probe = probe
        self._ask = ask
        self._turn = asyncio.Lock()  # one question at a time: the probe has one answer
        self._target: Target | None = None

    async def find(self) -> Target:
        """Return the target. Raises the client's error if it cannot make a request."""
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
        """Return the error that the client raises for such a reply."""
        # The body is complete and uncompressed. Headers are passed as bytes, since a client would
        # encode text as ASCII, and servers send other characters.
        plain = [
            (name.encode(), value.encode(errors="surrogateescape"))
            for name, value in headers.items()
            if name.lower() not in _OF_THE_BODY
        ]
        return await self._raised(
            lambda request: _of_client(request, "Response")(
                status, headers=plain, content=body, request=request
            )
        )

    async def lost_error(self, error: TransportError) -> Exception:
        """Return the error that the client raises for a request that did not get through."""

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
        raise AssertionError  # all prepared answers are errors


def _target_of(request: _Request) -> Target:
    parts = urlsplit(str(request.url))
    # A user name and a password before the host are in the headers by now.
    url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in _LEFT_OUT and not name.startswith(_ABOUT_THE_CLIENT)
    }
    return Target(url, headers)


def _of_client(request: object, name: str) -> Any:
    """Return a class of the HTTP library that the client uses, given a request of that library."""
    return getattr(sys.modules[type(request).__module__.partition(".")[0]], name)


def check_url(url: str) -> None:
    """Raise TransportError if that is not an HTTP address."""
    parts = urlsplit(url)
    if parts.scheme in _SCHEMES and parts.hostname:
        _check_host_and_port(parts)
        return
    if parts.scheme and parts.hostname:
        raise TransportError(
            "UnsupportedProtocol",
            f"Request URL has an unsupported protocol '{parts.scheme}://'. Check the base_url.",
        )
    raise TransportError(
        "UnsupportedProtocol",
        "Request URL is missing an 'http://' or 'https://' protocol. Check the base_url.",
    )


def _check_host_and_port(parts: SplitResult) -> None:
    try:
        _ = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:  # otherwise the loop would raise it, when it connects
        msg = (
            "The address must have a valid host name and a port of at most 65535, got "
            f"{parts.netloc.rpartition('@')[2][:100]!r}. Check the base_url."
        )
        raise TransportError("UnsupportedProtocol", msg) from None
