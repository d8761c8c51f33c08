"""An agent's turns, one after the other.

Owns: what follows from a turn: another one, a handoff, the end, or waiting for decisions; and what a session is given. It must never do a turn's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ....runtime.agent.context import AgentContext, door_of
from ....runtime.data.agent_input import AgentInput
from ....runtime.data.events import AgentEvent
from ....runtime.data.events import Interrupted as InterruptedAction
from ....runtime.data.interrupt import AddressStep
from ..agent import Agent
from ..exceptions import AgentsException, MaxTurnsExceeded, OutputGuardrailTripwireTriggered, UserError
from ..items import InputItem, ItemHelpers, ToolApprovalItem
from ..items.messages import items_of_messages, messages_of_items
from ..run_error_handlers import RunErrorData
from ..stream_events import AgentUpdatedStreamEvent
from ..tracing.create import turn_span
from ..tracing.errors import attach_to
from .driven import Driven
from .ending import end_hooks, handled, handler_output, message_item
from .guardrails import check_input, check_output
from .hooks import all_of
from .live import LiveRun
from .opening import begin, close_agent, end, failed, open_agent, spans_usage
from .recording import Recorder
from .restoring import decide_from_answers, restored_run, store_handoff
from .sessions import save_input, save_items
from .shown import show_items
from .steps import Again, Final, HandOver, Interrupted, Step
from .turn import Turn

if TYPE_CHECKING:
    from ....runtime.agent.door import AgentDoor

__all__ = ["play"]


async def play(agent: Any, given: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:
    """Play, as a part of one of the runtime's runs."""
    door = door_of(context)
    run = _live(door)
    if run is None:
        run = restored_run(agent, door) or _own_run(agent, given, door)
        run.assignment = door.invocation.assignment
        door.run.options = (*door.run.options, run)
    run.context.understudy = door.run
    if context.resume is not None or door.invocation.answers:
        decide_from_answers(run, door)
    await Driven(run.vars, Player(run, agent, door).play())
    if False:  # what happens is told through the door
        yield AgentEvent()


def _live(door: AgentDoor) -> LiveRun | None:
    """The run that this invocation goes on with, if it is in this process."""
    assignment = door.invocation.assignment
    for one in door.run.options:
        if isinstance(one, LiveRun) and not one.ended:
            if one.assignment is None and assignment.parent is None:
                one.assignment = assignment
            if one.assignment is assignment:
                return one
    return None


def _own_run(agent: Any, given: AgentInput, door: AgentDoor) -> LiveRun:
    """A run of an agent that plays among understudy's own."""
    from ..run_config import RunConfig  # noqa: PLC0415 -- it brings OpenAI's client
    from ..run_context import RunContextWrapper  # noqa: PLC0415 -- as above
    from ..run_state import RunState  # noqa: PLC0415 -- as above

    state = RunState(RunContextWrapper(door.run.context), items_of_messages(given.messages), agent, None)
    return LiveRun(state, RunConfig())


_GOES_ON = (Again, HandOver)
"""After these the run has not ended."""


