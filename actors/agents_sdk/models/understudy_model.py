"""understudy's models, by the SDK's interface.

Owns: this adapter: any model of understudy's can be an agent's here. It must never lose what the model has said.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseTextDeltaEvent,
)

from ....runtime.data.chat import Message, MessageDelta
from ....runtime.models.openai_chat import OpenAIChatModel
from ....runtime.models.protocol import ModelRequest, OutputSchema, ToolSpec
from ....runtime.models.protocol import ModelSettings as CoreSettings
from ..exceptions import UserError
from ..items import ItemHelpers, ModelResponse
from ..items.messages import item_of_reply, messages_of_items, usage_of
from ..missing import refuse
from ..model_settings import MCPToolChoice, ModelSettings
from ..tool import FunctionTool
from ..tracing.create import generation_span
from .interface import Model, ModelTracing

__all__ = ["UnderstudyModel", "as_model"]


class UnderstudyModel(Model):
    """One of understudy's models, as an agent of the SDK has it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    async def close(self) -> None:
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()

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
        _check(previous_response_id, conversation_id, prompt)
        request = _request(system_instructions, input, model_settings, tools, output_schema, handoffs)
        with generation_span(model=str(getattr(self.model, "model", self.model)), disabled=tracing.is_disabled()) as span:
            message: Message = await self.model.generate(request)
            _note(span, request, message, tracing)
        return ModelResponse(item_of_reply(message), usage_of(message.usage), None)

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
        _check(previous_response_id, conversation_id, prompt)
        request = _request(system_instructions, input, model_settings, tools, output_schema, handoffs)
        if model_settings.include_usage is False:
            request = replace(request, settings=_without_usage(self.model, request.settings))
        number = 0
        with generation_span(model=str(getattr(self.model, "model", self.model)), disabled=tracing.is_disabled()) as span:
            yield ResponseCreatedEvent(type="response.created", response=_response([], None), sequence_number=number)
            message: Message | None = None
            if not hasattr(self.model, "stream"):
                message = await self.model.generate(request)
            else:
                async for item in self.model.stream(request):
                    if isinstance(item, Message):
                        message = item
                    elif isinstance(item, MessageDelta) and item.content:
                        if number == 0:
                            number += 1
                            begun = ResponseOutputMessage(id="__fake_id__", type="message", role="assistant", status="in_progress", content=[])
                            yield ResponseOutputItemAddedEvent(type="response.output_item.added", item=begun, output_index=0, sequence_number=number)
                        number += 1
                        yield ResponseTextDeltaEvent(
                            type="response.output_text.delta",
                            item_id="__fake_id__",
                            output_index=0,
                            content_index=0,
                            delta=item.content,
                            logprobs=[],
                            sequence_number=number,
                        )
            if message is None:
                msg = f"The model {self.model!r} has ended its stream without a message."
                raise UserError(msg)
            _note(span, request, message, tracing)
        output = item_of_reply(message)
        for index, one in enumerate(output):
            number += 1
            yield ResponseOutputItemDoneEvent(type="response.output_item.done", item=one, output_index=index, sequence_number=number)
        yield ResponseCompletedEvent(type="response.completed", response=_response(output, message), sequence_number=number + 1)


def as_model(model: Any) -> Model:
    """A model of understudy's, as a model of the SDK; a model of the SDK, as it is."""
    return model if isinstance(model, Model) else UnderstudyModel(model)


def _check(previous_response_id: Any, conversation_id: Any, prompt: Any) -> None:
    for name, value in (("previous_response_id", previous_response_id), ("conversation_id", conversation_id), ("prompt", prompt)):
        if value is not None:
            refuse(f"{name}= with this model", "it is for the Responses API")


def _note(span: Any, request: ModelRequest, message: Message, tracing: ModelTracing) -> None:
    if tracing.include_data():
        span.span_data.input = [{"role": one.role, "content": one.text} for one in request.messages]
        span.span_data.output = [{"role": "assistant", "content": message.text}]
    if message.usage is not None:
        span.span_data.usage = {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}


def _request(system: str | None, given: Any, settings: ModelSettings, tools: list[Any], schema: Any, handoffs: list[Any]) -> ModelRequest:
    messages = list(messages_of_items(ItemHelpers.input_to_new_input_list(given)))
    if system:
        messages.insert(0, Message("system", system))
    specs = [_spec(tool) for tool in tools]
    specs += [ToolSpec(one.tool_name, one.tool_description, one.input_json_schema, one.strict_json_schema) for one in handoffs]
    choice = settings.tool_choice
    if isinstance(choice, MCPToolChoice):
        refuse("MCPToolChoice with this model", "it is for the Responses API")
    output = None
    if schema is not None and not schema.is_plain_text():
        output = OutputSchema("final_output", schema.json_schema(), schema.is_strict_json_schema())
    return ModelRequest(tuple(messages), tuple(specs), choice if specs else None, _settings(settings, has_tools=bool(specs)), output)


def _spec(tool: Any) -> ToolSpec:
    if not isinstance(tool, FunctionTool):
        refuse(f"{type(tool).__name__} with this model", "it is for the Responses API")
    return ToolSpec(tool.name, tool.description, tool.params_json_schema, tool.strict_json_schema)


def _settings(given: ModelSettings, *, has_tools: bool) -> CoreSettings:
    extra: dict[str, object] = dict(given.extra_args or {})
    named = ("metadata", "store", "prompt_cache_retention", "verbosity", "top_logprobs", "extra_query", "extra_body", "extra_headers")
    extra |= {name: value for name in named if (value := getattr(given, name)) is not None}
    if given.top_logprobs is not None:
        extra["logprobs"] = True
    for name in ("truncation", "response_include", "context_management", "prompt_cache_options"):
        if getattr(given, name) is not None:
            refuse(f"ModelSettings({name}=...) with this model", "it is for the Responses API")
    for name in ("mode", "context"):
        if getattr(given.reasoning, name, None) is not None:
            refuse(f"Reasoning({name}=...) with this model", "it is for the Responses API")
    return CoreSettings(
        temperature=given.temperature,
        top_p=given.top_p,
        max_tokens=given.max_tokens,
        presence_penalty=given.presence_penalty,
        frequency_penalty=given.frequency_penalty,
        parallel_tool_calls=given.parallel_tool_calls if has_tools else None,
        reasoning_effort=getattr(given.reasoning, "effort", None),
        extra=extra,
    )


def _without_usage(model: Any, settings: CoreSettings) -> CoreSettings:
    """The settings of a stream that says nothing of its usage."""
    if not isinstance(model, OpenAIChatModel):
        refuse("ModelSettings(include_usage=False) with this model", "leave it out")
    return replace(settings, extra={"stream_options": None, **settings.extra})


def _response(output: list[Any], message: Message | None) -> Response:
    response = Response(
        id="__fake_id__",
        created_at=time.time(),
        model="understudy",
        object="response",
        output=output,
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=False,
    )
    if message is not None:
        object.__setattr__(response, "understudy_usage", usage_of(message.usage))
        object.__setattr__(response, "id", None)  # nothing is kept there under an id
    return response
