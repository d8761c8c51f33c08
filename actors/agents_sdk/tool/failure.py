"""What the model is told of a call of a tool that failed.

Owns: the sentences, and which function makes one. It must never call a tool.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from ....runtime.maybe_await import maybe_await
from ..exceptions import ModelBehaviorError
from ..logger import hides_tool_data, logger
from ..tool_context import ToolContext
from ..tracing.errors import attach_error, tool_error_text

if TYPE_CHECKING:
    from ..run_context import RunContextWrapper
    from .function import FunctionTool

__all__ = [
    "UNSET",
    "default_tool_error_function",
    "default_tool_timeout_error_message",
    "is_from_program",
    "json_problem",
    "maybe_invoke_function_tool_failure_error_function",
    "note_handled_error",
    "resolve_function_tool_failure_error_function",
    "set_function_tool_failure_error_function",
]

UNSET: Final[Any] = object()
"""No error function was given: the default one is used."""


class _Cancelled(Exception):
    """A call that was cancelled from within, as an exception that error functions may be given."""


def json_problem(error: BaseException) -> json.JSONDecodeError | None:
    """What is wrong with the JSON of the arguments, if that is what failed."""
    if not isinstance(error, ModelBehaviorError) or not str(error).startswith("Invalid JSON input for tool"):
        return None
    current: BaseException | None = error
    while current is not None and not isinstance(current, json.JSONDecodeError):
        current = current.__cause__ or current.__context__
    return current


def default_tool_error_function(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """What the model is told, unless the tool says something else."""
    problem = json_problem(error)
    if problem is not None:
        return f"An error occurred while parsing tool arguments. Please try again with valid JSON. Error: {problem}"
    return f"An error occurred while running the tool. Please try again. Error: {error}"


def default_tool_timeout_error_message(*, tool_name: str, timeout_seconds: float) -> str:
    """What the model is told of a call that took too long."""
    return f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds."


def set_function_tool_failure_error_function(function_tool: FunctionTool, failure_error_function: Any = UNSET) -> FunctionTool:
    """Set which function makes the sentence: None for none, so that the exception ends the run."""
    is_default = failure_error_function is UNSET
    function_tool._use_default_failure_error_function = is_default
    function_tool._failure_error_function = None if is_default else failure_error_function
    return function_tool


def resolve_function_tool_failure_error_function(function_tool: FunctionTool, context: RunContextWrapper[Any] | None = None) -> Any:
    """Which function makes the sentence; None for none."""
    if not function_tool._use_default_failure_error_function:
        return function_tool._failure_error_function
    if function_tool.output_json_schema is not None and isinstance(context, ToolContext) and is_from_program(context.tool_call):
        return None
    from .. import tool as room  # noqa: PLC0415 -- programs replace it there

    return room.default_tool_error_function


def is_from_program(call: Any) -> bool:
    """Whether a program that runs at OpenAI has made the call."""
    caller = call.get("caller") if isinstance(call, dict) else getattr(call, "caller", None)
    return (caller.get("type") if isinstance(caller, dict) else getattr(caller, "type", None)) == "program"


async def maybe_invoke_function_tool_failure_error_function(
    *, function_tool: FunctionTool, context: RunContextWrapper[Any], error: BaseException
) -> str | None:
    """The sentence, if there is a function for it."""
    make = resolve_function_tool_failure_error_function(function_tool, context)
    if make is None:
        return None
    if isinstance(error, asyncio.CancelledError):
        error = _Cancelled(str(error) or "Tool execution cancelled.")
    elif not isinstance(error, Exception):
        error = Exception(str(error) or type(error).__name__)
    said: str | None = await maybe_await(make(context, error))
    if function_tool._use_default_failure_error_function and isinstance(context, ToolContext):
        context.failure_reported = True
    return said


def note_handled_error(tool: FunctionTool, error: Exception, context: ToolContext[Any], what: str = "Error running tool (non-fatal)") -> None:
    """Note in trace and log that a call failed, and that the model was told."""
    problem = json_problem(error)
    attach_error("Error running tool" if problem is not None else what, tool_name=tool.name, error=tool_error_text(context.run_config, problem or error))
    if hides_tool_data():
        logger.debug("Tool %s failed", tool.name)
    else:
        logger.error("Tool %s failed: %s", tool.name, error, exc_info=error)
