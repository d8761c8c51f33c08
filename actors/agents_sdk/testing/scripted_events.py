"""A scripted answer as a stream of events.

Owns: the events that a provider would send for these items, in their order. It must never change an item.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from openai.types.responses import (
    Response,
    ResponseApplyPatchToolCall,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseInProgressEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseOutputTextAnnotationAddedEvent,
    ResponseReasoningItem,
    ResponseReasoningSummaryPartAddedEvent,
    ResponseReasoningSummaryPartDoneEvent,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseReasoningSummaryTextDoneEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseReasoningTextDoneEvent,
    ResponseRefusalDeltaEvent,
    ResponseRefusalDoneEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
    ResponseUsage,
)

from ..exceptions import ModelBehaviorError
from ..invocation import call_id_of
from ..usage import RequestUsage, Usage, input_details, output_details
from .model_script import ModelStep

__all__ = ["events_of", "output_of"]


def output_of(items: Sequence[Any]) -> list[Any]:
    """The items of a step: a patch may be given as a dict."""
    return [_patch(item) if isinstance(item, dict) and item.get("type") == "apply_patch_call" else item for item in items]


def _patch(item: dict[str, Any]) -> Any:
    known = call_id_of(item)
    call_id = None if known is None else known[1]
    if call_id is None:
        msg = "Tool invocations require a non-empty string call ID before execution."
        raise ModelBehaviorError(msg)
    item_id = item.get("id", call_id)
    if not isinstance(item_id, str) or not item_id:
        msg = "Apply-patch tool calls require a non-empty string item ID when provided."
        raise ModelBehaviorError(msg)
    named: Any = {"operation": item.get("operation"), "caller": item.get("caller"), "status": item.get("status", "completed")}
    return ResponseApplyPatchToolCall(type="apply_patch_call", id=item_id, call_id=call_id, **named)


class _Events:
    """Events with their numbers."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def add(self, kind: Any, type: str, **fields: Any) -> None:
        if kind is ResponseOutputTextAnnotationAddedEvent:
            self.all.append(kind.model_validate({"type": type, "sequence_number": len(self.all), **fields}))
        else:
            self.all.append(kind(type=type, sequence_number=len(self.all), **fields))


def events_of(step: ModelStep, *, with_raw_usage: bool) -> list[Any]:
    """The events of a step."""
    output = output_of(step.output)
    for item in output:
        if not isinstance(item, ResponseApplyPatchToolCall | ResponseFunctionToolCall | ResponseOutputMessage | ResponseReasoningItem):
            msg = f"Automatic streaming does not support {type(item).__name__}. Use ModelStep.stream(...) to provide exact normalized stream events."
            raise ModelBehaviorError(msg)
    response = _response(step, output)
    begun = response.model_copy(update={"output": [], "status": "in_progress", "usage": None})
    if with_raw_usage and step.raw_usage is not None:
        object.__setattr__(response, "understudy_raw_usage", copy.deepcopy(step.raw_usage))
    events = _Events()
    events.add(ResponseCreatedEvent, "response.created", response=copy.deepcopy(begun))
    events.add(ResponseInProgressEvent, "response.in_progress", response=copy.deepcopy(begun))
    for index, item in enumerate(output):
        events.add(ResponseOutputItemAddedEvent, "response.output_item.added", item=copy.deepcopy(_begun(item)), output_index=index)
        if isinstance(item, ResponseReasoningItem):
            _add_reasoning(events, item, index)
        elif isinstance(item, ResponseFunctionToolCall):
            place: dict[str, Any] = {"item_id": item.call_id if item.id is None else item.id, "output_index": index}
            events.add(ResponseFunctionCallArgumentsDeltaEvent, "response.function_call_arguments.delta", delta=item.arguments, **place)
            done = "response.function_call_arguments.done"
            events.add(ResponseFunctionCallArgumentsDoneEvent, done, arguments=item.arguments, name=item.name, **place)
        elif isinstance(item, ResponseOutputMessage):
            _add_message(events, item, index)
        events.add(ResponseOutputItemDoneEvent, "response.output_item.done", item=copy.deepcopy(item), output_index=index)
    events.add(ResponseCompletedEvent, "response.completed", response=response)
    return events.all


