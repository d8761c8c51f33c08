"""What a program may do about a run that would fail.

Owns: what a handler is given and returns. It must never call one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

from typing_extensions import TypedDict

from .run_context import RunContextWrapper, TContext

if TYPE_CHECKING:
    from .items import ModelResponse, RunItem

__all__ = ["RunErrorData", "RunErrorHandler", "RunErrorHandlerInput", "RunErrorHandlerResult", "RunErrorHandlers"]


@dataclass
class RunErrorData:
    """How far the run had come."""

    input: str | list[Any]
    new_items: list[RunItem]
    history: list[Any]
    output: list[Any]
    raw_responses: list[ModelResponse]
    last_agent: Any


@dataclass
class RunErrorHandlerInput(Generic[TContext]):
    """What a handler is given."""

    error: Any
    context: RunContextWrapper[TContext]
    run_data: RunErrorData


@dataclass
class RunErrorHandlerResult:
    """What the run ends with instead."""

    final_output: Any
    include_in_history: bool = True


RunErrorHandler: TypeAlias = Callable[[RunErrorHandlerInput[Any]], Any]
"""Returns a `RunErrorHandlerResult`, a dict with `final_output`, or the output itself; None lets the run fail."""


class RunErrorHandlers(TypedDict, total=False):
    """A handler for each kind of failure."""

    max_turns: RunErrorHandler
    model_refusal: RunErrorHandler
    invalid_final_output: RunErrorHandler
