"""What the two models of OpenAI's APIs have in common: how they are made, and how their requests go out.

Owns: the checks of the constructor, the client, and the wire that is used without one. What either needs is imported when a model is first asked, never before.
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

from ..errors import ModelError, UsageError
from ..option_names import meant
from .openai_errors import model_errors
from .protocol import ModelSettings, SettingsFields, settings_of
from .wire.body import Bodies
from .wire.client import WireClient
from .wire.header_values import check_headers
from .wire.loop_clients import LoopClients
from .wire.options import ApiKey, ClientOptions
from .wire.protocol import MOST_BYTES

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from .wire.opening import WireMaker

__all__ = ["OpenAIModel"]

_OPENING: Final = f"{__package__}.wire.opening"
_SETTINGS: Final = tuple(field.name for field in fields(ModelSettings))


class OpenAIModel:
    """The base of `OpenAIChatModel` and `OpenAIResponsesModel`; it asks nothing by itself."""

    _is_wired: ClassVar[bool] = True
    """Whether its requests go over the wire, where no client is given."""
    _items: ClassVar[str] = ""
    """What its API calls the messages."""

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
        **settings: Unpack[SettingsFields],
    ) -> None:
        name = type(self).__name__
        model = model if model is not None else os.environ.get("OPENAI_MODEL")
        if not isinstance(model, str) or not model.strip():
            msg = f"{name}: no model: pass its name, as in {name}('gpt-4o'), or set OPENAI_MODEL."
            raise UsageError(msg)
        if unknown := sorted(set(settings) - set(_SETTINGS)):
            msg = f"{name}: unknown setting {unknown[0]!r}. {meant(unknown[0], _SETTINGS)} What else the provider takes goes into extra={{...}}."
            raise UsageError(msg)
        own = {"organization": organization, "project": project, "default_headers": default_headers, "default_query": default_query}
        if client is not None and (api_key is not None or base_url is not None or azure or api_version is not None):
            msg = f"{name}: client= brings its own key and address; leave out api_key=, base_url=, azure= and api_version=."
            raise UsageError(msg)
        given = [f"{key}=" for key, value in (*own.items(), ("max_connections", max_connections)) if value is not None]
        if client is not None and given:
            msg = f"{name}: client= brings its own connections and headers; leave out {', '.join(given)}."
            raise UsageError(msg)
        for key, value in (("max_connections", max_connections), ("max_reply_bytes", max_reply_bytes)):
            if value is not None and not (isinstance(value, int) and value > 0):
                msg = f"{name}: {key}={value!r}: give a positive number."
                raise UsageError(msg)
        if api_version is not None and not azure:
            msg = f"{name}: api_version={api_version!r} is Azure's; pass azure=True, too, or leave it out."
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
        self._limits = (max_connections, max_reply_bytes)
        if client is None:
            self._check_access(name)
        self._bodies = Bodies(self._items)
        self._clients: LoopClients[AsyncOpenAI | WireClient] = LoopClients(self._maker())

    def __repr__(self) -> str:
        address = f", base_url={_without_secrets(self._base_url)!r}" if self._base_url else ""
        return f"{type(self).__name__}({self.model!r}{address}{', azure=True' if self._azure else ''}{', client=...' if self._client is not None else ''})"

    @property
    def is_azure(self) -> bool:
        """Whether it is Azure's."""
        return self._azure

    async def aclose(self) -> None:
        """Close the connections of this model on the running loop. It may be used again. A client that was passed in is left alone."""
        await self._clients.aclose()

    async def _get_way(self) -> AsyncOpenAI | WireClient:
        """What the next request goes through: the client that was given, or what this model has made for the running loop."""
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
        """Make the least request that there is, for the sake of its address and headers."""
        raise NotImplementedError

    def _check_access(self, name: str) -> None:
        keys = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN") if self._azure else ("OPENAI_API_KEY",)
        if not self._api_key and not any(os.environ.get(key) for key in keys):
            msg = f"{name}: no key: pass api_key= or set {keys[0]}. A key in a .env file is read by model_from_env()."
            raise UsageError(msg)
        if self._api_key == "":  # not silently another one: that would be sent to whoever this one is for
            msg = f"{name}: api_key= is empty: pass the key, or leave api_key= out, and the one in {keys[0]} is used."
            raise UsageError(msg)
        if not self._azure:
            return
        if not self._base_url and not os.environ.get("AZURE_OPENAI_ENDPOINT"):
            msg = f"{name}: no endpoint: pass base_url='https://NAME.openai.azure.com' or set AZURE_OPENAI_ENDPOINT."
            raise UsageError(msg)
        if not self._api_version and not os.environ.get("OPENAI_API_VERSION"):
            msg = f"{name}: no API version: pass api_version= or set OPENAI_API_VERSION."
            raise UsageError(msg)

    def _options(self) -> ClientOptions:
        return ClientOptions(self._api_key, self._base_url, self._azure, self._api_version, self._own)

    def _maker(self) -> Callable[[], AsyncOpenAI | WireClient]:
        """A function that makes a client. It does not hold the model, so that a model that is no longer used is freed at once."""
        options = self._options()
        limits, who, is_wired, ask = self._limits, repr(self), self._is_wired, partial(type(self)._least, self.model)
        makers: list[WireMaker] = []

        def make() -> AsyncOpenAI | WireClient:
            import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

            from .wire.environment import environment_proxy, is_supported  # noqa: PLC0415 -- as above
            from .wire.opening import WireMaker  # noqa: PLC0415

            options.check(who)
            if not is_supported(environment_proxy(options.address)) or not is_wired:
                # The library's own wrapper of the HTTP client closes itself on whatever loop happens to run when it is collected; this one does not.
                return options.client(openai.DefaultAsyncHttpxClient())
            if not makers:
                makers.append(WireMaker(options, *limits))
            return makers[0].make(who, ask)

        return make


def _check_address(name: str, base_url: str | None) -> None:
    try:
        parts = urlsplit(base_url or "")
    except ValueError as problem:
        msg = f"{name}: base_url= is no address: {problem}. Give one such as 'https://api.openai.com/v1'."
        raise UsageError(msg) from None  # what it says is not shown: it may have a password in it
    try:
        _ = parts.port
    except ValueError:
        msg = f"{name}: base_url= is no address: its port is no number up to 65535. Give one such as 'https://api.openai.com/v1'."
        raise UsageError(msg) from None


def _check_own_headers(name: str, headers: Mapping[str, str] | None) -> None:
    try:
        check_headers(name, headers or {})
    except ModelError as problem:
        raise UsageError(str(problem)) from None


async def _import_them() -> None:
    """Import the client and the wire in a thread of their own: that takes half a second, for which nothing else on the loop should have to wait."""
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
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, problem)

    threading.Thread(target=work, name="understudy-import", daemon=True).start()
    problem = await imported
    if problem is not None:
        raise problem


def _without_secrets(url: str | None) -> str:
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
