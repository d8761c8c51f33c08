"""OpenAI's chat completions, which most providers speak.

Owns: `OpenAIChatCompletionsModel`. The calls are those of understudy's own `OpenAIChatModel`. It must never speak to a provider itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....runtime.models.openai_chat import OpenAIChatModel
from ..items import ModelResponse
from ..missing import refuse
from ..retry import ModelRetryAdvice, ModelRetryAdviceRequest
from .error_facts import header_seconds
from .understudy_model import UnderstudyModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIChatCompletionsModel"]


class OpenAIChatCompletionsModel(UnderstudyModel):
    """A model behind OpenAI's chat completions, or another provider's that speaks them."""

    def __init__(
        self,
        model: str,
        openai_client: AsyncOpenAI | None = None,
        should_replay_reasoning_content: Any = None,
        strict_feature_validation: bool = False,
        buffer_streamed_tool_calls: bool = False,
    ) -> None:
        """Make one.

        `strict_feature_validation` and `buffer_streamed_tool_calls` change nothing: what these calls cannot say is always refused, and a call of a tool is
        always shown when it is complete.
        """
        if should_replay_reasoning_content is not None:
            refuse("OpenAIChatCompletionsModel(should_replay_reasoning_content=...)", "leave it out")
        for name, value in (("strict_feature_validation", strict_feature_validation), ("buffer_streamed_tool_calls", buffer_streamed_tool_calls)):
            if not isinstance(value, bool):
                msg = f"OpenAIChatCompletionsModel: {name} must be True or False, got {value!r}"
                raise TypeError(msg)
        super().__init__(OpenAIChatModel(model, client=openai_client) if openai_client is not None else OpenAIChatModel(model))

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        wait = header_seconds(request.error.__cause__ or request.error)
        return None if wait is None else ModelRetryAdvice(retry_after=wait)

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        return await super().get_response(*args, **named)
