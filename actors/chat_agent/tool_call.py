"""One call of a tool, as often and as long as it may be made; and what the log says of one that fails.

Owns: its retries and its timeout. It must never decide what the model is told.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ...runtime.clock import Deadline
from ...runtime.data.chat import ToolCall
from ...runtime.errors import ToolError, TransferError
from ...runtime.log import loggers
from ..tools.approval import Denied
from ..tools.tool import Tool, ToolArgumentsError
from ..tools.tool_context import ToolContext, attempt_of, call_door_of

__all__ = ["call_tool", "log_failure", "one_line"]


async def call_tool(context: ToolContext, tool: Tool, call: ToolCall) -> object:
    """Call the tool, as often and as long as it may. Arguments that are not valid do not become so by trying again."""
    if not tool.retries and tool.timeout is None:
        return await _attempt(context, tool, call)
    attempt = 0
    while True:
        try:
            return await _within(context, tool, call)
        except ToolArgumentsError:
            raise
        except Exception:
            door = call_door_of(context)
            door.forget_action()
            attempt += 1
            if attempt > tool.retries:
                raise
            loggers.tools.info("Tool %s has failed (%s), and is called again: try %d of %d.", tool.name, call.id, attempt + 1, tool.retries + 1, exc_info=True)
            context = ToolContext(door)


async def _attempt(context: ToolContext, tool: Tool, call: ToolCall) -> Any:
    try:
        return await tool.invoke(context, call.arguments)
    except asyncio.CancelledError:
        attempt_of(context).give_up()
        raise


async def _within(context: ToolContext, tool: Tool, call: ToolCall) -> object:
    if tool.timeout is None:
        return await _attempt(context, tool, call)
    deadline, attempt = Deadline(tool.timeout, call_door_of(context).agent.clock), attempt_of(context)
    if tool.blocks:
        attempt.deadline = deadline
    try:
        async with deadline:
            return await _attempt(context, tool, call)
    except TimeoutError as error:
        if not deadline.expired:
            raise  # the tool's own
        if attempt.left_at_work:
            msg = f"tool {tool.name} may still be at work, or may have been done: it was not waited for after {tool.timeout:g} s"
        else:
            msg = f"tool {tool.name} took longer than {tool.timeout:g} s, and was ended"
        raise ToolError(msg, message=call) from error


def log_failure(call: ToolCall, error: ToolError | TransferError) -> None:
    """Of what the tool itself has raised, with the traceback; of a mistake of the model's, or of a refusal, only what it was."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    is_tools = not isinstance(error, ToolArgumentsError | Denied | TransferError) and cause.__traceback__ is not None
    loggers.tools.info("Tool %s has failed (%s): %s", call.name, call.id, error, exc_info=cause if is_tools else None)


def one_line(text: str) -> str:
    return " ".join(text.split())
