"""The script of a model in tests.

Owns: the steps, their checks, and what is raised when a script and its test do not fit. It must never answer a call.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from typing_extensions import TypedDict

from ..items import ModelResponse
from ..model_settings import ModelSettings
from ..models.interface import ModelTracing
from ..retry import ModelRetryAdvice
from ..usage import Usage

__all__ = [
    "InvalidModelStep",
    "ModelCall",
    "ModelScriptError",
    "ModelStep",
    "ModelStepSpec",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "as_step",
    "copied_call",
]

ModelStepReason: TypeAlias = Literal[
    "invalid_input", "unsupported_field", "invalid_error", "invalid_responder", "invalid_stream_events", "conflicting_outcomes", "invalid_retry_advice"
]


class ModelScriptError(Exception):
    """The script and the test do not fit."""


class InvalidModelStep(ModelScriptError):
    """A step is not what it has to be."""

    def __init__(self, message: str, *, reason: ModelStepReason, input_index: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.input_index = input_index


class UnexpectedModelCall(ModelScriptError):
    """The model was called more often than there are steps."""

    def __init__(self, message: str, *, call: ModelCall, call_index: int) -> None:
        super().__init__(message)
        self.call = call
        self.call_index = call_index


class UnconsumedModelSteps(ModelScriptError):
    """The model was called less often than there are steps."""

    def __init__(self, message: str, *, remaining_steps: int) -> None:
        super().__init__(message)
        self.remaining_steps = remaining_steps


@dataclass(frozen=True)
class ModelCall:
    """What a model was called with."""

    system_instructions: str | None
    input: Any
    model_settings: ModelSettings
    tools: list[Any]
    output_schema: Any
    handoffs: list[Any]
    tracing: ModelTracing
    previous_response_id: str | None
    conversation_id: str | None
    prompt: Any
    streamed: bool


def copied_call(call: ModelCall) -> ModelCall:
    """A copy that later changes do not reach. Tools, handoffs and the schema are the same objects."""
    return ModelCall(
        call.system_instructions,
        copy.deepcopy(call.input),
        copy.deepcopy(call.model_settings),
        list(call.tools),
        call.output_schema,
        list(call.handoffs),
        call.tracing,
        call.previous_response_id,
        call.conversation_id,
        copy.deepcopy(call.prompt),
        call.streamed,
    )


ModelStreamFactory: TypeAlias = Callable[[ModelCall], AsyncIterator[Any]]
ModelResponder: TypeAlias = Callable[[ModelCall], Any | Awaitable[Any]]


@dataclass
class ModelStep:
    """What the model answers to one call: items, an error, what a function makes of the call, or events."""

    output: Sequence[Any] = field(default_factory=tuple)
    usage: Usage = field(default_factory=Usage)
    response_id: str | None = "resp-789"
    request_id: str | None = None
    raw_usage: dict[str, Any] | None = None
    error: Exception | None = None
    responder: ModelResponder | None = None
    stream_events: Sequence[Any] | ModelStreamFactory | None = None
    retry_advice: ModelRetryAdvice | None = None

    @classmethod
    def raise_error(cls, error: Exception, *, retry_advice: ModelRetryAdvice | None = None) -> ModelStep:
        """A call that fails."""
        return cls(error=error, retry_advice=retry_advice)

    @classmethod
    def respond(cls, responder: ModelResponder) -> ModelStep:
        """A call that a function answers."""
        return cls(responder=responder)

    @classmethod
    def stream(
        cls, events: Sequence[Any] | ModelStreamFactory, *, output: Sequence[Any] = (), usage: Usage | None = None, response_id: str | None = "resp-789"
    ) -> ModelStep:
        """A call that is answered with these very events."""
        return cls(output, usage or Usage(), response_id, stream_events=events if callable(events) else tuple(events))


class ModelStepSpec(TypedDict, total=False):
    """A step as a dict."""

    output: Sequence[Any]
    usage: Usage
    response_id: str | None
    request_id: str | None
    raw_usage: dict[str, Any] | None
    error: Exception | None
    responder: ModelResponder | None
    stream_events: Sequence[Any] | ModelStreamFactory | None
    retry_advice: ModelRetryAdvice | None


_FIELDS: Final = frozenset(ModelStepSpec.__annotations__)


def as_step(given: Any, index: int) -> ModelStep:
    """The step that was given in one of its forms, copied. Raises, if it is none."""
    if isinstance(given, ModelStep):
        step = given
    elif isinstance(given, ModelResponse):
        step = ModelStep(given.output, given.usage, given.response_id, given.request_id, given.raw_usage)
    elif isinstance(given, Exception):
        step = ModelStep(error=given)
    elif isinstance(given, Mapping):
        if set(given) - _FIELDS:
            raise _invalid("unsupported_field", index, "contains unsupported fields")
        step = ModelStep(**given)
    else:
        step = ModelStep(output=given)
    _check(step, index)
    events = step.stream_events
    return ModelStep(
        copy.deepcopy(step.output),
        copy.deepcopy(step.usage),
        step.response_id,
        step.request_id,
        copy.deepcopy(step.raw_usage),
        step.error,
        step.responder,
        events if events is None or callable(events) else copy.deepcopy(events),
        copy.deepcopy(step.retry_advice),
    )


def _invalid(reason: ModelStepReason, index: int, what: str) -> InvalidModelStep:
    return InvalidModelStep(f"Scripted model step #{index + 1} {what}.", reason=reason, input_index=index)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _check(step: ModelStep, index: int) -> None:
    checks: tuple[tuple[bool, ModelStepReason, str], ...] = (
        (_is_sequence(step.output), "invalid_input", "must use a sequence for output"),
        (isinstance(step.usage, Usage), "invalid_input", "must use Usage for usage"),
        (isinstance(step.response_id, str | None), "invalid_input", "must use a string or None for response_id"),
        (isinstance(step.request_id, str | None), "invalid_input", "must use a string or None for request_id"),
        (isinstance(step.raw_usage, dict | None), "invalid_input", "must use a dictionary or None for raw_usage"),
        (isinstance(step.error, Exception | None), "invalid_error", "must use an Exception for error"),
        (step.responder is None or callable(step.responder), "invalid_responder", "must use a callable responder"),
        (
            step.stream_events is None or callable(step.stream_events) or _is_sequence(step.stream_events),
            "invalid_stream_events",
            "must use a sequence or callable stream_events value",
        ),
        (
            sum(one is not None for one in (step.error, step.responder, step.stream_events)) <= 1,
            "conflicting_outcomes",
            "cannot combine error, responder, and stream_events outcomes",
        ),
        (
            step.retry_advice is None or (isinstance(step.retry_advice, ModelRetryAdvice) and step.error is not None),
            "invalid_retry_advice",
            "requires an error and a ModelRetryAdvice value",
        ),
    )
    for is_valid, reason, what in checks:
        if not is_valid:
            raise _invalid(reason, index, what)
