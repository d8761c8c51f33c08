"""What the two models of OpenAI's APIs have in common: how they are made, and their client.

Owns: the checks of the constructor, and the client. `openai` is imported when a client is first needed, never before.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Final, Unpack
from urllib.parse import urlsplit

from ..errors import UsageError
from .loop_clients import LoopClients
from .protocol import ModelSettings, SettingsFields, settings_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIModel"]

_SETTINGS: Final = tuple(field.name for field in fields(ModelSettings))


class OpenAIModel:
    """The base of `OpenAIChatModel` and `OpenAIResponsesModel`; it asks nothing by itself."""

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: AsyncOpenAI | None = None,
        azure: bool = False,
        api_version: str | None = None,
        **settings: Unpack[SettingsFields],
    ) -> None:
        name = type(self).__name__
        model = model if model is not None else os.environ.get("OPENAI_MODEL")
        if not isinstance(model, str) or not model.strip():
            msg = f"{name}: no model: pass its name, as in {name}('gpt-4o'), or set OPENAI_MODEL."
            raise UsageError(msg)
        unknown = sorted(set(settings) - set(_SETTINGS))
        if unknown:
            msg = f"{name}: unknown setting {', '.join(unknown)}. Known are {', '.join(_SETTINGS)}; what else the provider takes goes into extra={{...}}."
            raise UsageError(msg)
        if client is not None and (api_key is not None or base_url is not None or azure or api_version is not None):
            msg = f"{name}: client= brings its own key and address; leave out api_key=, base_url=, azure= and api_version=."
            raise UsageError(msg)
        if api_version is not None and not azure:
            msg = f"{name}: api_version={api_version!r} is Azure's; pass azure=True, too, or leave it out."
            raise UsageError(msg)
        self.model = model
        self.settings = settings_of(settings)
        self._api_key = api_key
        self._base_url = base_url
        self._azure = azure
        self._api_version = api_version
        self._client = client
        if client is None:
            self._check_access(name)
        self._clients: LoopClients[AsyncOpenAI] = LoopClients(self._maker())

    def __repr__(self) -> str:
        address = f", base_url={_without_secrets(self._base_url)!r}" if self._base_url else ""
        return f"{type(self).__name__}({self.model!r}{address}{', azure=True' if self._azure else ''}{', client=...' if self._client is not None else ''})"

    async def aclose(self) -> None:
        """Close the connections of this model on the running loop. It may be used again. A client that was passed in is left alone."""
        await self._clients.aclose()

    async def _get_client(self) -> AsyncOpenAI:
        if self._client is not None:
            return self._client
        if not hasattr(sys.modules.get("openai"), "AsyncOpenAI"):
            await _import_client()
        return await self._clients.get()

    def _check_access(self, name: str) -> None:
        keys = ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN") if self._azure else ("OPENAI_API_KEY",)
        if not self._api_key and not any(os.environ.get(key) for key in keys):
            msg = f"{name}: no key: pass api_key= or set {keys[0]}. A key in a .env file is read by model_from_env()."
            raise UsageError(msg)
        if not self._azure:
            return
        if not self._base_url and not os.environ.get("AZURE_OPENAI_ENDPOINT"):
            msg = f"{name}: no endpoint: pass base_url='https://NAME.openai.azure.com' or set AZURE_OPENAI_ENDPOINT."
            raise UsageError(msg)
        if not self._api_version and not os.environ.get("OPENAI_API_VERSION"):
            msg = f"{name}: no API version: pass api_version= or set OPENAI_API_VERSION."
            raise UsageError(msg)

    def _maker(self) -> Callable[[], AsyncOpenAI]:
        """A function that makes a client. It does not hold the model, so that a model that is no longer used is freed at once."""
        key, base_url, azure, version = self._api_key, self._base_url, self._azure, self._api_version

        def make() -> AsyncOpenAI:
            import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

            # The library's own wrapper of the HTTP client closes itself on whatever loop happens to run when it is collected; this one does not.
            http = openai.DefaultAsyncHttpxClient()
            if not azure:
                return openai.AsyncOpenAI(api_key=key, base_url=base_url, max_retries=0, http_client=http)
            own_key = key
            if key is None and "AZURE_OPENAI_API_KEY" not in os.environ and "AZURE_OPENAI_AD_TOKEN" not in os.environ:
                own_key = os.environ.get("OPENAI_API_KEY")
            if base_url is None:
                return openai.AsyncAzureOpenAI(api_version=version, api_key=own_key, max_retries=0, http_client=http)
            # With the plain address of the resource the client finds the deployment by the model's name; a longer one is taken as it is.
            if urlsplit(base_url).path.strip("/"):
                return openai.AsyncAzureOpenAI(base_url=base_url, api_version=version, api_key=own_key, max_retries=0, http_client=http)
            return openai.AsyncAzureOpenAI(azure_endpoint=base_url, api_version=version, api_key=own_key, max_retries=0, http_client=http)

        return make


async def _import_client() -> None:
    """Import the client in a thread of its own: it takes half a second, for which nobody else on the loop should have to wait."""
    loop = asyncio.get_running_loop()
    imported: asyncio.Future[BaseException | None] = loop.create_future()

    def tell(problem: BaseException | None) -> None:
        if not imported.done():
            imported.set_result(problem)

    def work() -> None:
        problem: BaseException | None = None
        try:
            importlib.import_module("openai")
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
