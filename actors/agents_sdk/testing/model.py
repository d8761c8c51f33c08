"""A model that answers by a script.

Owns: `ScriptedModel`, and the items that scripts are made of. It must never answer anything that is not in its script.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, Final

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from ..items import ModelResponse
from ..models.interface import Model, ModelTracing
from ..retry import ModelRetryAdvice, ModelRetryAdviceRequest
from ..tracing.create import generation_span
from ..tracing.scope import Scope
from ..usage import Usage
from .model_script import ModelCall, ModelStep, UnconsumedModelSteps, UnexpectedModelCall, as_step, copied_call
from .scripted_events import events_of, output_of

__all__ = ["ScriptedModel", "assistant_message", "function_call"]

_REDACTED: Final = "Error details are redacted."


class ScriptedModel(Model):
    """A model that answers by a script: each call takes the next step. It needs no network and no key."""

    def __init__(self, steps: Iterable[Any] = (), *, emit_traces: bool = False, default_usage: Usage | None = None) -> None:
        self._steps = [as_step(step, index) for index, step in enumerate(steps)]
        self._emit_traces = emit_traces
        self._default_usage = copy.deepcopy(default_usage)
        self._calls: list[ModelCall] = []
        self._advice: dict[int, tuple[Exception, ModelRetryAdvice]] = {}

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """What it was called with."""
        return tuple(copied_call(call) for call in self._calls)

    @property
    def remaining_steps(self) -> int:
        """How many calls it can still answer."""
        return len(self._steps)

    @property
    def first_call(self) -> ModelCall | None:
        """What it was called with first."""
        return copied_call(self._calls[0]) if self._calls else None

    @property
    def last_call(self) -> ModelCall | None:
        """What it was called with last."""
        return copied_call(self._calls[-1]) if self._calls else None

    def enqueue(self, step: Any) -> None:
        """Add a step."""
        self._steps.append(as_step(step, 0))

    def extend(self, steps: Iterable[Any]) -> None:
        """Add several steps; none of them, if one is not what it has to be."""
        self._steps.extend([as_step(step, index) for index, step in enumerate(steps)])

    def set_default_usage(self, usage: Usage | None) -> None:
        """What steps cost that do not say it."""
        self._default_usage = copy.deepcopy(usage)

    def assert_complete(self) -> None:
        """Raise, if there are steps left."""
        if self._steps:
            count = len(self._steps)
            msg = f"{count} scripted model step(s) were not consumed."
            raise UnconsumedModelSteps(msg, remaining_steps=count)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        known = self._advice.get(id(request.error))
        return None if known is None or known[0] is not request.error else copy.deepcopy(known[1])

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any,
    ) -> ModelResponse:
        ids = (previous_response_id, conversation_id, prompt)
        call = self._record((system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, *ids, False))
        with generation_span(disabled=not self._emit_traces) as span, self._noting(span, call):
            step = await self._next(call)
            raw = copy.deepcopy(step.raw_usage) if call.model_settings.preserve_raw_usage is True else None
            return ModelResponse(output_of(step.output), step.usage, step.response_id, step.request_id, raw)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None,
        conversation_id: str | None,
        prompt: Any,
    ) -> AsyncIterator[Any]:
        ids = (previous_response_id, conversation_id, prompt)
        call = self._record((system_instructions, input, model_settings, tools, output_schema, handoffs, tracing, *ids, True))
        span = generation_span(disabled=not self._emit_traces)
        span.start(mark_as_current=False)
        try:
            with self._noting(span, call):
                with _current(span):
                    step = await self._next(call)
                if callable(step.stream_events):
                    with _current(span):
                        stream = step.stream_events(call)
                    async with aclosing(_within(span, stream)) as events:  # type: ignore[type-var]  # a generator
                        async for event in events:
                            yield event
                    return
                if step.stream_events is not None:
                    events_given: Iterable[Any] = step.stream_events
                else:
                    events_given = events_of(step, with_raw_usage=call.model_settings.preserve_raw_usage is True)
                for event in events_given:
                    yield event
        finally:
            span.finish(reset_current=False)

    def _record(self, given: tuple[Any, ...]) -> ModelCall:
        call = copied_call(ModelCall(*given))
        self._calls.append(call)
        return copied_call(call)

    async def _next(self, call: ModelCall) -> ModelStep:
        if not self._steps:
            count = len(self._calls)
            msg = f"Unexpected {'streaming' if call.streamed else 'non-streaming'} model call #{count}: no scripted steps remain."
            raise UnexpectedModelCall(msg, call=call, call_index=count - 1)
        step = self._steps.pop(0)
        while step.responder is not None:
            found = step.responder(call)
            step = as_step(await found if inspect.isawaitable(found) else found, 0)
        if step.error is not None:
            if step.retry_advice is None:
                self._advice.pop(id(step.error), None)
            else:
                self._advice[id(step.error)] = (step.error, copy.deepcopy(step.retry_advice))
            raise step.error
        usage = step.usage
        if usage == Usage():
            usage = Usage(requests=1) if self._default_usage is None else self._default_usage
        return replace(step, usage=copy.deepcopy(usage))

    @contextmanager
    def _noting(self, span: Any, call: ModelCall) -> Iterator[None]:
        """Note on the span what is raised."""
        try:
            yield
        except Exception as error:
            known = self._advice.get(id(error))
            if known is not None and known[0] is not error:
                del self._advice[id(error)]
            text = _REDACTED
            if call.tracing.include_data():
                try:
                    text = str(error)
                except Exception:
                    text = f"Unrenderable {type(error).__name__}"
            span.set_error({"message": "Error", "data": {"name": type(error).__name__, "message": text}})
            raise


@contextmanager
def _current(span: Any) -> Iterator[None]:
    token = Scope.set_current_span(span)
    try:
        yield
    finally:
        Scope.reset_current_span(token)


async def _within(span: Any, stream: Any) -> AsyncIterator[Any]:
    """The events of a program's own stream, which runs within the span; its consumer does not."""
    try:
        while True:
            try:
                with _current(span):
                    event = await anext(stream)
            except StopAsyncIteration:
                return
            yield event
    finally:
        close = getattr(stream, "aclose", None)
        if callable(close):
            with _current(span):
                await close()


def assistant_message(text: str, *, item_id: str = "scripted-message") -> ResponseOutputMessage:
    """A message of the model."""
    content = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id=item_id, type="message", role="assistant", status="completed", content=[content])


def function_call(
    name: str, arguments: str | Mapping[str, Any], *, call_id: str, item_id: str | None = None, namespace: str | None = None
) -> ResponseFunctionToolCall:
    """A call of a function."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    more: dict[str, Any] = {} if namespace is None else {"namespace": namespace}
    return ResponseFunctionToolCall(id=call_id if item_id is None else item_id, call_id=call_id, type="function_call", name=name, arguments=text, **more)
