"""A running agent: the actor of one invocation.

The actor receives `Perform`, drives the definition's `run` event by event, and reports each event
to the run's supervisor before it requests the next one. At the end it reports its outcome. The
supervisor records, numbers and shows everything.

An ordinary exception from `run` is the agent's failure, and is shown as one error event. If the
definition has a restart policy, or if the exception is not an `Exception`, the actor fails with it,
and the supervisor decides.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from types import AsyncGeneratorType
from typing import Any, ClassVar

from ..actor.direct import OVER, deliver
from ..data.agent_input import AgentInput
from ..data.chat import Message, MessageDelta
from ..data.events import Action, AgentEvent, Interrupted, TransferToAgent
from ..data.interrupt import due_of
from ..data.outcome import CANCELLED, FINISHED, Outcome
from ..errors import UsageError
from ..log import loggers, work_as
from .agent_runtime import ASKED_BEHIND, AgentRuntime
from .context import AgentContext, AgentSleeps, ResumeInfo
from .hooks import call_hooks
from .input_range import read_input
from .invocation import AgentCall
from .run_messages import AgentEnded, Emitted, TellsLast
from .tree import Definition

__all__ = ["AgentActor"]


class AgentActor(AgentRuntime):
    """One invocation of one agent."""

    __when_slow__: ClassVar[str] = (
        "What an agent calls on the loop must not block: a tool, hook, instruction or model "
        "that is `async def` awaits, and a tool that has to block is "
        "a plain `def`, which runs in a thread of its own."
    )

    __slots__ = ()

    async def on_receive(self, message: Any) -> None:
        """Run the agent, from the start or from the invocation's current state."""
        del message
        invocation, run, context = self.invocation, self.run, AgentContext(self)
        agent = invocation.node.agent
        work_as(invocation.node.name)
        if run.watch is not None:
            run.watch.agent_begins(invocation)
        hooked = bool(run.hooks) or (agent.hooks is not None and not agent.calls_own_hooks)
        outcome: Outcome | None = None
        try:
            try:
                if hooked:
                    await self._announce(agent)
                outcome = invocation.outcome
                if outcome is None and invocation.restored:
                    outcome = await self._go_on(agent, context)
                if outcome is None:
                    given = read_input(invocation, agent, run, self.streaming)
                    if type(given) is not AgentInput:
                        given = await given  # type: ignore[misc]  # otherwise it is awaitable
                    self.input = given
                    stream = _events_of(agent, self.input, context)
                    if isinstance(stream, TellsLast):
                        # Callers that wait for its end, and hooks, must find its last message.
                        tells_last = not hooked and invocation.agent_call.parent is None
                        # Inline: another coroutine would add a frame for each waiting agent.
                        while (event := await stream.next_event()) is not None:
                            await self.emit(event, is_last=tells_last and stream.is_last)
                            if stream.is_last or invocation.outcome is not None:
                                break
                    else:
                        await self._play(agent, stream)
                    outcome = invocation.outcome or self._end_of_play()
            except asyncio.CancelledError:
                if not self._is_cancelled():
                    raise  # raised by the agent's own code: the actor ends
                outcome = CANCELLED
            except Exception as error:
                if agent.on_failure is not None:
                    raise
                outcome = await self._fail(error)
            if hooked:
                await self.call_hooks("on_agent_end", agent, outcome, agent_name="on_end")
            if run.watch is not None:
                run.watch.agent_ends(invocation, outcome)
            await deliver(
                self._supervisor, AgentEnded(invocation, outcome, transfer=invocation.transfer)
            )
        finally:
            # The traceback of an agent's error has this frame, which must not lead back to the log.
            outcome = self._deltas = None

    async def _play(self, agent: Definition, stream: Any) -> None:
        """Take the events of a custom agent."""
        invocation, exhausted = self.invocation, False
        try:
            async for event in stream:
                if (
                    type(event) is not AgentEvent
                    or type(event.message) is not Message
                    or event.action is not None
                ):
                    _check_event(agent, event)
                await self.emit(event)
                if invocation.outcome is not None:
                    break
            else:
                exhausted = True
        except AgentSleeps as sleeps:
            exhausted = True
            context = self.note_interrupt(sleeps.info, None, due=sleeps.due)
            await self.emit(AgentEvent.of(action=Interrupted((context,))))
        finally:
            # Events after an exit, an interrupt or an error are ignored.
            if not exhausted:
                await self._close(stream)

    async def _go_on(self, agent: Definition, context: AgentContext) -> Outcome | None:
        """Resume after an interrupt, or in another process.

        Returns the agent's outcome if it has nothing left to do.
        """
        invocation = self.invocation
        if (
            invocation.transfer is not None
            and agent.wrapped is None
            and not agent.has_handoffs
            and not self._has_more()
        ):
            # Only the handoff is left.
            return Outcome(message=invocation.last_message, broke=invocation.broke)
        answer = (invocation.answers or {}).get(None)
        if answer is not None and not answer.is_target:
            # It keeps waiting for the same answer.
            await self.emit(
                AgentEvent.of(
                    action=Interrupted(
                        (
                            self.note_interrupt(
                                answer.pending.context.info,
                                answer.pending.state,
                                due=due_of(answer.pending.context),
                            ),
                        )
                    )
                )
            )
            return invocation.outcome
        if answer is not None:
            asked = answer.pending
            context.resume = ResumeInfo(
                is_target=True,
                data=answer.data,
                state=asked.state,
                streaming=self.streaming,
                info=asked.context.info,
            )
        elif invocation.resumed:
            context.resume = ResumeInfo(streaming=self.streaming)
        return None

    def _has_more(self) -> bool:
        """Return True if work that started with or after its transfer is not done yet."""
        invocation = self.invocation
        asked = {*(invocation.answers or ())} - {
            None
        }  # its own answers may come from before the transfer
        agent_calls = (invocation.agent_calls or {}).values()
        return (
            bool(asked)
            or ASKED_BEHIND in (invocation.notes or ())
            or any(isinstance(agent_call, AgentCall) for agent_call in agent_calls)
        )

    def _is_cancelled(self) -> bool:
        """Return True if this actor's task was cancelled from outside, or the loop is ending.

        Otherwise the agent's own code raised the cancellation.
        """
        task = asyncio.current_task()
        return (
            self.is_over
            or self._cell.cancelling
            or self._cell.system.closing
            or (task is not None and task.cancelling() > 0)
        )

    async def _announce(self, agent: Definition) -> None:
        invocation, hooks = self.invocation, self.run.hooks
        source = invocation.handed_over_by
        if source is not None:
            await call_hooks(hooks, None, "on_transfer", None, self.run, source.agent, agent)
            if not agent.calls_own_hooks:
                await call_hooks(
                    (), agent.hooks, "on_transfer", None, self.run, agent, source.agent
                )
        if invocation.agent_call.parent is None and source is None:
            await self.call_hooks("on_run_start", invocation.agent_call.conversation.input)
        await self.call_hooks("on_agent_start", agent, agent_name="on_start")

    async def _fail(self, error: Exception) -> Outcome:
        shown = await deliver(self._supervisor, Emitted(self.invocation, AgentEvent(error=error)))
        return CANCELLED if shown is OVER else Outcome("failed", shown.error)

    def _end_of_play(self) -> Outcome:
        """Return the outcome of an agent whose events have ended."""
        invocation = self.invocation
        if (last := self.last_cast) is not None and (
            invocation.transfer is None or last.kind != "finished"
        ):
            return (
                last
                if last.broke or not invocation.broke or last.kind != "finished"
                else Outcome(message=last.message, broke=True)
            )
        message = invocation.last_message
        return (
            Outcome("finished", None, message, (), invocation.broke)
            if message is not None or invocation.broke
            else FINISHED
        )

    async def _close(self, stream: Any) -> None:
        """Close the generator.

        An exception after the agent's end is logged and does not fail the run.
        """
        try:
            await stream.aclose()
        except Exception:
            if self.invocation.outcome is None:
                raise
            loggers.agent.exception(
                "Agent %r raised while it was closed, after its end.", self.invocation.node.name
            )