def _begun(item: Any) -> Any:
    """An item as it is at first."""
    if isinstance(item, ResponseApplyPatchToolCall):
        return item.model_copy(update={"status": "in_progress"})
    if isinstance(item, ResponseOutputMessage):
        return item.model_copy(update={"content": [], "status": "in_progress"})
    if isinstance(item, ResponseReasoningItem):
        content: list[Any] | None = None if item.content is None else []
        return item.model_copy(update={"content": content, "encrypted_content": None, "status": "in_progress", "summary": []})
    return item.model_copy(update={"arguments": "", "status": "in_progress"})


def _add_reasoning(events: _Events, item: ResponseReasoningItem, index: int) -> None:
    for number, summary in enumerate(item.summary or ()):
        place: dict[str, Any] = {"item_id": item.id, "output_index": index, "summary_index": number}
        events.add(ResponseReasoningSummaryPartAddedEvent, "response.reasoning_summary_part.added", part={"type": "summary_text", "text": ""}, **place)
        events.add(ResponseReasoningSummaryTextDeltaEvent, "response.reasoning_summary_text.delta", delta=summary.text, **place)
        events.add(ResponseReasoningSummaryTextDoneEvent, "response.reasoning_summary_text.done", text=summary.text, **place)
        part = {"type": "summary_text", "text": summary.text}
        events.add(ResponseReasoningSummaryPartDoneEvent, "response.reasoning_summary_part.done", part=part, **place)
    for number, content in enumerate(item.content or ()):
        place = {"item_id": item.id, "output_index": index, "content_index": number}
        events.add(ResponseReasoningTextDeltaEvent, "response.reasoning_text.delta", delta=content.text, **place)
        events.add(ResponseReasoningTextDoneEvent, "response.reasoning_text.done", text=content.text, **place)


def _add_message(events: _Events, item: ResponseOutputMessage, index: int) -> None:
    for number, content in enumerate(item.content or ()):
        place: dict[str, Any] = {"item_id": item.id, "output_index": index, "content_index": number}
        if isinstance(content, ResponseOutputText):
            blank: Any = content.model_copy(deep=True, update={"annotations": [], "logprobs": [], "text": ""})
            events.add(ResponseContentPartAddedEvent, "response.content_part.added", part=blank, **place)
            tops = [{"token": one.token, "logprob": one.logprob, "top_logprobs": _tops(one)} for one in content.logprobs or ()]
            events.add(ResponseTextDeltaEvent, "response.output_text.delta", delta=content.text, logprobs=tops, **place)
            for place_of, annotation in enumerate(content.annotations or ()):
                added = "response.output_text.annotation.added"
                events.add(ResponseOutputTextAnnotationAddedEvent, added, annotation_index=place_of, annotation=annotation.model_dump(), **place)
            events.add(ResponseTextDoneEvent, "response.output_text.done", text=content.text, logprobs=tops, **place)
        elif isinstance(content, ResponseOutputRefusal):
            blank = content.model_copy(deep=True, update={"refusal": ""})
            events.add(ResponseContentPartAddedEvent, "response.content_part.added", part=blank, **place)
            events.add(ResponseRefusalDeltaEvent, "response.refusal.delta", delta=content.refusal, **place)
            events.add(ResponseRefusalDoneEvent, "response.refusal.done", refusal=content.refusal, **place)
        else:
            continue
        events.add(ResponseContentPartDoneEvent, "response.content_part.done", part=copy.deepcopy(content), **place)


def _tops(logprob: Any) -> list[dict[str, Any]]:
    return [{"token": top.token, "logprob": top.logprob} for top in logprob.top_logprobs]


def _response(step: ModelStep, output: list[Any]) -> Response:
    response = Response(
        id="scripted-response" if step.response_id is None else step.response_id,
        created_at=0,
        model="scripted-model",
        object="response",
        output=output,
        tool_choice="none",
        tools=[],
        top_p=None,
        parallel_tool_calls=False,
        status="completed",
        usage=_usage(step.usage),
    )
    object.__setattr__(response, "understudy_usage", step.usage)  # it may have counted more than one request
    if step.response_id is None:
        object.__setattr__(response, "id", None)  # a model need not have ids, though OpenAI's always has
    if step.request_id is not None:
        response._request_id = step.request_id
    return response


def _usage(usage: Usage | RequestUsage) -> ResponseUsage:
    into, out = usage.input_tokens_details, usage.output_tokens_details
    return ResponseUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=input_details(getattr(into, "cached_tokens", 0) or 0, getattr(into, "cache_write_tokens", 0) or 0),
        output_tokens_details=output_details(getattr(out, "reasoning_tokens", 0) or 0),
    )
