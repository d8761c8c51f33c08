"""OpenAI's chat completions, which most providers speak.

Owns: `OpenAIChatCompletionsModel`. The calls are those of understudy's own `OpenAIChatModel`. It must never speak to a provider itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....runtime.models.openai_chat import OpenAIChatModel
from ..items import ModelResponse
from ..retry import ModelRetryAdvice, ModelRetryAdviceRequest
from .error_facts import header_seconds
from .understudy_model import UnderstudyModel

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIChatCompletionsModel"]


class OpenAIChatCompletionsModel(UnderstudyModel):
    """A model behind OpenAI's chat completions, or another provider's that speaks them."""

    def __init__(self, model: str, openai_client: AsyncOpenAI | None = None, **options: Any) -> None:
        super().__init__(OpenAIChatModel(model, client=openai_client) if openai_client is not None else OpenAIChatModel(model))
        if options.pop("strict_feature_validation", False) not in (True, False) or options:
            msg = f"OpenAIChatCompletionsModel: unknown options {', '.join(sorted(options))}"
            raise TypeError(msg)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        wait = header_seconds(request.error.__cause__ or request.error)
        return None if wait is None else ModelRetryAdvice(retry_after=wait)

    async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
        return await super().get_response(*args, **named)
