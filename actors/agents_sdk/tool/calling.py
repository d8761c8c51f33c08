"""One call of a function tool, within its time.

Owns: the timeout, and which context the function is given. It must never look at approvals, guardrails or hooks: the caller has done so.
"""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from ....runtime.clock import Deadline
from ....runtime.maybe_await import maybe_await
from ..exceptions import ToolTimeoutError
from ..run_context import RunContextWrapper
from ..tool_context import ToolContext
from .failure import default_tool_timeout_error_message
from .function import FunctionTool

__all__ = ["invoke_function_tool"]


async def invoke_function_tool(*, function_tool: FunctionTool, context: ToolContext[Any], arguments: str) -> Any:
    """Call the tool. What it raises is raised, unless it has an error function."""
    context.failure_reported = False
    given: Any = _context_for(function_tool, context)
    if function_tool.timeout_seconds is None:
        return await function_tool.on_invoke_tool(given, arguments)
    deadline = Deadline(function_tool.timeout_seconds)
    try:
        async with deadline:
            return await function_tool.on_invoke_tool(given, arguments)
    except TimeoutError as error:
        if not deadline.expired:
            raise  # the tool's own
        late = ToolTimeoutError(function_tool.name, function_tool.timeout_seconds)
        if function_tool.timeout_behavior == "raise_exception":
            raise late from error
        if function_tool.timeout_error_function is None:
            context.failure_reported = True
            return default_tool_timeout_error_message(tool_name=function_tool.name, timeout_seconds=function_tool.timeout_seconds)
        return await maybe_await(function_tool.timeout_error_function(context, late))


def _context_for(tool: FunctionTool, context: ToolContext[Any]) -> Any:
    """The context of the call; or the run's, if the function says that it takes no more."""
    if getattr(tool.on_invoke_tool, "takes_any_context", False):
        return context
    try:
        first = next(iter(inspect.signature(tool.on_invoke_tool).parameters.values()), None)
    except (TypeError, ValueError):
        return context
    if first is None or first.annotation is inspect.Parameter.empty:
        return context
    try:
        annotation = get_type_hints(tool.on_invoke_tool).get(first.name, first.annotation)
    except Exception:
        annotation = first.annotation
    said = annotation if isinstance(annotation, str) else str(annotation) if not isinstance(annotation, type) else annotation.__name__
    if "ToolContext" in said or annotation is ToolContext:
        return context
    return context.derived(context.tool_input) if "RunContextWrapper" in said or annotation is RunContextWrapper else context
