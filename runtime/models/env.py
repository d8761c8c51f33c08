"""The model that the environment names.

Owns: which variables are read, and what they mean. The process's own environment wins over a `.env` file, and is never changed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..errors import UsageError
from .openai_chat import OpenAIChatModel
from .protocol import ChatModel

__all__ = ["environment", "model_from_env"]

_ARK_BASE_URL: Final = "https://ark.cn-beijing.volces.com/api/v3/"
_TRUE: Final = frozenset(("1", "true", "yes", "on"))
_FALSE: Final = frozenset(("", "0", "false", "no", "off"))
_ADVICE: Final = (
    "Set OPENAI_API_KEY and OPENAI_MODEL (and OPENAI_BASE_URL for another provider), or ARK_API_KEY and ARK_CHAT_MODEL, in the environment or in a .env file"
)


def environment() -> dict[str, str]:
    """The environment, and what the nearest `.env` in the current folder or one of its parents adds to it."""
    here = Path.cwd()
    file = next((path for folder in (here, *here.parents) if (path := folder / ".env").is_file()), None)
    if file is None:
        return dict(os.environ)
    import dotenv  # noqa: PLC0415 -- only who has such a file needs it

    return {**{name: value for name, value in dotenv.dotenv_values(file).items() if value is not None}, **os.environ}


def model_from_env() -> ChatModel:
    """The model of OPENAI_API_KEY, OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_BY_AZURE, or else of ARK_API_KEY, ARK_CHAT_MODEL and ARK_BASE_URL.

    The variables may stand in a `.env` file in the current folder or one of its parents. MODEL_TYPE, `openai` or `ark`, says which is meant if both are set.
    """
    values = {name: value.strip() for name, value in environment().items()}
    wanted = values.get("MODEL_TYPE", "").lower()
    if wanted not in {"", "openai", "ark"}:
        msg = f"MODEL_TYPE={wanted!r} is unknown; set it to 'openai' or 'ark', or leave it out."
        raise UsageError(msg)
    if wanted:
        return _MAKERS[wanted](values)
    for name, (key, model) in _NEEDED.items():
        if values.get(key) and values.get(model):
            return _MAKERS[name](values)
    for name, needed in _NEEDED.items():
        if any(values.get(variable) for variable in needed):
            return _MAKERS[name](values)  # which says what is missing
    msg = f"No model: neither OpenAI's variables nor Ark's are set. {_ADVICE}."
    raise UsageError(msg)


def _openai(values: Mapping[str, str]) -> ChatModel:
    key, model = _required(values, "openai")
    by_azure = values.get("OPENAI_BY_AZURE", "").lower()
    if by_azure not in _TRUE | _FALSE:
        msg = f"OPENAI_BY_AZURE={by_azure!r} is neither true nor false."
        raise UsageError(msg)
    azure = by_azure in _TRUE
    version = values.get("OPENAI_API_VERSION") or values.get("AZURE_OPENAI_API_VERSION") or None
    base_url = values.get("OPENAI_BASE_URL") or (values.get("AZURE_OPENAI_ENDPOINT") if azure else None)
    return OpenAIChatModel(model, api_key=key, base_url=base_url or None, azure=azure, api_version=version if azure else None)


def _ark(values: Mapping[str, str]) -> ChatModel:
    key, model = _required(values, "ark")
    return OpenAIChatModel(model, api_key=key, base_url=values.get("ARK_BASE_URL") or _ARK_BASE_URL)


_MAKERS: Final = {"openai": _openai, "ark": _ark}
_NEEDED: Final = {"openai": ("OPENAI_API_KEY", "OPENAI_MODEL"), "ark": ("ARK_API_KEY", "ARK_CHAT_MODEL")}


def _required(values: Mapping[str, str], which: str) -> tuple[str, str]:
    key, model = _NEEDED[which]
    missing = [name for name in (key, model) if not values.get(name)]
    if missing:
        msg = f"No model: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set. {_ADVICE}."
        raise UsageError(msg)
    return values[key], values[model]
