"""One call of a tool, from its arguments to the text for the model.

It covers approval, guardrails, time limits, retries and the form of the output. It runs in a child
task, and reports to the session without changing its state.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from ....runtime.actor.host import Host
from ....runtime.agent.run_context import RunContext
from ....runtime.clock import Deadline
from ....runtime.data.chat import ToolCall
from ....runtime.data.value import table_of
from ....runtime.errors import GuardrailTripped, ToolError, UsageError, text_of
from ....runtime.maybe_await import maybe_await
from ....runtime.tracing import Span
from ...tools.approval import needs_approval
from ...tools.tool import Tool, ToolArgumentsError
from ...tools.tool_context import ToolContext, attempt_of, call_state_of
from ...tools.tool_guardrail import ToolInputGuardrailData, ToolOutputGuardrailData, check_tool
from ..agent import RealtimeAgent
from .realtime_call import call_context

__all__ = ["Played", "output_text", "play_call", "wants_approval"]

_MOST: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Played:
    """The result of a call: the text for the model, the return value, and any error."""

    text: str
    output: Any = None
    error: BaseException | None = None


async def wants_approval(
    tool: Any, agent: RealtimeAgent, run: RunContext, system: Host, call: ToolCall, *, guarded: bool
) -> bool | Played:
    """Return whether the call needs approval.

    A call that cannot be made is not submitted for approval. Its output is returned instead.
    """
    needed = getattr(tool, "needs_approval", False)
    if not needed:
        return False
    try:
        if isinstance(tool, Tool):
            needed = await needs_approval(tool, call_context(agent, run, system, call), call)
        elif callable(needed):
            needed = await maybe_await(needed(run, json.loads(call.arguments or "{}"), call.id))
        if needed and guarded and getattr(tool, "input_guardrails", None):
            instead = await check_tool(
                tool.input_guardrails, ToolInputGuardrailData(run, agent, call)
            )
            if instead is not None:
                return Played(instead, instead)
    except Exception as error:  # noqa: BLE001 -- reported to the model and to the consumer
        return _failed(error, call)
    return bool(needed)


async def play_call(
    tool: Any, agent: RealtimeAgent, run: RunContext, system: Host, call: ToolCall, opening: Span
) -> Played:
    """Make the call within that span."""
    with opening as opened:
        try:
            if run.lease is not None:
                await run.lease.make_sure()
            if isinstance(tool, Tool):
                return await _guarded(tool, agent, run, system, call)
            output = await _call_of_the_sdk(tool, agent, run, call)
            return Played(output_text(output), output)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            opened.fail("cancelled from within")
            return _failed(
                ToolError(
                    f"tool {call.name} was cancelled by its own code, not by the session: it "
                    "raised CancelledError",
                    message=call,
                ),
                call,
                error,
            )
        except Exception as error:  # noqa: BLE001 -- reported to the model and to the consumer
            opened.fail(error)
            return _failed(error, call)


async def _guarded(
    tool: Tool, agent: RealtimeAgent, run: RunContext, system: Host, call: ToolCall
) -> Played:
    if tool.input_guardrails:
        instead = await check_tool(tool.input_guardrails, ToolInputGuardrailData(run, agent, call))
        if instead is not None:
            return Played(instead, instead)
    output = await _attempts(tool, agent, run, system, call)
    text = output_text(output)
    if tool.output_guardrails:
        instead = await check_tool(
            tool.output_guardrails, ToolOutputGuardrailData(run, agent, call, text)
        )
        if instead is not None:
            return Played(instead, instead)
    return Played(text, output)


async def _attempts(
    tool: Tool, agent: RealtimeAgent, run: RunContext, system: Host, call: ToolCall
) -> object:
    attempt = 0
    context = call_context(agent, run, system, call)
    while True:
        try:
            return await _attempt(tool, context, call, system)
        except ToolArgumentsError:
            raise
        except Exception:
            attempt += 1
            if attempt > tool.retries:
                raise
            context = ToolContext(call_state_of(context))


async def _attempt(tool: Tool, context: ToolContext, call: ToolCall, system: Host) -> object:
    attempt = attempt_of(context)
    if tool.timeout is None:
        try:
            return await tool.invoke(context, call.arguments)
        except asyncio.CancelledError:
            attempt.give_up()
            raise
    deadline = Deadline(tool.timeout, system.clock)
    if tool.blocks:
        attempt.deadline = deadline
    try:
        async with deadline:
            try:
                return await tool.invoke(context, call.arguments)
            except asyncio.CancelledError:
                attempt.give_up()
                raise
    except TimeoutError as error:
        if not deadline.expired:
            raise
        done = (
            "timed out, and may still be running or have completed: it was not waited for"
            if attempt.left_at_work
            else "took longer than its timeout, and was cancelled"
        )
        msg = f"tool {tool.name} {done} after {tool.timeout:g} s"
        raise ToolError(msg, message=call) from error


async def _call_of_the_sdk(
    tool: Any, agent: RealtimeAgent, run: RunContext, call: ToolCall
) -> object:
    from agents.tool_context import ToolContext as SdkContext  # noqa: PLC0415 -- a tool of the SDK exists, so the SDK is installed

    context: Any = SdkContext(
        run.context, tool_name=call.name, tool_call_id=call.id, tool_arguments=call.arguments
    )
    context.agent = agent
    return await tool.on_invoke_tool(context, call.arguments)


def output_text(output: object) -> str:
    """Return the text for the model: strings unchanged, other values as JSON.

    A very long text is truncated.
    """
    text = output if isinstance(output, str) else "" if output is None else _json(output)
    if len(text.encode()) > _MOST:
        cut = text.encode()[:_MOST].decode(errors="ignore")
        return (
            f"{cut}\n[cut: the output has {len(text):,} characters, and {_MOST // 1024} KiB are "
            "passed on]"
        )
    return text


def _json(output: object) -> str:
    if isinstance(output, BaseModel):
        return output.model_dump_json()
    try:
        return json.dumps(output, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        msg = (
            "the tool must return text, parts of a message, or data that JSON can represent, "
            f"got a {type(output).__qualname__}: {error}"
        )
        raise ToolError(msg) from error


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if (table := table_of(value)) is not None:
        return table
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    msg = f"a {type(value).__qualname__} has no JSON form"
    raise TypeError(msg)


def _failed(error: BaseException, call: ToolCall, cause: BaseException | None = None) -> Played:
    """Return a failure, with a one-line text for the model."""
    known = isinstance(error, ToolError | UsageError | GuardrailTripped)
    text = (
        text_of(error)
        if known
        else f"tool {call.name} failed: {type(error).__name__}: {text_of(error)}"
    )
    if cause is not None:
        error.__cause__ = cause
    return Played(" ".join(text.split()), None, error)
