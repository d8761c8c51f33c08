"""What a model is to the SDK.

Owns: the interface. It must never call one.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..agent_output import AgentOutputSchemaBase
    from ..handoffs import Handoff
    from ..items import ModelResponse, TResponseInputItem, TResponseStreamEvent
    from ..model_settings import ModelSettings
    from ..retry import ModelRetryAdvice, ModelRetryAdviceRequest
    from ..tool import Tool

__all__ = ["Model", "ModelProvider", "ModelTracing"]


class ModelTracing(enum.Enum):
    """Whether a model makes spans, and what they say."""

    DISABLED = 0
    ENABLED = 1
    ENABLED_WITHOUT_DATA = 2

    def is_disabled(self) -> bool:
        return self is ModelTracing.DISABLED

    def include_data(self) -> bool:
        return self is ModelTracing.ENABLED


class Model(abc.ABC):
    """A model. Derive yours from it, and give it to agents."""

    async def close(self) -> None:
        """Give back what the model holds."""

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """What the model knows of an error of its own."""
        return None

    @abc.abstractmethod
    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any | None,
    ) -> ModelResponse:
        """Answer."""

    @abc.abstractmethod
    def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[TResponseInputItem],
        model_settings: ModelSettings,
        tools: list[Tool],
        output_schema: AgentOutputSchemaBase | None,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any | None,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Answer, event by event; the last one has the whole response."""


class ModelProvider(abc.ABC):
    """Finds models by their names."""

    @abc.abstractmethod
    def get_model(self, model_name: str | None) -> Model:
        """The model of that name."""

    async def aclose(self) -> None:
        """Give back what the provider holds."""
