"""The common base of the models behind OpenAI's APIs: their construction, and the sending of
requests.

The client and the HTTP transport are imported when a model is first called, never before.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, Unpack
from urllib.parse import urlsplit

from ..data.chat import Message, Usage
from ..errors import ModelError, UsageError
from ..option_names import meant
from .openai_errors import model_errors
from .protocol import ModelSettings, SettingsFields, settings_of
from .wire.body import Bodies
from .wire.client import WireClient
from .wire.loop_clients import LoopClients
from .wire.options import ApiKey, ClientOptions, check_headers
from .wire.protocol import MOST_BYTES, MOST_SECONDS, Sent

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .wire.opening import WireMaker

__all__ = ["OpenAIModel", "counted"]

_OPENING: Final = f"{__package__}.wire.opening"
_SETTINGS: Final = tuple(field.name for field in fields(ModelSettings))


class OpenAIModel:
    """The base of `OpenAIChatModel` and `OpenAIResponsesModel`; it makes no calls itself."""

    _is_wired: ClassVar[bool] = True
    """Whether requests are sent directly over HTTP if no client was passed."""
    _items: ClassVar[str] = ""
    """The API's name for the messages."""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        client: AsyncOpenAI | None = None,
        azure: bool = False,
        api_version: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        default_headers: Mapping[str, str] | None = None,
        default_query: Mapping[str, object] | None = None,
        max_connections: int | None = None,
        max_reply_bytes: int = MOST_BYTES,
        max_reply_seconds: float = MOST_SECONDS,
        **settings: Unpack[SettingsFields],
    ) -> None:
        name = type(self).__name__
        model = model if model is not None else os.environ.get("OPENAI_MODEL")
        if not isinstance(model, str) or not model.strip():
            msg = (
                f"{name}: the name of a model is missing. Pass it, as in {name}('gpt-4o'), or "
                "set OPENAI_MODEL."
            )
            raise UsageError(msg)
        if unknown := sorted(set(settings) - set(_SETTINGS)):
            msg = (
                f"{name}: unknown setting {unknown[0]!r}. {meant(unknown[0], _SETTINGS)} Put "
                "other settings of the provider into extra={...}."
            )
            raise UsageError(msg)
        own = {
            "organization": organization,
            "project": project,
            "default_headers": default_headers,
            "default_query": default_query,
        }
        if client is not None and (
            api_key is not None or base_url is not None or azure or api_version is not None
        ):
            msg = (
                f"{name}: client= has its own key and address. Omit api_key=, base_url=, azure= "
                "and api_version=."
            )
            raise UsageError(msg)
        given = [
            f"{key}="
            for key, value in (*own.items(), ("max_connections", max_connections))
            if value is not None
        ]
        if client is not None and given:
            msg = f"{name}: client= has its own connections and headers. Omit {', '.join(given)}."
            raise UsageError(msg)
        for key, value in (
            ("max_connections", max_connections),
            ("max_reply_bytes", max_reply_bytes),
        ):
            if value is not None and not (isinstance(value, int) and value > 0):
                msg = f"{name}: {key} must be a positive number, got {value!r}."
                raise UsageError(msg)
        if not isinstance(max_reply_seconds, int | float) or not max_reply_seconds > 0:
            msg = (
                f"{name}: max_reply_seconds must be a number of seconds above 0, got "
                f"{max_reply_seconds!r}."
            )
            raise UsageError(msg)
        if api_version is not None and not azure:
            msg = (
                f"{name}: api_version={api_version!r} is an option of Azure. Pass "
                "azure=True, or omit api_version."
            )
            raise UsageError(msg)
        _check_address(name, base_url)
        self.model = model
        self.settings = settings_of(settings)
        self._api_key = api_key
        self._base_url = base_url
        self._azure = azure
        self._api_version = api_version
        self._client = client
        _check_own_headers(name, default_headers)
        self._own = {key: value for key, value in own.items() if value is not None}
        self._limits = (max_connections, max_reply_bytes, max_reply_seconds)
        if api_key == "":  # falling back would send another key to this key's provider
            msg = (
                f"{name}: api_key must not be empty. Pass the key, or omit api_key to use "
                "the one in the environment."
            )
            raise UsageError(msg)
        self._bodies = Bodies(self._items)
        self._clients: LoopClients[AsyncOpenAI | WireClient] = LoopClients(self._maker())

    def __repr__(self) -> str:
        address = f", base_url={_without_secrets(self._base_url)!r}" if self._base_url else ""
        azure = ", azure=True" if self._azure else ""
        client = ", client=..." if self._client is not None else ""
        return f"{type(self).__name__}({self.model!r}{address}{azure}{client})"

    @property
    def is_azure(self) -> bool:
        """True if it is a model on Azure."""
        return self._azure

    @property
    def address(self) -> str | None:
        """The address of its requests; None if unknown."""
        if self._client is None:
            return self._options().address
        own = getattr(self._client, "base_url", None)
        return None if own is None else str(own)

    async def aclose(self) -> None:
        """Close the connections of this model on the running loop.

        It may be used again. A client that was passed in is left alone.
        """
        await self._clients.aclose()

    async def _get_way(self) -> AsyncOpenAI | WireClient:
        """Return the client for the next request: the user's, or this model's for the running
        loop.
        """
        if self._client is not None:
            return self._client
        way = self._clients.here()
        if way is not None:
            return way
        with model_errors(self):
            if _OPENING not in sys.modules or not hasattr(sys.modules.get("openai"), "AsyncOpenAI"):
                await _import_them()
            return await self._clients.get()

    @staticmethod
    async def _least(model: str, client: AsyncOpenAI) -> object:
        """Make a minimal request, to learn its address and headers."""
        raise NotImplementedError

    def _options(self) -> ClientOptions:
        return ClientOptions(
            self._api_key, self._base_url, self._azure, self._api_version, self._own
        )

    def _maker(self) -> Callable[[], AsyncOpenAI | WireClient]:
        """Return a function that makes a client.

        It holds no reference to the model, so that an unused model is freed at once.
        """
        options = self._options()
        name = type(self).__name__
        limits, who, is_wired, ask = (
            self._limits,
            repr(self),
            self._is_wired,
            partial(type(self)._least, self.model),
        )
        makers: list[WireMaker] = []

        def make() -> AsyncOpenAI | WireClient:
            import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

            from .wire.environment import environment_proxy, is_supported  # noqa: PLC0415 -- as above
            from .wire.opening import WireMaker  # noqa: PLC0415

            options.check_access(name)
            options.check(who)
            if not is_supported(environment_proxy(options.address)) or not is_wired:
                # The library's own wrapper of the HTTP client closes itself on any loop that
                # happens to run when it is collected; this one does not.
                return options.client(openai.DefaultAsyncHttpxClient())
            if not makers:
                makers.append(WireMaker(options, *limits))
            return makers[0].make(who, ask)

        return make


