"""What a model's caller has said about the provider, as the arguments of an `openai` client.

Owns: which of the library's clients that is, and where the environment has the last word. It must never show the key.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from .header_values import check_value

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["ApiKey", "ClientOptions"]

ApiKey: TypeAlias = str | Callable[[], Awaitable[str]]
"""A key, or an `async def` that returns the one of the moment."""


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The arguments that all clients of one model are made with."""

    api_key: ApiKey | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    azure: bool = False
    api_version: str | None = None
    more: Mapping[str, object] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """Where requests go, but for their path."""
        return self.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT" if self.azure else "OPENAI_BASE_URL") or "https://api.openai.com/v1"

    def check(self, who: str) -> None:
        """Raise, if there is a key that no header can hold: the libraries show it in what they raise."""
        names = ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY") if self.azure else ("OPENAI_API_KEY",)
        for key in (self.api_key,) if self.api_key is not None else map(os.environ.get, names):
            if isinstance(key, str):
                check_value(who, "the key", key, is_key=True)

    def client(self, http: object, key: ApiKey | None = None) -> AsyncOpenAI:
        """A client around that HTTP client; with another key, if one is given."""
        import openai  # noqa: PLC0415 -- takes most of a second, and only who asks a model needs it

        key, base_url = key or self.api_key, self.base_url
        options: Any = {"max_retries": 0, "http_client": http, **self.more}
        if not self.azure:
            return openai.AsyncOpenAI(api_key=key, base_url=base_url, **options)
        if key is None and "AZURE_OPENAI_API_KEY" not in os.environ and "AZURE_OPENAI_AD_TOKEN" not in os.environ:
            key = os.environ.get("OPENAI_API_KEY")
        options |= {"api_version": self.api_version, "api_key": key}
        if base_url is None:
            return openai.AsyncAzureOpenAI(**options)
        # With the plain address of the resource the client finds the deployment by the model's name; a longer one is taken as it is.
        if urlsplit(base_url).path.strip("/"):
            return openai.AsyncAzureOpenAI(base_url=base_url, **options)
        return openai.AsyncAzureOpenAI(azure_endpoint=base_url, **options)
