"""One round of tool calls: all calls of one reply of the model.

It handles their concurrency, errors and interrupts. Each result is emitted as an event as soon as
it arrives; the result of a tool that returns directly comes after all others. When a round ends,
none of its tasks is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.history import TRANSFER_TOOL
from ...runtime.data.chat import Message, ToolCall
from ...runtime.data.events import Action, AgentEvent, Exit, Interrupted, TransferToAgent
from ...runtime.data.interrupt import InterruptContext, due_of
from ...runtime.data.whole_reply import cut_off_calls, why_cut_off
from ...runtime.errors import (
    AgentError,
    GuardrailTripped,
    HandoffError,
    ToolError,
    TransferError,
    text_of,
)
from ...runtime.maybe_await import maybe_await
from ..handoffs.handoff import Handoff
from ..handoffs.transfer import TransferTool, transfer_target
from ..tools.approval import Denied, approved
from ..tools.tool import Tool, ToolArgumentsError
from ..tools.tool_call_state import ToolCallState, ToolInterrupted
from ..tools.tool_context import ToolContext
from ..tools.tool_guardrail import ToolInputGuardrailData, ToolOutputGuardrailData, check_tool
from ..tools.tool_result import tool_content
from .tool_call import call_tool, log_failure, one_line

if TYPE_CHECKING:
    from ...runtime.telemetry.run_telemetry import RunTelemetry
    from ..middleware import Middleware

__all__ = ["FAILED", "RESULT_LAST", "ToolPolicy", "ToolRound"]

RESULT_LAST: Final = "held"
"""The key of the note for the result of a call that returns directly.

The note exists until all other results of the reply arrive. It contains the call's id, whether it
failed, the message and the action.
"""

FAILED: Final = "failed"
"""The key of the note for the calls that fail the agent.

The note exists until all other results of the reply arrive. It contains the id and the text of
each.
"""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

_SECOND_TRANSFER: Final = "Multiple transfers detected, ignoring this one."
_TRANSFER_AT_EXIT: Final = "The run ends here, ignoring this transfer."


@dataclass(frozen=True, slots=True)
class ToolPolicy:
    """The rules for calling an agent's tools."""

    tools: Mapping[str, Tool]
    direct: frozenset[str]  # the tools after whose call the model is not called again
    # whether an error of a tool fails the agent, instead of being returned to the model
    raises: bool
    parallel: bool
    unknown: Callable[..., object] | None
    wrappers: Sequence[Middleware]
    exit_name: str | None  # the tool whose success ends the run
    handoffs: Mapping[str, Handoff]
    several: Literal["first", "last", "error"]  # the choice among several handoffs in one reply
    second_handoff: str  # the result of a handoff that is not followed
    output_key: str | None  # the session key for the agent's last message