def counted(reply: Message, sent: Sent) -> Message:
    """Return the reply, with usage that counts each time that its request was sent."""
    if sent.times == 1:
        return reply
    return reply.replace(usage=(reply.usage or Usage(requests=1)) + Usage(requests=sent.times - 1))


def _check_address(name: str, base_url: str | None) -> None:
    try:
        parts = urlsplit(base_url or "")
    except ValueError as problem:
        msg = (
            f"{name}: base_url must be an http(s) URL such as 'https://api.openai.com/v1': "
            f"{problem}."
        )
        raise UsageError(msg) from None  # the original error may contain a password
    try:
        _ = parts.port
    except ValueError:
        msg = (
            f"{name}: base_url must be an http(s) URL such as 'https://api.openai.com/v1', "
            "with a port of at most 65535."
        )
        raise UsageError(msg) from None


def _check_own_headers(name: str, headers: Mapping[str, str] | None) -> None:
    try:
        check_headers(name, headers or {})
    except ModelError as problem:
        raise UsageError(str(problem)) from None


async def _import_them() -> None:
    """Import the client and the transport in a separate thread.

    That takes half a second, which would block the event loop.
    """
    loop = asyncio.get_running_loop()
    imported: asyncio.Future[BaseException | None] = loop.create_future()

    def tell(problem: BaseException | None) -> None:
        if not imported.done():
            imported.set_result(problem)

    def work() -> None:
        problem: BaseException | None = None
        try:
            importlib.import_module("openai")
            importlib.import_module(_OPENING)
        except BaseException as error:  # noqa: BLE001 -- it is raised where the client is needed
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
            loop.call_soon_threadsafe(tell, problem)

    threading.Thread(target=work, name="offbook-import", daemon=True).start()
    problem = await imported
    if problem is not None:
        raise problem


def _without_secrets(url: str | None) -> str:
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
