"""OpenAI's Responses API.

Owns: `OpenAIResponsesModel`: what is sent, and what comes back. It must never try again itself: the run does, and OpenAI's client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ..items import ItemHelpers, ModelResponse
from ..items.history import as_input
from ..missing import refuse
from ..model_settings import ModelSettings
from ..retry import ModelRetryAdvice, ModelRetryAdviceRequest
from ..tracing.create import response_span
from ..usage import usage_of_response
from ..version import __version__
from .attempts import client_may_retry
from .error_facts import header_seconds
from .interface import Model, ModelTracing
from .tools import tool_choice_param, tool_params

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIResponsesModel", "OpenAIResponsesWSModel"]


class OpenAIResponsesModel(Model):
    """A model behind the Responses API."""

    def __init__(self, model: str, openai_client: AsyncOpenAI, *, model_is_explicit: bool = True) -> None:
        self.model = model
        self._client: Any = openai_client
        self._is_explicit = model_is_explicit

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        error = request.error
        headers: Any = getattr(getattr(error, "response", None), "headers", None)
        asked = headers.get("x-should-retry") if hasattr(headers, "get") else None
        wait = header_seconds(error)
        if asked is None and wait is None:
            return None
        safety = "safe" if asked == "true" else None
        return ModelRetryAdvice(None if asked is None else asked == "true", wait, safety)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> ModelResponse:
        asked = self._request(system_instructions, input, model_settings, tools, output_schema, handoffs, previous_response_id, conversation_id, prompt)
        with response_span(disabled=tracing.is_disabled()) as span:
            response = await self._api().responses.create(**asked)
            if tracing.include_data():
                span.span_data.response, span.span_data.input = response, input
            raw = response.usage.model_dump(mode="json", exclude_unset=True) if model_settings.preserve_raw_usage and response.usage else None
            usage = usage_of_response(response)
            return ModelResponse(response.output, usage, response.id, getattr(response, "_request_id", None), raw)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> AsyncIterator[Any]:
        asked = self._request(system_instructions, input, model_settings, tools, output_schema, handoffs, previous_response_id, conversation_id, prompt)
        span = response_span(disabled=tracing.is_disabled())
        span.start()
        try:
            events = await self._api().responses.create(**asked, stream=True)
            try:
                async for event in events:
                    if event.type == "response.completed" and tracing.include_data():
                        span.span_data.response, span.span_data.input = event.response, input
                    yield event
            finally:
                await events.close()
        finally:
            span.finish()

    def _api(self) -> Any:
        return self._client if client_may_retry() else self._client.with_options(max_retries=0)

    def _request(
        self,
        system: str | None,
        given: Any,
        settings: ModelSettings,
        tools: list[Any],
        schema: Any,
        handoffs: list[Any],
        previous: Any,
        conversation: Any,
        prompt: Any,
    ) -> dict[str, Any]:
        model = None if prompt is not None and not self._is_explicit else self.model
        params, includes = tool_params(tools, handoffs, model=model, choice=settings.tool_choice)
        choice = tool_choice_param(settings.tool_choice, tools, model)
        if prompt is not None and not params and isinstance(choice, dict):
            choice = None
        includes += [one for one in settings.response_include or () if one not in includes]
        if settings.top_logprobs is not None:
            includes.append("message.output_text.logprobs")
        text: dict[str, Any] = {}
        if schema is not None and not schema.is_plain_text():
            text["format"] = {"type": "json_schema", "name": "final_output", "schema": schema.json_schema(), "strict": schema.is_strict_json_schema()}
        if settings.verbosity is not None:
            text["verbosity"] = settings.verbosity
        request = {
            "previous_response_id": previous,
            "conversation": conversation,
            "instructions": system,
            "model": model,
            "input": [_sendable(item) for item in ItemHelpers.input_to_new_input_list(given)],
            "include": includes,
            "tools": params if params or prompt is None else None,
            "prompt": prompt,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "truncation": settings.truncation,
            "max_output_tokens": settings.max_tokens,
            "tool_choice": choice,
            "parallel_tool_calls": settings.parallel_tool_calls if params or prompt is not None else None,
            "extra_headers": {"User-Agent": f"Agents/Python {__version__}", **(settings.extra_headers or {})},
            "extra_query": settings.extra_query,
            "extra_body": settings.extra_body,
            "text": text or None,
            "store": settings.store,
            "prompt_cache_retention": settings.prompt_cache_retention,
            "prompt_cache_options": settings.prompt_cache_options,
            "reasoning": settings.reasoning,
            "metadata": settings.metadata,
            "context_management": settings.context_management,
            "top_logprobs": settings.top_logprobs,
        }
        found = {name: value for name, value in request.items() if value is not None}
        extra = settings.extra_args or {}
        if twice := sorted(set(extra) & set(found)):
            msg = f"ModelSettings extra_args repeats what another setting says: {', '.join(twice)}"
            raise TypeError(msg)
        return {**found, **extra}


def _sendable(item: Any) -> Any:
    """An item as the API takes it: with no id of our own, and nothing of other providers."""
    said = dict(as_input(item))
    said.pop("provider_data", None)
    if said.get("id") == "__fake_id__":
        del said["id"]
    return said


class OpenAIResponsesWSModel(OpenAIResponsesModel):
    """Refused: the Responses API is reached by HTTP here."""

    def __init__(self, *args: object, **named: object) -> None:
        refuse("OpenAIResponsesWSModel", "use OpenAIResponsesModel")