class ToolRound:
    """The calls of one reply that have no result yet."""

    __slots__ = (
        "_crash",
        "_cut_off",
        "_errors",
        "_final",
        "_hooked",
        "_interrupts",
        "_off",
        "_policy",
        "_runtime",
        "_stopped",
        "handoff",
        "rivals",
    )

    def __init__(
        self,
        policy: ToolPolicy,
        runtime: AgentRuntime,
        *,
        hooked: bool,
        off: Collection[str] = (),
        final: Callable[[Any], Awaitable[None]] | None = None,
    ) -> None:
        self._off = off  # handoffs that the model was not shown
        self._final = final  # checks a result that ends the agent
        self.handoff: ToolCall | None = None  # the handoff to perform now
        self.rivals: list[str] = []  # the other handoffs of the same reply
        self._policy = policy
        self._runtime = runtime
        self._hooked = hooked
        # Not an ordinary exception: it ends the agent's actor.
        self._crash: BaseException | None = None
        self._errors: list[AgentError] = []
        self._interrupts: list[InterruptContext] = []
        # The reason a call has incomplete arguments, by the id of the call.
        self._cut_off: Mapping[str, str] = _NONE
        self._stopped = False  # whether the run stops before the remaining calls

    async def play(self, calls: Sequence[ToolCall], reply: Message) -> bool:
        """Make these calls of the reply.

        Returns whether the agent ends now. Raises the first error that fails the agent.
        """
        notes = self._runtime.invocation.notes
        if notes is not None and FAILED in notes:
            where = {"run": self._runtime.run.run_id, "agent": self._runtime.agent_name}
            self._errors += [ToolError(text, **where) for _, text in notes[FAILED]]
        self._cut_off = (
            dict.fromkeys(cut_off_calls(reply), why_cut_off(reply))
            if reply.finish_reason is not None
            else _NONE
        )
        all_calls = (
            [call for call in reply.tool_calls if call.id not in self._cut_off]
            if self._cut_off
            else reply.tool_calls
        )
        leaving = [call for call in all_calls if self._leaves(call)]
        exits, last = self._last_of(all_calls, leaving)
        works = []
        for call in calls:
            if call.id != last and leaving and call.id not in self._cut_off and self._leaves(call):
                several = (
                    self._policy.second_handoff
                    if call.name in self._policy.handoffs
                    else _SECOND_TRANSFER
                )
                works.append(
                    self._ignore(call, _TRANSFER_AT_EXIT if exits is not None else several)
                )
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
            msg = (
                f"agent {self._runtime.agent_name!r}: a tool crashed with "
                f"{type(self._crash).__name__}: {text_of(self._crash)}"
            )
            raise AgentError(
                msg, run=self._runtime.run.run_id, agent=self._runtime.agent_name
            ) from self._crash
        # read again: the calls may have created them
        runtime, notes = self._runtime, self._runtime.invocation.notes
        if self._interrupts or self._errors or self._stopped:
            self.handoff = None  # not in this round
        if self._interrupts and not self._errors:
            await runtime.emit(AgentEvent.of(action=Interrupted(tuple(self._interrupts))))
            return True
        if self._stopped:
            await runtime.pause()
        if notes is not None and RESULT_LAST in notes:
            _, failed, message, action = notes[RESULT_LAST]
            ends = not failed and not self._errors
            if ends and self._final is not None:
                await self._final(message.text)
            del notes[RESULT_LAST]  # recorded together with the event
            if ends:
                notes["returned"] = True
            await self._show(message, action if ends else None)
        else:
            ends = False
        if self._errors:
            if (
                notes is not None
                and notes.pop(FAILED, None)
                and runtime.node.agent.on_failure is not None
            ):
                await runtime.save()  # the agent is restarted, and makes these calls again
            self._raise_first()
        return ends or runtime.invocation.outcome is not None

    def _raise_first(self) -> NoReturn:
        error = self._errors[0]
        self._errors.clear()
        try:
            raise error
        finally:
            del error  # its traceback has this frame

    def _last_of(
        self, all_calls: Sequence[ToolCall], leaving: Sequence[ToolCall]
    ) -> tuple[str | None, str | None]:
        """Return the call that exits, and the call whose result comes last.

        The last one is the exit, or the call by which the agent leaves, or the last call that
        returns directly.
        """
        policy = self._policy
        exits = (
            None
            if policy.exit_name is None
            else next((call.id for call in all_calls if call.name == policy.exit_name), None)
        )
        chosen = self._chosen(leaving) if leaving else None
        if exits is not None or chosen is not None:
            return exits, exits or (None if chosen is None else chosen.id)
        return None, next(
            (call.id for call in reversed(all_calls) if call.name in policy.direct), None
        ) if policy.direct else None

    def _leaves(self, call: ToolCall) -> bool:
        """Return whether the agent would leave by this call.

        A transfer to an unknown agent does not count.
        """
        if call.name != TRANSFER_TOOL or not isinstance(
            self._policy.tools.get(TRANSFER_TOOL), TransferTool
        ):
            return self._hands_off(call)
        return transfer_target(call, self._runtime.node) is not None

    def _hands_off(self, call: ToolCall) -> bool:
        handoff = self._policy.handoffs.get(call.name)
        return handoff is not None and handoff.mode == "transfer" and call.name not in self._off

    def _chosen(self, leaving: Sequence[ToolCall]) -> ToolCall:
        """Return the call by which the agent leaves."""
        if len(leaving) > 1 and self._policy.several == "error":
            names = ", ".join(call.name for call in leaving)
            msg = (
                f"agent {self._runtime.agent_name!r}: its model hands off {len(leaving)} times at "
                f"once: {names}. Pass multiple_handoffs='first' or 'last' to allow it."
            )
            raise HandoffError(msg, run=self._runtime.run.run_id, agent=self._runtime.agent_name)
        return leaving[-1 if self._policy.several == "last" else 0]

    async def _all_at_once(self, works: list[Any]) -> None:
        tasks = [self._runtime.create_task(self._guarded(work), "a tool") for work in works]
        for task, work in zip(tasks, works, strict=True):
            # Closes a coroutine whose task was cancelled before its first step.
            task.add_done_callback(partial(_close, work))
        try:
            for task in tasks:
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Catch the exceptions that would end the event loop if a task raised them."""
        try:
            await work
        except (asyncio.CancelledError, Exception):
            raise
        except BaseException as crash:  # noqa: BLE001 -- it ends the agent's actor
            self._crash = crash

    async def _one_by_one(self, works: list[Any]) -> None:
        try:
            for work in works:
                if self._interrupts or self._crash is not None:
                    break
                if self._runtime.run.stopping is not None:
                    self._stopped = True
                    break
                await self._guarded(work)
        finally:
            for work in works:
                work.close()

    async def _ignore(self, call: ToolCall, why: str) -> None:
        await self._runtime.emit(AgentEvent.of(Message.tool(why, call.id, call.name)))

    async def _make(self, call: ToolCall, *, comes_last: bool) -> None:
        """Make one call, and have its result recorded."""
        runtime = self._runtime
        if runtime.invocation.is_cancelled:
            raise asyncio.CancelledError("the run ended before this tool call started")
        answers = runtime.invocation.answers
        answer = None if answers is None else answers.get(call.id)
        call_state = ToolCallState(runtime, call, answer)
        if answer is not None and not answer.is_target:
            # It still waits for the same answer.
            pending = answer.pending
            self._interrupts.append(
                runtime.note_interrupt(
                    pending.context.info,
                    pending.state,
                    call_state.address_step,
                    approval=pending.approval,
                    earlier=pending.earlier,
                    due=due_of(pending.context),
                )
            )
            return
        tool = None if call.name in self._off else self._policy.tools.get(call.name)
        if self._hooked and tool is not None:
            await runtime.call_hooks("on_tool_start", runtime.node.agent, tool, call)
        if runtime.run.lease is not None:
            await runtime.make_sure()
        busy = tool is None or not tool.plays_agent
        runtime.invocation.busy += busy
        try:
            watch = runtime.run.watch
            message, failed = await (
                self._message(call_state, tool, call)
                if watch is None
                else self._watched(watch, call_state, tool, call)
            )
            if message is not None and comes_last:
                runtime.notes[RESULT_LAST] = (call.id, failed, message, call_state.action)
                await runtime.save()
            elif message is not None:
                # The first exit ends the run after all other calls.
                second = call.name == self._policy.exit_name
                await self._show(message, None if second else call_state.action)
        finally:
            # Not before its result is recorded: the run would pause without it.
            runtime.invocation.busy -= busy
        if runtime.run.stopping is not None:
            await runtime.rest()

    async def _watched(
        self, watch: RunTelemetry, call_state: ToolCallState, tool: Tool | None, call: ToolCall
    ) -> tuple[Message | None, bool]:
        """Make the call under observation."""
        invocation = self._runtime.invocation
        opened, message, problem = watch.tool_begins(invocation, call), None, None
        before = len(self._errors)
        try:
            message, failed = await self._message(call_state, tool, call)
        except BaseException as error:
            problem = error
            raise
        else:
            if failed:
                problem = self._errors[before] if len(self._errors) > before else call_state.problem
            return message, failed
        finally:
            watch.tool_ends(invocation, call, opened, message, problem, is_known=tool is not None)
            del problem  # this frame is in its traceback
            call_state.problem = None

    async def _message(
        self, call_state: ToolCallState, tool: Tool | None, call: ToolCall
    ) -> tuple[Message | None, bool]:
        """Return the result of the call, and whether it failed.

        There is no result if the call waits for an answer from outside, or if its failure fails the
        runtime.
        """
        runtime = self._runtime
        failed = False
        try:
            content = await self._content(call_state, tool, call)
        except ToolInterrupted as signal:
            self._interrupts += signal.contexts
            return None, False
        except (GuardrailTripped, HandoffError) as error:
            error.agent, error.run = (
                error.agent or runtime.agent_name,
                error.run or runtime.run.run_id,
            )
            self._errors.append(error)
            return None, True
        except (ToolError, TransferError) as error:
            error.agent = error.agent or runtime.agent_name
            error.run = error.run or runtime.run.run_id
            fails_run = self._policy.raises and not isinstance(error, Denied)
            log_failure(call, error, fails_run=fails_run)
            call_state.forget_action()
            if fails_run:
                self._errors.append(error)
                runtime.notes[FAILED] = [*runtime.notes.get(FAILED, ()), (call.id, str(error))]
                await runtime.save()
                return None, True
            content = str(error)
            failed = True
            if runtime.run.watch is not None:
                call_state.problem = error
        else:
            if call.name == self._policy.exit_name and call_state.action is None:
                call_state.send_action(Exit())
        message = Message("tool", content, (), call.id, call.name)
        if self._hooked and tool is not None:
            await runtime.call_hooks("on_tool_end", runtime.node.agent, tool, message)
        return message, failed

    async def _show(self, message: Message, action: Action | None) -> None:
        """Have a result recorded.

        With an exit or a transfer the agent ends and is not called again, so its output is recorded
        with the result.
        """
        if isinstance(action, Exit | TransferToAgent) and self._policy.output_key is not None:
            self._runtime.run.session[self._policy.output_key] = message.text
        event = AgentEvent(message=message, action=action)
        await self._runtime.emit(event)

    async def _content(self, call_state: ToolCallState, tool: Tool | None, call: ToolCall) -> Any:
        """Return the content of the result. Convert each failure of the tool to a `ToolError`."""
        context = ToolContext(call_state)
        try:
            self._check_whole(call)
            if tool is None:
                return tool_content(await self._unknown(call))
            if tool.needs_approval:
                call = await approved(context, tool, call)
            if tool.input_guardrails:
                instead = await check_tool(
                    tool.input_guardrails,
                    ToolInputGuardrailData(self._runtime.run, self._runtime.node.agent, call),
                )
                if instead is not None:
                    return instead
            content = tool_content(
                await (
                    call_tool(context, tool, call)
                    if not self._policy.wrappers
                    else self._wrapped(context, tool, call)
                )
            )
            if tool.output_guardrails:
                instead = await check_tool(
                    tool.output_guardrails,
                    ToolOutputGuardrailData(
                        self._runtime.run, self._runtime.node.agent, call, content
                    ),
                )
                return content if instead is None else instead
            return content  # noqa: TRY300 -- the errors are handled below
        except ToolArgumentsError as error:
            raise ToolArgumentsError(
                one_line(str(error)), agent=self._runtime.agent_name, message=call
            ) from error
        except (ToolError, TransferError):
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._runtime.is_over or (task is not None and task.cancelling()):
                raise
            msg = (
                f"tool {call.name} was cancelled by its own code, not by the run: it raised "
                "CancelledError"
            )
            raise ToolError(msg, agent=self._runtime.agent_name, message=call) from error
        except GeneratorExit as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is None:
                # this coroutine is being closed; a tool's own GeneratorExit has a longer traceback
                raise
            msg = f"tool {call.name} failed: it raised GeneratorExit"
            raise ToolError(msg, agent=self._runtime.agent_name, message=call) from error
        except Exception as error:
            if (isinstance(error, GuardrailTripped) and error.message is call) or (
                isinstance(error, HandoffError) and call.name in self._policy.handoffs
            ):
                raise  # raised by a guardrail or a handoff, not by the tool
            text = f"tool {call.name} failed: {type(error).__name__}: {text_of(error)}"
            raise ToolError(one_line(text), agent=self._runtime.agent_name, message=call) from error
        finally:
            call_state.end()

    def _check_whole(self, call: ToolCall) -> None:
        """Raise if the reply was cut off within the arguments.

        Otherwise the function's defaults would replace the missing ones.
        """
        if (why := self._cut_off.get(call.id)) is not None:
            msg = (
                f"{call.name} was not called: {why} before its arguments were complete. Call it "
                "again, with shorter arguments if you can."
            )
            raise ToolArgumentsError(msg)

    async def _unknown(self, call: ToolCall) -> object:
        if self._policy.unknown is not None:
            return await maybe_await(self._policy.unknown(call.name, call.arguments))
        names = {*self._policy.tools, *self._policy.handoffs}.difference(self._off)
        known = ", ".join(sorted(names)) or "none at all"
        msg = f"there is no tool named {call.name!r}. The tools that exist: {known}."
        raise ToolError(msg, agent=self._runtime.agent_name, message=call)

    async def _wrapped(self, context: ToolContext, tool: Tool, call: ToolCall) -> object:
        async def innermost(given: ToolCall) -> object:
            return await call_tool(context, tool, given)

        work: Callable[[ToolCall], Awaitable[object]] = innermost
        for middleware in reversed(self._policy.wrappers):
            work = _around(middleware, context, work)
        return await work(call)


def _around(
    middleware: Middleware, context: ToolContext, inner: Callable[[ToolCall], Awaitable[object]]
) -> Callable[[ToolCall], Awaitable[object]]:
    async def outer(call: ToolCall) -> object:
        return await maybe_await(middleware.wrap_tool(context, call, inner))

    return outer


def _close(work: Any, _task: object) -> None:
    work.close()
