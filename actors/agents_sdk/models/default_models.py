"""The model that agents have which name none, and the settings that it needs.

Owns: the names. It must never make a model.
"""

from __future__ import annotations

import os
import re
from typing import Final, Literal

from openai.types.shared import Reasoning

from ..model_settings import ModelSettings

__all__ = ["get_default_model", "get_default_model_settings", "gpt_5_reasoning_settings_required", "is_gpt_5_default"]

_DATE: Final = r"(?:-\d{4}-\d{2}-\d{2})?"
_EFFORTS: Final[tuple[tuple[re.Pattern[str], Literal["low", "none", "medium"]], ...]] = (
    (re.compile(rf"gpt-5{_DATE}|gpt-5\.2-codex"), "low"),
    (re.compile(rf"gpt-5\.(2|4)-pro{_DATE}"), "medium"),
    (re.compile(rf"gpt-5\.(1|2|4|4-mini|4-nano|5|6|6-sol|6-terra|6-luna){_DATE}|gpt-5\.3-codex"), "none"),
)
_CHAT: Final = re.compile(r"gpt-5(\.[123])?-chat-latest")


def get_default_model() -> str:
    """The model of agents that name none: that of the environment, or the SDK's."""
    return os.environ.get("OPENAI_DEFAULT_MODEL", "gpt-5.6-luna").lower()


def gpt_5_reasoning_settings_required(model_name: str) -> bool:
    """Whether a model takes settings for its reasoning."""
    return model_name.startswith("gpt-5") and not _CHAT.fullmatch(model_name)


def is_gpt_5_default() -> bool:
    """Whether the default model does."""
    return gpt_5_reasoning_settings_required(get_default_model())


def get_default_model_settings(model: str | None = None) -> ModelSettings:
    """The settings of agents that give none."""
    name = get_default_model() if model is None else model
    if not gpt_5_reasoning_settings_required(name):
        return ModelSettings()
    effort = next((effort for pattern, effort in _EFFORTS if pattern.fullmatch(name)), None)
    return ModelSettings(verbosity="low", reasoning=None if effort is None else Reasoning(effort=effort))