def _events_of(agent: Definition, given: AgentInput, context: AgentContext) -> Any:
    """Return the agent's async generator. Raises if `run` is something else."""
    try:
        stream = agent.run(given, context)
    except TypeError as error:
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise  # raised further down
        msg = (
            f"{type(agent).__name__}.run() of agent {agent.name!r} cannot be called: {error}. "
            "Write `async def run(self, input, context)` with a `yield`."
        )
        raise UsageError(msg, agent=agent.name) from error
    if isinstance(stream, TellsLast) or type(stream) is AsyncGeneratorType:
        return stream
    if hasattr(stream, "__anext__") and hasattr(stream, "aclose"):
        return stream
    if inspect.iscoroutine(stream):
        stream.close()
    if isinstance(stream, AsyncIterator) or hasattr(stream, "__aiter__"):
        return _closable(stream)
    kind = type(stream).__name__
    msg = (
        f"{type(agent).__name__}.run() of agent {agent.name!r} must be an async generator, but "
        f"returned a {kind}. Write `async def run(...)` with a `yield`."
    )
    raise UsageError(msg, agent=agent.name)


async def _closable(stream: Any) -> AsyncIterator[object]:
    """Iterate `stream`, and close its iterator, which may be a separate async generator."""
    events = aiter(stream)
    try:
        async for event in events:
            yield event
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


def _check_event(agent: Definition, event: object) -> None:
    """Raise if a custom agent yielded something that is not a valid event."""
    if type(event) is not AgentEvent:
        msg = (
            f"agent {agent.name!r} must yield AgentEvents, got {event!r}. Yield "
            "AgentEvent.say('...'), AgentEvent.of(...), or context.interrupt(...)."
        )
        raise UsageError(msg, agent=agent.name)
    wanted: tuple[tuple[str, Any, str], ...] = (
        ("message", Message, "a Message"),
        ("delta", MessageDelta, "a MessageDelta"),
        ("action", Action, "Exit(), TransferToAgent(...), BreakLoop() or CustomAction(...)"),
        ("error", Exception, "an exception"),
    )
    for field, kind, what in wanted:
        value = getattr(event, field)
        if value is not None and not isinstance(value, kind):
            msg = (
                f"agent {agent.name!r} yielded an event whose {field} must be {what}, got "
                f"{value!r}."
            )
            raise UsageError(msg, agent=agent.name)
    action = event.action
    if isinstance(action, TransferToAgent) and not isinstance(action.agent_name, str):
        msg = (
            f"agent {agent.name!r} yielded {action!r}, whose agent_name must be the name of an "
            "agent."
        )
        raise UsageError(msg, agent=agent.name)
