"""Models configured by environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypedDict, overload

from ..environment import environment, refuse_mixed
from ..errors import UsageError
from .openai_chat import OpenAIChatModel
from .openai_embedding import EmbeddingModel, OpenAIEmbeddingModel
from .protocol import ChatModel

__all__ = ["model_from_env", "model_named"]

_ARK_BASE_URL: Final = "https://ark.cn-beijing.volces.com/api/v3/"
_TRUE: Final = frozenset(("1", "true", "yes", "on"))
_FALSE: Final = frozenset(("", "0", "false", "no", "off"))
_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "chat": MappingProxyType({"openai": "OPENAI_MODEL", "ark": "ARK_CHAT_MODEL"}),
        "embedding": MappingProxyType(
            {"openai": "OPENAI_EMBEDDING_MODEL", "ark": "ARK_EMBEDDING_MODEL"}
        ),
    }
)
_ADDRESSES: Final = {
    "openai": ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
    "ark": ("ARK_BASE_URL",),
}
_KEYS: Final = {"openai": "OPENAI_API_KEY", "ark": "ARK_API_KEY"}


@overload
def model_from_env(kind: Literal["chat"] = "chat") -> ChatModel: ...
@overload
def model_from_env(kind: Literal["embedding"]) -> EmbeddingModel: ...
def model_from_env(kind: Literal["chat", "embedding"] = "chat") -> ChatModel | EmbeddingModel:
    """Make the model of OPENAI_API_KEY, OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_BY_AZURE, or else
    of ARK_API_KEY, ARK_CHAT_MODEL and ARK_BASE_URL.

    With `kind="embedding"`, the model's name comes from OPENAI_EMBEDDING_MODEL or
    ARK_EMBEDDING_MODEL. The variables may be set in a `.env` file in the current folder or one of
    its parents. If both providers are configured, MODEL_TYPE must be `openai` or `ark`.
    """
    if kind not in _NAMES:
        msg = f"model_from_env: kind must be 'chat' or 'embedding', got {kind!r}."
        raise UsageError(msg)
    found = environment()
    values = {name: value.strip() for name, value in found.items()}
    provider = _provider(values, _NAMES[kind])
    names = (_KEYS[provider], _NAMES[kind][provider])
    missing = [name for name in names if not values.get(name)]
    if missing:
        msg = (
            f"No model: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set. "
            f"{_advice(_NAMES[kind])}."
        )
        raise UsageError(msg)
    for address in _ADDRESSES[provider]:
        refuse_mixed(found, address, (_KEYS[provider],))
    access = _openai(values) if provider == "openai" else _ark(values)
    model = values[names[1]]
    return (
        OpenAIEmbeddingModel(model, **access)
        if kind == "embedding"
        else OpenAIChatModel(model, **access)
    )


def model_named(name: str) -> ChatModel:
    """Make the model of that name behind OpenAI's API.

    Without a key in the environment, the key and the address come from a `.env` file that has a
    key.
    """
    values = {} if os.environ.get("OPENAI_API_KEY") else environment()
    if not values.get("OPENAI_API_KEY", "").strip():
        return OpenAIChatModel(name)
    return OpenAIChatModel(name, **_openai({key: value.strip() for key, value in values.items()}))


def _provider(values: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return the provider that MODEL_TYPE names.

    Without it, the only one that is configured completely, or the first that is configured at all.
    """
    wanted = values.get("MODEL_TYPE", "").lower()
    if wanted not in {"", *_KEYS}:
        msg = f"MODEL_TYPE must be 'openai' or 'ark', or unset, got {wanted!r}."
        raise UsageError(msg)
    if wanted:
        return wanted
    given = {
        provider: [bool(values.get(variable)) for variable in (key, names[provider])]
        for provider, key in _KEYS.items()
    }
    for enough in (all, any):
        chosen = [provider for provider, there in given.items() if enough(there)]
        if enough is all and len(chosen) > 1:
            msg = (
                f"The environment has models of {' and '.join(chosen)}, and MODEL_TYPE is not "
                f"set. Set it to one of {', '.join(map(repr, chosen))}."
            )
            raise UsageError(msg)
        if chosen:
            return chosen[0]
    msg = f"No model: neither OpenAI's variables nor Ark's are set. {_advice(names)}."
    raise UsageError(msg)


def _advice(names: Mapping[str, str]) -> str:
    openai = f"Set OPENAI_API_KEY and {names['openai']} (and OPENAI_BASE_URL for another provider)"
    return f"{openai}, or ARK_API_KEY and {names['ark']}, in the environment or in a .env file"


class _Access(TypedDict, total=False):
    api_key: str
    base_url: str | None
    azure: bool
    api_version: str | None


def _openai(values: Mapping[str, str]) -> _Access:
    by_azure = values.get("OPENAI_BY_AZURE", "").lower()
    if by_azure not in _TRUE | _FALSE:
        msg = f"OPENAI_BY_AZURE must be true or false, got {by_azure!r}."
        raise UsageError(msg)
    azure = by_azure in _TRUE
    version = values.get("OPENAI_API_VERSION") or values.get("AZURE_OPENAI_API_VERSION") or None
    base_url = values.get("OPENAI_BASE_URL") or (
        values.get("AZURE_OPENAI_ENDPOINT") if azure else None
    )
    return {
        "api_key": values["OPENAI_API_KEY"],
        "base_url": base_url or None,
        "azure": azure,
        "api_version": version if azure else None,
    }


def _ark(values: Mapping[str, str]) -> _Access:
    return {
        "api_key": values["ARK_API_KEY"],
        "base_url": values.get("ARK_BASE_URL") or _ARK_BASE_URL,
    }
