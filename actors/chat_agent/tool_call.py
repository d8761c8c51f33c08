"""One call of a tool with its retries and timeout, and the log record of a failure."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from ...runtime.clock import Deadline, Timer
from ...runtime.data.chat import ToolCall
from ...runtime.errors import ToolError, TransferError, text_of
from ...runtime.log import at_work, loggers
from ..tools.approval import Denied
from ..tools.tool import Tool, ToolArgumentsError
from ..tools.tool_context import ToolContext, attempt_of, call_state_of

__all__ = ["call_tool", "log_failure", "one_line"]

_GRACE: Final = 5.0
"""Seconds that an `async def` may take to end after its timeout before a warning is logged."""


async def call_tool(context: ToolContext, tool: Tool, call: ToolCall) -> object:
    """Call the tool, with its retries and its timeout.

    Invalid arguments are not retried, and neither is an attempt that may still be running.
    """
    if not tool.retries and tool.timeout is None:
        return await _attempt(context, tool, call)
    attempt = 0
    while True:
        try:
            return await _within(context, tool, call)
        except ToolArgumentsError:
            raise
        except Exception:
            call_state = call_state_of(context)
            call_state.forget_action()
            attempt += 1
            if attempt > tool.retries or (
                attempt_of(context).left_at_work and not tool.retry_at_work
            ):
                raise
            loggers.tools.info(
                "Tool %s has failed (%s), and is called again: attempt %d of %d.",
                tool.name,
                call.id,
                attempt + 1,
                tool.retries + 1,
                exc_info=True,
            )
            context = ToolContext(call_state)


async def _attempt(context: ToolContext, tool: Tool, call: ToolCall) -> Any:
    try:
        return await tool.invoke(context, call.arguments)
    except asyncio.CancelledError:
        attempt_of(context).give_up()
        raise


async def _within(context: ToolContext, tool: Tool, call: ToolCall) -> object:
    if tool.timeout is None:
        return await _attempt(context, tool, call)
    deadline, attempt = (
        Deadline(tool.timeout, call_state_of(context).runtime.clock),
        attempt_of(context),
    )
    overdue: Timer | None = None
    if tool.blocks:
        attempt.deadline = deadline
    else:
        overdue = deadline.clock.call_later(tool.timeout + _GRACE, _is_overdue, tool, call)
    try:
        async with deadline:
            return await _attempt(context, tool, call)
    except TimeoutError as error:
        if not deadline.expired:
            raise  # raised by the tool itself
        if attempt.left_at_work:
            msg = (
                f"tool {tool.name} timed out after {tool.timeout:g} s. Its thread cannot be "
                "stopped: it may still be running, or may have completed. Check its effect "
                "before you call it again"
            )
        else:
            msg = (
                f"tool {tool.name} took longer than its timeout of {tool.timeout:g} s, and was "
                "cancelled"
            )
        raise ToolError(msg, message=call) from error
    finally:
        if overdue is not None:
            overdue.cancel()


def _is_overdue(tool: Tool, call: ToolCall) -> None:
    text = (
        "Tool %s (%s) has not ended %g s after its timeout of %g s: it ignores its cancellation, "
        "and its run waits for it. Let it raise CancelledError."
    )
    loggers.tools.warning(text, tool.name, call.id, _GRACE, tool.timeout)


def log_failure(call: ToolCall, error: ToolError | TransferError, *, fails_run: bool) -> None:
    """Log an exception of the tool, or a result that is not JSON, as a warning with the traceback.

    Other failures are logged at INFO: a `ToolError` that the tool raises for the model to read, a
    mistake of the model, and a denial. An error that fails the run is logged at INFO, too, because
    the run logs the warning.
    """
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    is_late = isinstance(cause, TimeoutError) and isinstance(
        cause.__cause__ or cause.__context__, asyncio.CancelledError
    )  # ended by its timeout=
    is_tools = (
        not is_late
        and not isinstance(error, ToolArgumentsError | Denied | TransferError)
        and cause.__traceback__ is not None
    )
    level = logging.WARNING if is_tools and cause is not error and not fails_run else logging.INFO
    run = at_work()
    run_id = None if run is None else run.run_id
    loggers.tools.log(
        level,
        "Tool %s has failed (call %s of run %s): %s",
        call.name,
        call.id,
        run_id,
        text_of(error),
        exc_info=cause if is_tools else None,
    )


def one_line(text: str) -> str:
    return " ".join(text.split())