class Player:
    """One agent at work in a run."""

    def __init__(self, run: LiveRun, agent: Any, door: AgentDoor) -> None:
        self._run = run
        self._agent = agent
        self._door = door
        self._recorder = Recorder(door)

    async def play(self) -> None:
        """Turn after turn, until another agent goes on or the run ends."""
        run = self._run
        try:
            if not run.begun:
                run.show(AgentUpdatedStreamEvent(self._agent))
                await begin(run)
            ended = await self._turns()
        except BaseException as error:
            failed(run, error)
            await self._close()
            raise
        if ended:
            await self._close()

    async def _close(self) -> None:
        self._sync()
        await end(self._run)

    def _sync(self) -> None:
        if self._run.output is not None:
            self._run.output.sync(self._run)

    async def _turns(self) -> bool:
        """Returns whether the run has ended here."""
        run, state = self._run, self._run.state
        while True:
            if state.interruptions:
                step = await self._resumed()
            else:
                if run.output is not None and run.output.is_stopping():
                    return True
                if state.waiting_input:
                    await self._admit_input()
                agent = self._agent
                plain = type(agent) is Agent and not agent.tools and not agent.mcp_servers and "get_all_tools" not in agent.__dict__
                tools = [] if plain else await agent.get_all_tools(run.context)
                if run.traced:
                    open_agent(run, agent)
                state.current_turn += 1
                if state.max_turns is not None and state.current_turn > state.max_turns:
                    return await self._too_many_turns()
                state.persisted_count = 0
                step = await self._turn(tools)
            if run.output is not None:
                self._sync()
            match step.next:
                case Final(output):
                    await self._finish(step, output)
                    return True
                case Interrupted(items):
                    await self._interrupt(step, items)
                    return True
                case HandOver(target):
                    return await self._hand_over(step, target)
                case _:
                    if run.output is not None and await run.output.turn_seen():
                        return True

    # --- one turn ---

    async def _turn(self, tools: list[Any]) -> Step:
        run, state, agent = self._run, self._run.state, self._agent
        guardrails = []
        if state.current_turn == 1 and not run.is_resumed:
            guardrails = [*agent.input_guardrails, *(run.config.input_guardrails or ())]
        span, before = None, None
        if run.task_span is not None:
            span, before = turn_span(state.current_turn, agent.name), run.context.usage.copy()
            span.start(mark_as_current=True)
        try:
            turn = Turn(run, agent, self._recorder, tools)
            step = await (self._guarded(turn, guardrails) if guardrails else turn.play())
        finally:
            if span is not None:
                span.span_data.usage = spans_usage(before, run.context.usage)
                span.finish(reset_current=True)
        self._take(step)
        if run.output is not None:
            shown = {id(item) for item in step.asked.items} if step.asked is not None else set()
            show_items(run, [item for item in step.items if id(item) not in shown])
        if run.session is not None and not isinstance(step.next, Final | Interrupted):
            await self._save(step.items, step.response.response_id)
        run.is_resumed = False
        return step

    async def _guarded(self, turn: Turn, guardrails: list[Any]) -> Step:
        """The turn, with the guardrails of the input before it or beside it."""
        run, agent = self._run, self._agent
        given = run.state.original_input
        try:
            first = [one for one in guardrails if not one.run_in_parallel]
            if first:
                await check_input(run, agent, first, given, run.agent_span)
            beside = [one for one in guardrails if one.run_in_parallel]
            if not beside:
                return await turn.play()
            _, step = await all_of(check_input(run, agent, beside, given, run.agent_span), turn.play())
        except AgentsException:
            await save_input(run)
            raise
        found: Step = step
        return found

    def _take(self, step: Step, *, resumed: bool = False) -> None:
        """What a turn has produced becomes a part of the run."""
        run, state = self._run, self._run.state
        items = step.new if step.recorded is None else step.recorded
        if not resumed:
            state.model_responses.append(step.response)
        if step.owned is not None:
            state.own_history(step.original_input, step.owned, items)
        state.goes_on = isinstance(step.next, _GOES_ON)
        state.original_input = step.original_input
        state.generated_items = [*step.before, *step.new]
        state.session_items.extend(items)
        if not resumed or not isinstance(step.next, Again):
            state.tool_input_results += step.input_results
            state.tool_output_results += step.output_results
        if run.conversation is not None:
            state.previous_response_id = run.conversation.previous_response_id

    async def _resumed(self) -> Step:
        """A turn that was waiting goes on."""
        run, state = self._run, self._run.state
        if not state.model_responses:
            msg = "No model response found in previous state"
            raise UserError(msg)
        open_agent(run, self._agent)
        tools = await self._agent.get_all_tools(run.context)
        step = await Turn(run, self._agent, self._recorder, tools).resume()
        state.interruptions = step.next.items if isinstance(step.next, Interrupted) else []
        known = {id(item) for item in state.generated_items}
        new = [item for item in step.items if not isinstance(item, ToolApprovalItem) or not _is_known(item, state.session_items)]
        step.new = [item for item in step.new if id(item) not in known]
        if step.recorded is not None:
            step.recorded = new
        else:
            step.new = [item for item in step.new if item in new]
        self._take(step, resumed=True)
        if run.output is not None:
            show_items(run, step.items)
        if run.source is not None:
            run.source.follow(state)
        run.is_resumed = False
        if not isinstance(step.next, Final):
            persisted, state.persisted_count = state.persisted_count, 0
            await self._save(step.items, step.response.response_id)
            state.persisted_count += persisted
        return step

    async def _save(self, items: list[Any], response_id: str | None = None) -> None:
        """Give the session what a turn has produced, once."""
        run = self._run
        if run.session is None or run.conversation is not None:
            return
        run.save_count += 1

        async def save() -> bool:
            await save_items(run, items, response_id)
            return True

        await self._recorder.once(f"saved {run.save_count}", save, bool, bool)

    async def _admit_input(self) -> None:
        """Input that was added to the state of a run."""
        run, state = self._run, self._run.state
        if not state.waiting_input:
            return
        guardrails = [*self._agent.input_guardrails, *(run.config.input_guardrails or ())]
        await check_input(run, self._agent, guardrails, list(state.waiting_input))
        items = [InputItem(self._agent, item) for item in state.waiting_input]
        state.waiting_input.clear()
        state.generated_items.extend(items)
        state.session_items.extend(items)
        state.persisted_count = 0
        await self._save(items)

    # --- what follows ---

    async def _finish(self, step: Step, output: Any) -> None:
        run, agent, state = self._run, self._agent, self._run.state
        guardrails = [*agent.output_guardrails, *(run.config.output_guardrails or ())]
        if guardrails:
            try:
                await check_output(run, agent, guardrails, output)
            except OutputGuardrailTripwireTriggered as tripped:
                tripped.keeps_run_to_itself = await self._blocked(step)
                raise
            except (Exception, asyncio.CancelledError) as error:
                if not isinstance(error, asyncio.CancelledError) or run.output is None:
                    await self._save(step.items, step.response.response_id)
                raise
        if run.session is not None:
            await self._save(step.items, step.response.response_id)
        run.final_output = output
        state.interruptions = []
        if not isinstance(output, str) and output is not None and not self._recorder.keeps:
            await self._recorder.emit(None, None, output)

    async def _blocked(self, step: Step) -> bool:
        """A guardrail does not allow the final output: what tools have done is kept, and not what they have said. Returns whether there is such a thing."""
        from .blocked import redacted  # noqa: PLC0415 -- few outputs are

        state = self._run.state
        kept = redacted(step)
        if kept is None:
            return False
        del state.session_items[len(state.session_items) - len(step.items) :]
        state.session_items.extend(kept)
        await self._save(kept, step.response.response_id)
        return True

    async def _interrupt(self, step: Step, items: list[ToolApprovalItem]) -> None:
        run, door = self._run, self._door
        if step.asked is not None:
            await self._save([item for item in step.items if not isinstance(item, ToolApprovalItem)], step.response.response_id)
        run.state.interruptions = list(items)
        contexts = [
            door.note_interrupt(
                {"tool": item.tool_name, "arguments": item.arguments, "call_id": item.call_id},
                None,
                AddressStep("tool", item.tool_name or "", item.call_id),
                approval=True,
            )
            for item in items
        ]
        await door.emit(AgentEvent.of(action=InterruptedAction(tuple(contexts))))

    async def _hand_over(self, step: Step, target: Any) -> bool:
        run, state, door = self._run, self._run.state, self._door
        state.current_agent = target
        run.start_hooks = True
        close_agent(run)
        run.show(AgentUpdatedStreamEvent(target))
        self._sync()
        if run.output is not None and await run.output.turn_seen():
            return True
        if self._recorder.keeps:
            store_handoff(run, door)
        messages = messages_of_items(ItemHelpers.input_to_new_input_list(state.original_input)) if self._recorder.keeps else ()
        action = door.hand_over(target, AgentInput(messages, door.streaming))
        output = next((item for item in reversed(step.items) if item.type == "handoff_output_item"), None)
        if output is None:
            await self._recorder.emit(None, action)
        else:
            await self._recorder.result(output, step.asked.handoffs[0].handoff.tool_name if step.asked is not None else None, action)
        return False

    async def _too_many_turns(self) -> bool:
        run, agent, state = self._run, self._agent, self._run.state
        if run.agent_span is not None:
            attach_to(run.agent_span, "Max turns exceeded", {"max_turns": state.max_turns})
        error = MaxTurnsExceeded(f"Max turns ({state.max_turns}) exceeded")
        data = RunErrorData(state.original_input, list(state.session_items), [], [], list(state.model_responses), agent)
        found = await handled(run, "max_turns", error, data)
        if found is None:
            raise error
        run.handled_max_turns = True
        state.current_turn = state.max_turns or 0
        output = handler_output(agent, found.final_output)
        item = message_item(agent, output)
        await end_hooks(run, agent, output)
        step = Step(Final(output), state.last_response, state.original_input, list(state.generated_items), [item] if found.include_in_history else [])  # type: ignore[arg-type]
        guardrails = [*agent.output_guardrails, *(run.config.output_guardrails or ())]
        await check_output(run, agent, guardrails, output)
        state.generated_items = [*state.generated_items, *step.new]
        state.session_items.extend(step.new)
        show_items(run, step.new)
        state.persisted_count = 0
        await self._save(step.new)
        run.final_output = output
        return True


def _is_known(item: ToolApprovalItem, items: list[Any]) -> bool:
    return any(isinstance(one, ToolApprovalItem) and one.call_id == item.call_id for one in items)
