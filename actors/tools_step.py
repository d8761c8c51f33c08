"""One round of tool calls: all calls of one reply of the model.

Owns: their concurrency, retries, timeouts, approval, and what becomes of their errors. Each result is emitted as an event when it is there; that of a tool
which returns directly comes after all others. When a round ends, no task of it is left.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..runtime.chat import Message, ToolCall, new_id
from ..runtime.context import AgentContext
from ..runtime.either import settled
from ..runtime.errors import AgentError, ToolError, text_of
from ..runtime.events import AgentEvent, Exit, Interrupted
from ..runtime.history import TRANSFER_TOOL
from ..runtime.interrupt import InterruptContext
from .tool import Tool, ToolArgumentsError
from .tool_context import ToolContext, ToolInterrupted
from .tool_result import tool_content
from .transfer import transfer_tool

if TYPE_CHECKING:
    from .middleware import Middleware

__all__ = ["ApprovalRequest", "Round", "ToolPolicy"]

_SECOND_TRANSFER: Final = "Multiple transfers detected, ignoring this one."
_TRANSFER_AT_EXIT: Final = "The run ends here, ignoring this transfer."


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What an interrupt says of a call that needs approval."""

    tool_name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How an agent calls its tools."""

    tools: Mapping[str, Tool]
    direct: frozenset[str]  # after a call of one of these, the model is not called again
    raises: bool  # whether an error of a tool is the agent's, instead of being told to the model
    parallel: bool
    unknown: Callable[..., Any] | None
    wrappers: Sequence[Middleware]
    exit_name: str | None  # the tool whose success ends the run


class Round:
    """The calls of one reply that have no result yet."""

    __slots__ = ("_context", "_crash", "_errors", "_failed", "_hooked", "_interrupts", "_policy", "_returned")

    def __init__(self, policy: ToolPolicy, context: AgentContext, *, hooked: bool) -> None:
        self._policy = policy
        self._context = context
        self._hooked = hooked
        self._crash: BaseException | None = None  # what no tool should raise: it is the end of the agent's actor
        self._errors: list[ToolError] = []
        self._interrupts: list[InterruptContext] = []
        self._returned: AgentEvent | None = None  # the event of the call that returns directly, which comes last
        self._failed: set[str] = set()  # the calls that failed, which was told to the model

    async def play(self, calls: Sequence[ToolCall], all_calls: Sequence[ToolCall]) -> bool:
        """Make the calls. Returns whether the agent is to end now. Raises the first error that is the agent's."""
        exits = next((call.id for call in all_calls if call.name == self._policy.exit_name), None)
        transfers = self._policy.tools.get(TRANSFER_TOOL) is transfer_tool
        first_transfer = next((call.id for call in all_calls if call.name == TRANSFER_TOOL), None) if transfers else None
        last = exits or first_transfer or next((call.id for call in reversed(all_calls) if call.name in self._policy.direct), None)
        works = []
        for call in calls:
            if transfers and call.name == TRANSFER_TOOL and call.id != last:
                works.append(self._ignore(call, _TRANSFER_AT_EXIT if exits is not None else _SECOND_TRANSFER))
            else:
                works.append(self._make(call, comes_last=call.id == last))
        if len(works) == 1:
            await self._guarded(works[0])
        elif self._policy.parallel:
            await self._all_at_once(works)
        else:
            await self._one_by_one(works)
        if self._crash is not None:
            msg = f"agent {self._context.agent_name!r}: a tool crashed with {type(self._crash).__name__}: {text_of(self._crash)}"
            raise AgentError(msg, run=self._context.run_id, agent=self._context.agent_name) from self._crash
        ends = self._returned is not None and last not in self._failed and not self._errors and not self._interrupts
        if ends:
            self._context.notes["returned"] = True
        if self._returned is not None:
            await self._context.emit(self._returned if ends else AgentEvent.of(self._returned.message))
        if self._errors:
            raise self._errors[0]
        if self._interrupts:
            await self._context.emit(AgentEvent.of(action=Interrupted(tuple(self._interrupts))))
        return ends or self._context.invocation.outcome is not None

    async def _all_at_once(self, works: list[Any]) -> None:
        tasks = [self._context.create_task(self._guarded(work)) for work in works]
        try:
            for task in tasks:
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for work in works:
                work.close()  # one whose task was cancelled before its first step has not begun

    async def _guarded(self, work: Awaitable[None]) -> None:
        """What is no ordinary exception must not leave a task of asyncio's: it might end the loop, and everybody on it."""
        try:
            await work
        except (asyncio.CancelledError, Exception):
            raise
        except BaseException as crash:  # noqa: BLE001 -- it is the end of the agent's actor
            self._crash = crash

    async def _one_by_one(self, works: list[Any]) -> None:
        try:
            for work in works:
                if self._interrupts or self._crash is not None:
                    break
                await self._guarded(work)
        finally:
            for work in works:
                work.close()

    async def _ignore(self, call: ToolCall, why: str) -> None:
        await self._context.emit(AgentEvent.of(Message.tool(why, call.id, call.name)))

    async def _make(self, call: ToolCall, *, comes_last: bool) -> None:
        """Make one call, and have its result shown."""
        context = ToolContext(self._context, call)
        tool = self._policy.tools.get(call.name)
        if self._hooked and tool is not None:
            await self._context.call_hooks("on_tool_start", self._context.node.agent, tool, call)
        try:
            content = await self._content(context, tool, call)
        except ToolInterrupted as signal:
            address = (*self._context.invocation.address, context.address_step)
            self._interrupts.append(InterruptContext(new_id(), address, signal.info))
            return
        except ToolError as error:
            error.agent = error.agent or self._context.agent_name
            error.run = error.run or self._context.run_id
            context.forget_action()
            if self._policy.raises:
                self._errors.append(error)
                return
            content = str(error)
            self._failed.add(call.id)
        else:
            if call.name == self._policy.exit_name and context.action is None:
                context.send_action(Exit())
        message = Message("tool", content, (), call.id, call.name)
        if self._hooked and tool is not None:
            await self._context.call_hooks("on_tool_end", self._context.node.agent, tool, message)
        event = AgentEvent.of(message, context.action)
        if comes_last:
            self._returned = event
        else:
            await self._context.emit(event)

    async def _content(self, context: ToolContext, tool: Tool | None, call: ToolCall) -> Any:
        """The content of the result. Raises ToolError, whatever went wrong."""
        try:
            if tool is None:
                return tool_content(await self._unknown(call))
            await _approve(context, tool, call)
            if not self._policy.wrappers:
                return tool_content(await _call(context, tool, call))
            return tool_content(await self._wrapped(context, tool, call))
        except ToolArgumentsError as error:
            raise ToolArgumentsError(_one_line(str(error)), agent=self._context.agent_name, message=call) from error
        except ToolError:
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._context.is_over or (task is not None and task.cancelling()):
                raise
            msg = f"tool {call.name} was cancelled from within"
            raise ToolError(msg, agent=self._context.agent_name, message=call) from error
        except Exception as error:
            text = f"tool {call.name} failed: {type(error).__name__}: {text_of(error)}"
            raise ToolError(_one_line(text), agent=self._context.agent_name, message=call) from error
        finally:
            context.end()

    async def _unknown(self, call: ToolCall) -> Any:
        if self._policy.unknown is not None:
            return await settled(self._policy.unknown(call.name, call.arguments))
        known = ", ".join(sorted(self._policy.tools)) or "none at all"
        msg = f"there is no tool named {call.name!r}. The tools that exist: {known}."
        raise ToolError(msg, agent=self._context.agent_name, message=call)

    async def _wrapped(self, context: ToolContext, tool: Tool, call: ToolCall) -> Any:
        async def innermost(given: ToolCall) -> Any:
            return await _call(context, tool, given)

        work: Callable[[ToolCall], Awaitable[Any]] = innermost
        for middleware in reversed(self._policy.wrappers):
            work = _around(middleware, context, work)
        return await work(call)


