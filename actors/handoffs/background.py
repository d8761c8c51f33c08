"""An agent as a tool that works in the background, and the tools that control its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...runtime.data.run_result import RunStatus
from ...runtime.errors import CheckpointNotFound, ToolError, UsageError
from ..tools.tool import Tool, tool
from ..tools.tool_context import ToolContext, call_state_of
from .agent_tool import AgentTool, request_of

if TYPE_CHECKING:
    from ...runtime.agent.run_context import RunTasks
    from ..agent import Agent

__all__ = ["BackgroundAgentTool", "background_tool", "control_tools"]

_LONGEST_WAIT: Final = 60.0


class BackgroundAgentTool(AgentTool):
    """The tool that `agent.as_tool(background=True)` returns."""

    plays_agent = False
    controls: bool
    """Whether the agent that has it also gets the tools that control tasks."""

    @property
    def background_agent(self) -> Agent:
        """The agent that works in the background."""
        agent: Agent = self.__dict__["agent"]
        return agent

    async def _play(self, context: ToolContext, arguments: Any) -> object:
        seconds = self.__dict__["_after"] or 0.0
        text = request_of(context, arguments, typed=self.__dict__["_typed"])
        task_id = await call_state_of(context).start_task(self.background_agent, text, seconds)
        if seconds:
            result = await _tasks_of(context).result_in_time(task_id, seconds)
            if result is not None:
                return _answer(result, self.agent_name)
        return (
            f"Task {task_id} has started: {self.agent_name} works on it in the background. Its end "
            "is reported to you."
        )


def background_tool(
    agent: Agent,
    *,
    name: str | None,
    description: str | None,
    parameters: Any,
    full_history: bool,
    emit_events: bool,
    after: float | None,
    controls: bool,
) -> Tool:
    """Return the tool. Raise `UsageError` if the options do not fit each other."""
    if full_history or emit_events:
        msg = (
            f"{agent.name}.as_tool(background=True): full_history and emit_events are for calls "
            "that are waited for. A task gets its request alone, and its events are those of its "
            "own run."
        )
        raise UsageError(msg, agent=agent.name)
    if after is not None and (
        isinstance(after, bool) or not isinstance(after, int | float) or not after > 0
    ):
        msg = (
            f"{agent.name}.as_tool(): background_after must be a number of seconds above 0, got "
            f"{after!r:.80}."
        )
        raise UsageError(msg, agent=agent.name)
    made = BackgroundAgentTool(
        agent,
        name=name,
        description=description,
        parameters=parameters,
        full_history=False,
        emit_events=False,
    )
    made.__dict__["_after"] = after
    made.__dict__["controls"] = controls
    return made


def _tasks_of(context: ToolContext) -> RunTasks:
    tasks = context.run.background
    if tasks is None:
        msg = (
            "a background task needs a store that keeps its run. Give the Runner a store: "
            "store=SQLiteStore('runs.db')."
        )
        raise UsageError(msg, run=context.run_id, agent=context.agent_name)
    return tasks


async def _status(tasks: RunTasks, task_id: str) -> str:
    info = await tasks.info(task_id)
    if info.status is RunStatus.COMPLETED:
        return f"completed: {(await tasks.task(task_id).result()).final_output}"
    waits = "; ".join(f"{one.info}" for one in info.waiting)
    return f"{info.status.value}{f': {info.error or waits}' if info.error or waits else ''}"


def _answer(result: Any, agent_name: str) -> str:
    if result.status is RunStatus.COMPLETED:
        return str(result.final_output)
    msg = f"agent {agent_name} has ended as {result.status.value}: {result.error}"
    raise ToolError(msg, agent=agent_name)


@tool
async def task_status(context: ToolContext, task_id: str) -> str:
    """Return the status of a background task, and its result if it has ended."""
    tasks = await _own(context, task_id)
    return await _status(tasks, task_id)


@tool
async def task_send(context: ToolContext, task_id: str, text: str) -> str:
    """Send a message to a background task that is running: what it is to know, or to do."""
    await (await _own(context, task_id)).task(task_id).send(text)
    return "sent"


@tool
async def task_wait(context: ToolContext, task_id: str, seconds: float) -> str:
    """Wait at most 60 seconds for the end of a background task, and return its status then."""
    tasks = await _own(context, task_id)
    await tasks.wait(task_id, min(max(seconds, 0.0), _LONGEST_WAIT))
    return await _status(tasks, task_id)


@tool
async def task_stop(context: ToolContext, task_id: str) -> str:
    """Stop a background task."""
    stopped = await (await _own(context, task_id)).task(task_id).stop()
    return "stopped" if stopped else "it has ended already"


def control_tools() -> tuple[Tool, ...]:
    """Return the tools that a model gets with an agent that works in the background."""
    return task_status, task_send, task_wait, task_stop


async def _own(context: ToolContext, task_id: str) -> RunTasks:
    """Return the tasks of the run. Raise if the task is not one of its session."""
    tasks = _tasks_of(context)
    try:
        await tasks.require(task_id, context.run.session_id or "")
    except CheckpointNotFound as error:
        raise ToolError(str(error), agent=context.agent_name) from None
    return tasks
