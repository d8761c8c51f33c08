"""One round of tool calls: all calls of one reply of the model.

Owns: their concurrency, retries, timeouts, and what becomes of their errors and interrupts. Each result is emitted as an event when it is there; that of a tool
which returns directly comes after all others. When a round ends, no task of it is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from ...runtime.agent.door import AgentDoor
from ...runtime.agent.history import TRANSFER_TOOL
from ...runtime.data.chat import Message, ToolCall, new_message
from ...runtime.data.events import Action, AgentEvent, Exit, Interrupted, TransferToAgent, unstamped
from ...runtime.data.interrupt import InterruptContext
from ...runtime.errors import AgentError, GuardrailTripped, HandoffError, ToolError, TransferError, text_of
from ...runtime.maybe_await import maybe_await
from ..handoffs.handoff import Handoff
from ..handoffs.transfer import TransferTool, transfer_target
from ..tools.approval import Denied, approved
from ..tools.call_door import CallDoor, ToolInterrupted
from ..tools.tool import Tool, ToolArgumentsError
from ..tools.tool_context import ToolContext
from ..tools.tool_guardrail import ToolInputGuardrailData, ToolOutputGuardrailData, check_tool
from ..tools.tool_result import tool_content
from .tool_call import call_tool, log_failure, one_line

if TYPE_CHECKING:
    from ...runtime.telemetry.watch import RunWatch
    from ..middleware import Middleware

__all__ = ["FAILED", "RESULT_LAST", "Round", "ToolPolicy"]

RESULT_LAST: Final = "held"
"""Where an agent notes the result of a call that returns directly, until all others of the reply are there: id of the call, message, action."""

FAILED: Final = "failed"
"""Where an agent notes the calls whose failure is its own, until all others of the reply are there: id and text of each."""

_SECOND_HANDOFF: Final = "Multiple handoffs detected, ignoring this one."
_SECOND_TRANSFER: Final = "Multiple transfers detected, ignoring this one."
_TRANSFER_AT_EXIT: Final = "The run ends here, ignoring this transfer."


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """How an agent calls its tools."""

    tools: Mapping[str, Tool]
    direct: frozenset[str]  # after a call of one of these, the model is not called again
    raises: bool  # whether an error of a tool is the agent's, instead of being told to the model
    parallel: bool
    unknown: Callable[..., object] | None
    wrappers: Sequence[Middleware]
    exit_name: str | None  # the tool whose success ends the run
    handoffs: Mapping[str, Handoff]
    several: Literal["first", "last", "error"]  # what becomes of several handoffs in one reply
    output_key: str | None  # the session value that the agent's last message is put in


class Round:
    """The calls of one reply that have no result yet."""

    __slots__ = ("_crash", "_door", "_errors", "_final", "_hooked", "_interrupts", "_off", "_policy", "_stopped", "handoff", "rivals")

    def __init__(
        self, policy: ToolPolicy, door: AgentDoor, *, hooked: bool, off: Collection[str] = (), final: Callable[[Any], Awaitable[None]] | None = None
    ) -> None:
        self._off = off  # handoffs that the model was not shown
        self._final = final  # what looks at a result with which the agent ends
        self.handoff: ToolCall | None = None  # the one that is to be carried out now
        self.rivals: list[str] = []  # those that were called beside it
        self._policy = policy
        self._door = door
        self._hooked = hooked
        self._crash: BaseException | None = None  # what no tool should raise: it is the end of the agent's actor
        self._errors: list[AgentError] = []
        self._interrupts: list[InterruptContext] = []
        self._stopped = False  # whether the run is to end before the calls that are left

    async def play(self, calls: Sequence[ToolCall], all_calls: Sequence[ToolCall]) -> bool:
        """Make the calls. Returns whether the agent is to end now. Raises the first error that is the agent's."""
        notes = self._door.invocation.notes
        if notes is not None and FAILED in notes:
            where = {"run": self._door.run.run_id, "agent": self._door.agent_name}
            self._errors += [ToolError(text, **where) for _, text in notes[FAILED]]
        leaving = [call for call in all_calls if self._leaves(call)]
        exits, last = self._last_of(all_calls, leaving)
        works = []
        for call in calls:
            if call.id != last and leaving and self._leaves(call):
                several = _SECOND_HANDOFF if call.name in self._policy.handoffs else _SECOND_TRANSFER
                works.append(self._ignore(call, _TRANSFER_AT_EXIT if exits is not None else several))
            elif call.id == last and self._hands_off(call):
                self.handoff = call
                self.rivals = [other.name for other in leaving if other is not call]
            else:
                works.append(self._make(call, comes_last=call.id == last))
        if len(works) <= 1:
            for work in works:
                await self._guarded(work)
        elif self._policy.parallel:
            await self._all_at_once(works)
        else:
            await self._one_by_one(works)
        if self._crash is not None:
            msg = f"agent {self._door.agent_name!r}: a tool crashed with {type(self._crash).__name__}: {text_of(self._crash)}"
            raise AgentError(msg, run=self._door.run.run_id, agent=self._door.agent_name) from self._crash
        door, notes = self._door, self._door.invocation.notes  # the calls may have made them
        if self._interrupts or self._errors or self._stopped:
            self.handoff = None  # not now
        if self._interrupts and not self._errors:
            await door.emit(AgentEvent.of(action=Interrupted(tuple(self._interrupts))))
            return True
        if self._stopped:
            await door.pause()
        if notes is not None and RESULT_LAST in notes:
            _, failed, message, action = notes[RESULT_LAST]
            ends = not failed and not self._errors
            if ends and self._final is not None:
                await self._final(message.text)
            del notes[RESULT_LAST]  # with the event: they are recorded together
            if ends:
                notes["returned"] = True
            await self._show(message, action if ends else None)
        else:
            ends = False
        if self._errors:
            if notes is not None and notes.pop(FAILED, None) and door.node.agent.on_failure is not None:
                await door.save()  # it is started again, and makes these calls again
            raise self._errors[0]
        return ends or door.invocation.outcome is not None

    def _last_of(self, all_calls: Sequence[ToolCall], leaving: Sequence[ToolCall]) -> tuple[str | None, str | None]:
        """The call that exits, and the one whose result comes last: that one, or the one by which the agent leaves, or the last one that returns directly."""
        policy = self._policy
        exits = None if policy.exit_name is None else next((call.id for call in all_calls if call.name == policy.exit_name), None)
        chosen = self._chosen(leaving) if leaving else None
        if exits is not None or chosen is not None:
            return exits, exits or (None if chosen is None else chosen.id)
        return None, next((call.id for call in reversed(all_calls) if call.name in policy.direct), None) if policy.direct else None

    def _leaves(self, call: ToolCall) -> bool:
        """Whether the agent would leave by it: not by a transfer to an agent that does not exist."""
        if call.name != TRANSFER_TOOL or not isinstance(self._policy.tools.get(TRANSFER_TOOL), TransferTool):
            return self._hands_off(call)
        return transfer_target(call, self._door.node) is not None

    def _hands_off(self, call: ToolCall) -> bool:
        handoff = self._policy.handoffs.get(call.name)
        return handoff is not None and handoff.mode == "transfer" and call.name not in self._off

    def _chosen(self, leaving: Sequence[ToolCall]) -> ToolCall:
        """By which of these the agent leaves."""
        if len(leaving) > 1 and self._policy.several == "error":
            names = ", ".join(call.name for call in leaving)
            msg = f"agent {self._door.agent_name!r}: its model wants to hand over {len(leaving)} times at once: {names}."
            raise HandoffError(msg, run=self._door.run.run_id, agent=self._door.agent_name)
        return leaving[-1 if self._policy.several == "last" else 0]

    async def _all_at_once(self, works: list[Any]) -> None:
        tasks = [self._door.create_task(self._guarded(work)) for work in works]
        for task, work in zip(tasks, works, strict=True):
            task.add_done_callback(partial(_close, work))  # one that was cancelled before its first step has not begun it
        try:
            for task in tasks:
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
                if self._door.run.stopping is not None:
                    self._stopped = True
                    break
                await self._guarded(work)
        finally:
            for work in works:
                work.close()

    async def _ignore(self, call: ToolCall, why: str) -> None:
        await self._door.emit(AgentEvent.of(Message.tool(why, call.id, call.name)))

    async def _make(self, call: ToolCall, *, comes_last: bool) -> None:
        """Make one call, and have its result shown."""
        agent = self._door
        if agent.invocation.is_cancelled:
            raise asyncio.CancelledError("the run has ended before this call was begun")
        answers = agent.invocation.answers
        answer = None if answers is None else answers.get(call.id)
        call_door = CallDoor(agent, call, answer)
        if answer is not None and not answer.is_target:
            # It waits on, for the same thing.
            pending = answer.pending
            self._interrupts.append(
                agent.note_interrupt(pending.context.info, pending.state, call_door.address_step, approval=pending.approval, earlier=pending.earlier)
            )
            return
        tool = None if call.name in self._off else self._policy.tools.get(call.name)
        if self._hooked and tool is not None:
            await agent.call_hooks("on_tool_start", agent.node.agent, tool, call)
        if agent.run.lease is not None:
            await agent.make_sure()
        busy = tool is None or not tool.plays_agent
        agent.invocation.busy += busy
        try:
            watch = agent.run.watch
            message, failed = await (self._message(call_door, tool, call) if watch is None else self._watched(watch, call_door, tool, call))
            if message is not None and comes_last:
                agent.notes[RESULT_LAST] = (call.id, failed, message, call_door.action)
                await agent.save()
            elif message is not None:
                second = call.name == self._policy.exit_name  # the first exit ends the run, behind all other calls
                await self._show(message, None if second else call_door.action)
        finally:
            agent.invocation.busy -= busy  # not before its result is recorded: the run would come to rest without it
        if agent.run.stopping is not None:
            await agent.rest()

    async def _watched(self, watch: RunWatch, call_door: CallDoor, tool: Tool | None, call: ToolCall) -> tuple[Message | None, bool]:
        """The same, with something that looks on."""
        invocation = self._door.invocation
        opened, message, problem = watch.tool_begins(invocation, call), None, None
        before = len(self._errors)
        try:
            message, failed = await self._message(call_door, tool, call)
        except BaseException as error:
            problem = error
            raise
        else:
            if failed:
                problem = self._errors[before] if len(self._errors) > before else call_door.problem
            return message, failed
        finally:
            watch.tool_ends(invocation, call, opened, message, problem, is_known=tool is not None)

    async def _message(self, call_door: CallDoor, tool: Tool | None, call: ToolCall) -> tuple[Message | None, bool]:
        """The result of the call, and whether it has failed. No result: it waits for something from outside, or its failure is the agent's."""
        agent = self._door
        failed = False
        try:
            content = await self._content(call_door, tool, call)
        except ToolInterrupted as signal:
            self._interrupts += signal.contexts
            return None, False
        except (GuardrailTripped, HandoffError) as error:
            error.agent, error.run = error.agent or agent.agent_name, error.run or agent.run.run_id
            self._errors.append(error)
            return None, True
        except (ToolError, TransferError) as error:
            error.agent = error.agent or agent.agent_name
            error.run = error.run or agent.run.run_id
            log_failure(call, error)
            call_door.forget_action()
            if self._policy.raises and not isinstance(error, Denied):
                self._errors.append(error)
                agent.notes[FAILED] = [*agent.notes.get(FAILED, ()), (call.id, str(error))]
                await agent.save()
                return None, True
            content = str(error)
            failed = True
            call_door.problem = error
        else:
            if call.name == self._policy.exit_name and call_door.action is None:
                call_door.send_action(Exit())
        message = new_message("tool", content, (), call.id, call.name)
        if self._hooked and tool is not None:
            await agent.call_hooks("on_tool_end", agent.node.agent, tool, message)
        return message, failed

    async def _show(self, message: Message, action: Action | None) -> None:
        """Have a result recorded. With an exit or a transfer its agent has ended, and is not asked again: what it leaves behind is recorded with it."""
        if isinstance(action, Exit | TransferToAgent) and self._policy.output_key is not None:
            self._door.run.session[self._policy.output_key] = message.text
        event = unstamped(message, action)
        if self._door.noted(event) is None:
            await self._door.emit(event)

    async def _content(self, call_door: CallDoor, tool: Tool | None, call: ToolCall) -> Any:
        """The content of the result. Raises ToolError, whatever went wrong."""
        context = ToolContext(call_door)
        try:
            if tool is None:
                return tool_content(await self._unknown(call))
            if tool.needs_approval:
                call = await approved(context, tool, call)
            if tool.input_guardrails:
                instead = await check_tool(tool.input_guardrails, ToolInputGuardrailData(self._door.run, self._door.node.agent, call))
                if instead is not None:
                    return instead
            content = tool_content(await (call_tool(context, tool, call) if not self._policy.wrappers else self._wrapped(context, tool, call)))
            if tool.output_guardrails:
                instead = await check_tool(tool.output_guardrails, ToolOutputGuardrailData(self._door.run, self._door.node.agent, call, content))
                return content if instead is None else instead
            return content  # noqa: TRY300 -- what has gone wrong is below
        except ToolArgumentsError as error:
            raise ToolArgumentsError(one_line(str(error)), agent=self._door.agent_name, message=call) from error
        except (ToolError, TransferError):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._door.is_over or (task is not None and task.cancelling()):
                raise
            msg = f"tool {call.name} was cancelled from within"
            raise ToolError(msg, agent=self._door.agent_name, message=call) from error
        except GeneratorExit as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is None:
                raise  # this coroutine is being closed: what a tool raises comes from further down
            msg = f"tool {call.name} failed: GeneratorExit"
            raise ToolError(msg, agent=self._door.agent_name, message=call) from error
        except Exception as error:
            if (isinstance(error, GuardrailTripped) and error.message is call) or (isinstance(error, HandoffError) and call.name in self._policy.handoffs):
                raise  # not the tool's: what stands before and behind it
            text = f"tool {call.name} failed: {type(error).__name__}: {text_of(error)}"
            raise ToolError(one_line(text), agent=self._door.agent_name, message=call) from error
        finally:
            call_door.end()

    async def _unknown(self, call: ToolCall) -> object:
        if self._policy.unknown is not None:
            return await maybe_await(self._policy.unknown(call.name, call.arguments))
        names = {*self._policy.tools, *self._policy.handoffs}.difference(self._off)
        known = ", ".join(sorted(names)) or "none at all"
        msg = f"there is no tool named {call.name!r}. The tools that exist: {known}."
        raise ToolError(msg, agent=self._door.agent_name, message=call)

    async def _wrapped(self, context: ToolContext, tool: Tool, call: ToolCall) -> object:
        async def innermost(given: ToolCall) -> object:
            return await call_tool(context, tool, given)

        work: Callable[[ToolCall], Awaitable[object]] = innermost
        for middleware in reversed(self._policy.wrappers):
            work = _around(middleware, context, work)
        return await work(call)


def _around(middleware: Middleware, context: ToolContext, inner: Callable[[ToolCall], Awaitable[object]]) -> Callable[[ToolCall], Awaitable[object]]:
    async def outer(call: ToolCall) -> object:
        return await maybe_await(middleware.wrap_tool(context, call, inner))

    return outer


def _close(work: Any, _task: object) -> None:
    work.close()
