"""The provider's settings of a model, as the arguments of an `openai` client.

The key is never shown.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from ...errors import UsageError
from .header_values import check_value

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["ApiKey", "ClientOptions"]

ApiKey: TypeAlias = str | Callable[[], Awaitable[str]]
"""A key, or an `async def` that returns the current one."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The arguments of all clients of one model."""

    api_key: ApiKey | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    azure: bool = False
    api_version: str | None = None
    more: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """The base address of requests."""
        return (
            self.base_url
            or os.environ.get("AZURE_OPENAI_ENDPOINT" if self.azure else "OPENAI_BASE_URL")
            or "https://api.openai.com/v1"
        )

    def check_access(self, name: str) -> None:
        """Raise UsageError if a setting for calls is missing.

        Checked at the first call, not when the model is made.
        """
        keys = (
            ("AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN")
            if self.azure
            else ("OPENAI_API_KEY",)
        )
        if not self.api_key and not any(os.environ.get(key) for key in keys):
            msg = (
                f"{name}: the API key is missing. Pass api_key=, or set {keys[0]}. A key "
                "in a .env file is read by model_from_env() and by an agent's "
                "model='NAME'."
            )
            raise UsageError(msg)
        if self.azure and not self.base_url and not os.environ.get("AZURE_OPENAI_ENDPOINT"):
            msg = (
                f"{name}: the endpoint is missing. Pass "
                "base_url='https://NAME.openai.azure.com', or set AZURE_OPENAI_ENDPOINT."
            )
            raise UsageError(msg)
        if self.azure and not self.api_version and not os.environ.get("OPENAI_API_VERSION"):
            msg = (
                f"{name}: the API version is missing. Pass api_version=, or set OPENAI_API_VERSION."
            )
            raise UsageError(msg)

    def check(self, who: str) -> None:
        """Raise if a header cannot hold the key: the libraries would show it in their errors."""
        names = (
            ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY")
            if self.azure
            else ("OPENAI_API_KEY",)
        )
        for key in (self.api_key,) if self.api_key is not None else map(os.environ.get, names):
            if isinstance(key, str):
                check_value(who, "the key", key, is_key=True)

    def client(self, http: object, key: ApiKey | None = None) -> AsyncOpenAI:
        """Return a client around that HTTP client; with another key, if passed."""
        import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

        key, base_url = key or self.api_key, self.base_url
        options: Any = {"max_retries": 0, "http_client": http, **self.more}
        if not self.azure:
            return openai.AsyncOpenAI(api_key=key, base_url=base_url, **options)
        if (
            key is None
            and "AZURE_OPENAI_API_KEY" not in os.environ
            and "AZURE_OPENAI_AD_TOKEN" not in os.environ
        ):
            key = os.environ.get("OPENAI_API_KEY")
        options |= {"api_version": self.api_version, "api_key": key}
        if base_url is None:
            return openai.AsyncAzureOpenAI(**options)
        # With the plain address of the resource, the client finds the deployment by the model's
        # name; a longer one is used unchanged.
        if urlsplit(base_url).path.strip("/"):
            return openai.AsyncAzureOpenAI(base_url=base_url, **options)
        return openai.AsyncAzureOpenAI(azure_endpoint=base_url, **options)
