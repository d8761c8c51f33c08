"""The protocol of a chat model, its request, and its settings, independent of any provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol, TypeAlias, TypedDict, cast, runtime_checkable

import msgspec

from ..data.chat import Message, MessageDelta
from ..data.value import Value
from ..errors import ModelRetry
from ..option_names import suggests_options

__all__ = [
    "ChatModel",
    "ModelRequest",
    "ModelSettings",
    "OutputSchema",
    "PlainSettings",
    "SettingsFields",
    "StreamItem",
    "StreamingModel",
    "ToolChoice",
    "ToolSpec",
    "settings_of",
]


class ToolSpec(Value, frozen=True):
    """A tool, as described to the model: `parameters` is a JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, object] = msgspec.field(default_factory=dict)
    strict: bool = True


ToolChoice: TypeAlias = str
"""`"auto"`, `"none"`, `"required"`, or the name of the one tool that must be called."""

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class OutputSchema(Value, frozen=True):
    """The form that the model's answer must have: a JSON schema under a name."""

    name: str
    schema: Mapping[str, object]
    strict: bool = True


@suggests_options
@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The settings of a model call.

    The provider chooses the value of a setting that is None; `extra` is added to the request
    unchanged.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: ToolChoice | None = None
    reasoning_effort: ReasoningEffort | None = None
    timeout: float | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def merged(self, other: ModelSettings | None) -> ModelSettings:
        """Return these settings, overridden by those that the other sets."""
        if other is None:
            return self
        changes = cast(
            "_PlainFields",
            {name: value for name in _PLAIN if (value := getattr(other, name)) is not None},
        )
        if not changes and other.stop is None and not other.extra:
            return self
        stop = self.stop if other.stop is None else other.stop
        extra = {**self.extra, **other.extra} if other.extra else self.extra
        return replace(self, **changes, stop=stop, extra=extra)


_PLAIN = tuple(item.name for item in fields(ModelSettings) if item.name not in {"stop", "extra"})


class _PlainFields(TypedDict, total=False):
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    seed: int | None
    presence_penalty: float | None
    frequency_penalty: float | None
    parallel_tool_calls: bool | None
    tool_choice: ToolChoice | None
    reasoning_effort: ReasoningEffort | None
    timeout: float | None


class PlainSettings(_PlainFields, total=False):
    """The fields of `ModelSettings`, with the same types."""

    stop: str | tuple[str, ...] | None
    extra: Mapping[str, object]


class SettingsFields(_PlainFields, total=False):
    """The fields of `ModelSettings`, as keyword arguments of functions that make one.

    Here, `stop` may also be a list.
    """

    stop: str | tuple[str, ...] | list[str] | None
    extra: Mapping[str, object]


def settings_of(keywords: SettingsFields) -> ModelSettings:
    """Make the settings from keyword arguments."""
    stop, extra = keywords.pop("stop", None), keywords.pop("extra", None)
    return _settings(
        keywords, tuple(stop) if isinstance(stop, list) else stop, {} if extra is None else extra
    )


def _settings(
    plain: _PlainFields, stop: str | tuple[str, ...] | None, extra: Mapping[str, object]
) -> ModelSettings:
    return ModelSettings(**plain, stop=stop, extra=extra)


_DEFAULT_SETTINGS = ModelSettings()


class ModelRequest(Value, frozen=True):
    """One call of a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    settings: ModelSettings = _DEFAULT_SETTINGS
    output_schema: OutputSchema | None = None


StreamItem: TypeAlias = MessageDelta | Message | ModelRetry


@runtime_checkable
class ChatModel(Protocol):
    """Any object with this method is a model. It may have to serve any number of concurrent calls.

    A model that can stream also has `def stream(self, request) -> AsyncIterator[MessageDelta |
    Message]`, whose last item is the whole `Message`; a `ModelRetry` among the items voids the
    items before it. Without it, `generate` also answers streaming runs.
    """

    async def generate(self, request: ModelRequest) -> Message: ...


class StreamingModel(ChatModel, Protocol):
    """A model that can stream."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]: ...
