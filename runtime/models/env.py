"""The models that the environment names.

Owns: which variables are read, and what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypedDict, overload

from ..environment import environment
from ..errors import UsageError
from .openai_chat import OpenAIChatModel
from .openai_embedding import EmbeddingModel, OpenAIEmbeddingModel
from .protocol import ChatModel

__all__ = ["model_from_env"]

_ARK_BASE_URL: Final = "https://ark.cn-beijing.volces.com/api/v3/"
_TRUE: Final = frozenset(("1", "true", "yes", "on"))
_FALSE: Final = frozenset(("", "0", "false", "no", "off"))
_NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "chat": MappingProxyType({"openai": "OPENAI_MODEL", "ark": "ARK_CHAT_MODEL"}),
        "embedding": MappingProxyType({"openai": "OPENAI_EMBEDDING_MODEL", "ark": "ARK_EMBEDDING_MODEL"}),
    }
)
_KEYS: Final = {"openai": "OPENAI_API_KEY", "ark": "ARK_API_KEY"}


@overload
def model_from_env(kind: Literal["chat"] = "chat") -> ChatModel: ...
@overload
def model_from_env(kind: Literal["embedding"]) -> EmbeddingModel: ...
def model_from_env(kind: Literal["chat", "embedding"] = "chat") -> ChatModel | EmbeddingModel:
    """The model of OPENAI_API_KEY, OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_BY_AZURE, or else of ARK_API_KEY, ARK_CHAT_MODEL and ARK_BASE_URL.

    With `kind="embedding"`, OPENAI_EMBEDDING_MODEL and ARK_EMBEDDING_MODEL name it. The variables may stand in a `.env` file in the current folder or one of
    its parents. MODEL_TYPE, `openai` or `ark`, says which is meant if both are set.
    """
    if kind not in _NAMES:
        msg = f"model_from_env({kind!r}): give 'chat' or 'embedding'."
        raise UsageError(msg)
    values = {name: value.strip() for name, value in environment().items()}
    provider = _provider(values, _NAMES[kind])
    names = (_KEYS[provider], _NAMES[kind][provider])
    missing = [name for name in names if not values.get(name)]
    if missing:
        msg = f"No model: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set. {_advice(_NAMES[kind])}."
        raise UsageError(msg)
    access = _openai(values) if provider == "openai" else _ark(values)
    model = values[names[1]]
    return OpenAIEmbeddingModel(model, **access) if kind == "embedding" else OpenAIChatModel(model, **access)


def _provider(values: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Whose model it is: the one that MODEL_TYPE says; or else the first of which all is set, or of which anything is."""
    wanted = values.get("MODEL_TYPE", "").lower()
    if wanted not in {"", *_KEYS}:
        msg = f"MODEL_TYPE={wanted!r} is unknown; set it to 'openai' or 'ark', or leave it out."
        raise UsageError(msg)
    if wanted:
        return wanted
    given = {provider: [bool(values.get(variable)) for variable in (key, names[provider])] for provider, key in _KEYS.items()}
    for enough in (all, any):
        for provider, there in given.items():
            if enough(there):
                return provider
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
        msg = f"OPENAI_BY_AZURE={by_azure!r} is neither true nor false."
        raise UsageError(msg)
    azure = by_azure in _TRUE
    version = values.get("OPENAI_API_VERSION") or values.get("AZURE_OPENAI_API_VERSION") or None
    base_url = values.get("OPENAI_BASE_URL") or (values.get("AZURE_OPENAI_ENDPOINT") if azure else None)
    return {"api_key": values["OPENAI_API_KEY"], "base_url": base_url or None, "azure": azure, "api_version": version if azure else None}


def _ark(values: Mapping[str, str]) -> _Access:
    return {"api_key": values["ARK_API_KEY"], "base_url": values.get("ARK_BASE_URL") or _ARK_BASE_URL}
