"""What a chat model is: the one thing that an agent needs of it, as a protocol, and what is asked of it, as data.

Owns: the protocol, the request and its settings. Nothing here knows a provider.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from ..data.chat import Message, MessageDelta
from ..errors import ModelRetry
from ..quick_init import quick

__all__ = ["ChatModel", "ModelRequest", "ModelSettings", "OutputSchema", "StreamItem", "StreamingModel", "ToolChoice", "ToolSpec"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool, as the model is told of it: `parameters` is a JSON schema."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = True


ToolChoice: TypeAlias = str
"""`"auto"`, `"none"`, `"required"`, or the name of the one tool that is to be called."""


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The form that the model's answer must have: a JSON schema under a name."""

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What may be asked of a model beside the messages. What is None is left to the provider; `extra` goes into the request as it is."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    parallel_tool_calls: bool | None = None
    tool_choice: ToolChoice | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    timeout: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def merged(self, other: ModelSettings | None) -> ModelSettings:
        """These, with what the other says in place of what they say."""
        if other is None:
            return self
        changes: dict[str, Any] = {item.name: value for item in fields(other) if (value := getattr(other, item.name)) is not None and item.name != "extra"}
        if other.extra:
            changes["extra"] = {**self.extra, **other.extra}
        return replace(self, **changes) if changes else self


_DEFAULT_SETTINGS = ModelSettings()


@quick
@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call of a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice | None = None
    settings: ModelSettings = _DEFAULT_SETTINGS
    output_schema: OutputSchema | None = None


StreamItem: TypeAlias = MessageDelta | Message | ModelRetry


@runtime_checkable
class ChatModel(Protocol):
    """Anything with this method is a model: it may serve any number of calls at once.

    A model that can stream has `def stream(self, request) -> AsyncIterator[MessageDelta | Message]` beside it, whose last item is the whole `Message`; a
    `ModelRetry` among the items says that what came before is void. Without it, `generate` answers streaming runs, too.
    """

    async def generate(self, request: ModelRequest) -> Message: ...


class StreamingModel(ChatModel, Protocol):
    """A model that can stream."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]: ...
