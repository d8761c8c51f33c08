"""The provider's settings of a model, as the arguments of an `openai` client.

The key is never shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from ...errors import ModelError, UsageError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["ApiKey", "ClientOptions", "check_headers", "check_value", "without_keys"]


_FIRST: Final = " "
_LAST: Final = "~"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEYS: Final = frozenset(("authorization", "api-key"))
_SHORTEST_KEY: Final = 8
"""A shorter value is not a key, but a placeholder for servers without keys.

It may also be a part of any word.
"""


def check_headers(who: str, headers: Mapping[str, str]) -> None:
    """Raise ModelError if one of them cannot be sent."""
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = f"{who}: {name!r} is not a valid header name. Check default_headers."
            raise ModelError(msg, kind="bad_request")
        is_key = name.lower() in _KEYS
        check_value(who, "the key" if is_key else f"the header {name!r}", value, is_key=is_key)


def check_value(who: str, what: str, value: str, *, is_key: bool) -> None:
    """Raise ModelError if a header cannot hold that: only printable ASCII is allowed."""
    if not isinstance(value, str):
        msg = (
            f"{who}: {what} must be a string, got a {type(value).__name__}. "
            f"{'Check the key.' if is_key else 'Check default_headers.'}"
        )
        raise ModelError(msg, kind="auth" if is_key else "bad_request")
    wrong = next((char for char in value if not _FIRST <= char <= _LAST and char != "\t"), None)
    if wrong is None and value == value.strip():
        return
    has = (
        "a blank at one of its ends"
        if wrong is None
        else "a line break in it"
        if wrong in "\r\n"
        else f"the character {wrong!r} in it"
    )
    advice = (
        "Check the key: api_key=, or OPENAI_API_KEY; one that was read from a file may need "
        ".strip()."
        if is_key
        else "Check default_headers=."
    )
    msg = f"{who}: {what} has {has}, which a header cannot contain. {advice}"
    raise ModelError(msg, kind="auth" if is_key else "bad_request")


def without_keys(data: bytes, headers: Mapping[str, str]) -> bytes:
    """Return a server's message without the key: some servers repeat it when they refuse it."""
    for name, value in headers.items():
        key = value.rpartition(" ")[2]
        if name.lower() in _KEYS and len(key) >= _SHORTEST_KEY:
            data = data.replace(key.encode(), b"***")
    return data


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
