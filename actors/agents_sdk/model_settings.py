"""The settings of a model's call.

Owns: their names, and how one set goes before another. It must never name one that no model has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from openai.types.responses.response_create_params import ContextManagement
from openai.types.shared import Reasoning
from pydantic import BaseModel

from .coercion import check_keys
from .retry import ModelRetryBackoffSettings, ModelRetrySettings

__all__ = ["MCPToolChoice", "ModelSettings", "ToolChoice", "as_model_settings"]


@dataclass
class MCPToolChoice:
    """A tool of an MCP server that the model has to call."""

    server_label: str
    name: str


ToolChoice: TypeAlias = Literal["auto", "required", "none"] | str | MCPToolChoice | None


@dataclass
class ModelSettings:
    """The settings of a model's call. None leaves it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    max_tokens: int | None = None
    reasoning: Reasoning | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    include_usage: bool | None = None
    response_include: list[Any] | None = None
    top_logprobs: int | None = None
    extra_query: Any | None = None
    extra_body: Any | None = None
    extra_headers: Mapping[str, Any] | None = None
    extra_args: dict[str, Any] | None = None
    retry: ModelRetrySettings | None = None
    context_management: list[Any] | None = None
    prompt_cache_options: Any | None = None
    preserve_raw_usage: bool | None = None
    timeout: float | None = None
    """Seconds that one attempt may take."""

    def __post_init__(self) -> None:
        given: Any = self.reasoning
        if isinstance(given, dict):
            self.reasoning = Reasoning(**given)
        given = self.retry
        if isinstance(given, dict):
            self.retry = ModelRetrySettings(**given)
        given = self.tool_choice
        if isinstance(given, dict):
            self.tool_choice = MCPToolChoice(**given)
        if self.timeout is not None and (isinstance(self.timeout, bool) or not math.isfinite(self.timeout) or self.timeout <= 0):
            msg = f"ModelSettings timeout must be a finite number greater than 0, got {self.timeout!r}"
            raise ValueError(msg)

    def resolve(self, override: ModelSettings | dict[str, Any] | None) -> ModelSettings:
        """These settings, with all that the other one says in their place."""
        if override is None:
            return self
        other = as_model_settings(override, "ModelSettings override")
        names = set(override) if isinstance(override, dict) else {field.name for field in fields(self)}
        changes = {name: value for name in names if (value := getattr(other, name, None)) is not None}
        if self.extra_args and "extra_args" in names:
            changes["extra_args"] = {**self.extra_args, **(other.extra_args or {})} or None
        if self.retry is not None and changes.get("retry") is not None:
            changes["retry"] = self.retry.resolve(changes["retry"])
        return replace(self, **changes) if changes else self

    def to_json_dict(self) -> dict[str, Any]:
        """The same as JSON."""
        return {field.name: _json(getattr(self, field.name)) for field in fields(self)}

    def to_traceable_dict(self) -> dict[str, Any]:
        """What of it a trace may show."""
        shown = self.to_json_dict()
        return {name: value for name, value in shown.items() if name not in _UNTRACED}


_UNTRACED: Final = frozenset(("extra_query", "extra_body", "extra_headers", "extra_args", "preserve_raw_usage"))


def _json(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if hasattr(value, "to_json_dict"):
        return value.to_json_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return {key: _json(one) for key, one in value.items()}
    return [_json(one) for one in value] if isinstance(value, list | tuple) else value


def as_model_settings(value: Any, what: str) -> ModelSettings:
    """The settings of a dict, checked; or what was given, if they are settings."""
    if isinstance(value, ModelSettings):
        return value
    if not isinstance(value, dict):
        msg = f"{what} must be a ModelSettings instance or a dict, got {type(value).__name__}"
        raise TypeError(msg)
    names = {field.name for field in fields(ModelSettings)}
    if unknown := sorted(str(name) for name in value if name not in names):
        msg = f"Unknown model settings: {', '.join(unknown)}"
        raise TypeError(msg)
    check_keys(value.get("tool_choice"), {"server_label", "name"}, "tool_choice")
    retry = value.get("retry")
    check_keys(retry, {field.name for field in fields(ModelRetrySettings)}, "retry")
    if isinstance(retry, dict):
        check_keys(retry.get("backoff"), {field.name for field in fields(ModelRetryBackoffSettings)}, "retry.backoff")
    for index, one in enumerate(value.get("context_management") or ()):
        check_keys(one, set(ContextManagement.__annotations__), f"context_management[{index}]")
    check_keys(value.get("prompt_cache_options"), {"mode", "ttl"}, "prompt_cache_options")
    return ModelSettings(**value)