def _around(middleware: Middleware, context: ToolContext, inner: Callable[[ToolCall], Awaitable[Any]]) -> Callable[[ToolCall], Awaitable[Any]]:
    async def outer(call: ToolCall) -> Any:
        return await settled(middleware.wrap_tool(context, call, inner))

    return outer


async def _approve(context: ToolContext, tool: Tool, call: ToolCall) -> None:
    """Interrupt, if the call needs to be approved first."""
    needed = tool.needs_approval
    if not needed:
        return
    tool.check_arguments(call.arguments)  # nobody is asked to approve what cannot be called
    if callable(needed):
        needed = await settled(needed(context, json.loads(call.arguments or "{}")))
    if needed:
        context.interrupt(ApprovalRequest(call.name, call.arguments))


async def _call(context: ToolContext, tool: Tool, call: ToolCall) -> Any:
    """Call the tool, as often and as long as it may. Arguments that are not valid do not become so by trying again."""
    if not tool.retries and tool.timeout is None:
        return await tool.invoke(context, call.arguments)
    attempt = 0
    while True:
        try:
            return await _within(context, tool, call)
        except ToolArgumentsError:
            raise
        except Exception:
            context.forget_action()
            attempt += 1
            if attempt > tool.retries:
                raise


async def _within(context: ToolContext, tool: Tool, call: ToolCall) -> Any:
    if tool.timeout is None:
        return await tool.invoke(context, call.arguments)
    limit = asyncio.timeout(tool.timeout)
    try:
        async with limit:
            return await tool.invoke(context, call.arguments)
    except TimeoutError as error:
        if not limit.expired():
            raise  # the tool's own
        msg = f"tool {tool.name} took longer than {tool.timeout:g} s, and was ended"
        raise ToolError(msg, message=call) from error


def _one_line(text: str) -> str:
    return " ".join(text.split())
