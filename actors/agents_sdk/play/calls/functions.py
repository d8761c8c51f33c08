"""All calls of functions of one reply.

Owns: that they are made at once, as many as the run allows, and what becomes of the others when one fails. It must never change the order of their results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ...exceptions import ModelBehaviorError
from ...logger import logger
from ...tool import FunctionTool
from ...tool.function import FunctionToolResult
from ..live import LiveRun
from ..recording import Recorder
from ..steps import FunctionRun
from .function_call import FunctionCall

__all__ = ["make_calls"]

_GRACE: Final = 0.1
"""Seconds that calls have to end in, when another one has failed."""


async def make_calls(run: LiveRun, agent: Any, recorder: Recorder, runs: Sequence[FunctionRun]) -> tuple[list[FunctionToolResult], list[Any], list[Any]]:
    """The results of the calls in their order, and what guardrails have found. Raises what the first one that fails has raised."""
    if not runs:
        return [], [], []
    await _check_enabled(run, agent, runs)
    calls = [FunctionCall(run, agent, recorder, one.call, one.tool) for one in runs]
    try:
        results = [await calls[0].make()] if len(calls) == 1 else await _at_once(run, calls)
    except BaseException:
        run.state.tool_input_results += [one for call in calls for one in call.input_results]
        run.state.tool_output_results += [one for call in calls for one in call.output_results]
        raise
    return results, [one for call in calls for one in call.input_results], [one for call in calls for one in call.output_results]


async def _check_enabled(run: LiveRun, agent: Any, runs: Sequence[FunctionRun]) -> None:
    if all(one.tool.is_enabled is True for one in runs):
        return
    enabled = {id(tool) for tool in await agent.get_all_tools(run.context)}
    own = {id(tool) for tool in agent.tools if isinstance(tool, FunctionTool)}
    for one in runs:
        if id(one.tool) in own and id(one.tool) not in enabled:
            msg = f"Tool {one.tool.name} is currently disabled for agent {agent.name}."
            raise ModelBehaviorError(msg)


async def _at_once(run: LiveRun, calls: list[FunctionCall]) -> list[FunctionToolResult]:
    execution = run.config.tool_execution
    most = len(calls) if execution is None or execution.max_function_tool_concurrency is None else execution.max_function_tool_concurrency
    waiting = list(calls)
    tasks: dict[asyncio.Task[FunctionToolResult], FunctionCall] = {}
    results: dict[int, FunctionToolResult] = {}
    try:
        while waiting or tasks:
            while waiting and len(tasks) < most:
                call = waiting.pop(0)
                tasks[asyncio.ensure_future(call.make())] = call
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            failed = [task for task in done if task.cancelled() or task.exception() is not None]
            for task in done - set(failed):
                results[id(tasks.pop(task))] = task.result()
            if failed:
                order = [task for task in tasks if task in failed]
                raise await _failure(tasks, order)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_forget)
        raise
    return [results[id(call)] for call in calls]


def _error_of(task: asyncio.Task[Any]) -> BaseException:
    if task.cancelled():
        return asyncio.CancelledError()
    error = task.exception()
    assert error is not None
    return error


def _weight(error: BaseException) -> int:
    """Of several failures the weightiest is raised: what is no ordinary exception before what is one, and a cancellation last."""
    if isinstance(error, asyncio.CancelledError):
        return 0
    return 1 if isinstance(error, Exception) else 2


async def _failure(tasks: dict[asyncio.Task[Any], FunctionCall], failed: list[asyncio.Task[Any]]) -> BaseException:
    """End the other calls, and return what is to be raised."""
    errors = [_error_of(task) for task in failed]
    others = [task for task in tasks if task not in failed]
    cut = [task for task in others if not tasks[task].has_returned]
    for task in cut:
        tasks[task].given_up = True
        task.cancel()
    if others:
        done, late = await asyncio.wait(others, timeout=_GRACE)
        errors += [_error_of(task) for task in done if not task.cancelled() and task.exception() is not None]
        for task in late:
            task.add_done_callback(_forget)
    return max(errors, key=_weight)


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.warning("A tool that was given up has failed: %s", type(task.exception()).__name__)
