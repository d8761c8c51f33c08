"""The loop of a chat model's agent: look at what has been said, take the next step, have it recorded.

Owns: one play of the loop. It has no state of its own: what is next follows from the messages that the agent has said in this invocation. So to
start, to go on after a failure and to go on after an interrupt are one and the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...runtime.agent.context import AgentContext
from ...runtime.agent.door import AgentDoor
from ...runtime.agent.history import complete_calls
from ...runtime.agent.options import model_options
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, MessageDelta, ToolCall, new_id
from ...runtime.data.events import AgentEvent
from ...runtime.errors import MaxIterationsExceeded, ModelBehaviorError, ModelError, ModelRetry, UsageError
from ...runtime.maybe_await import maybe_await
from ...runtime.models import ModelRequest, ModelSettings, ToolSpec, answer_of, stream_of
from ..guardrail import applying, check_all, for_every_agent, last_input, names_before
from ..handoffs.step import follow_again, hand_off
from .answer import AnswerForm
from .setup import PLACEHOLDER, Setup, closest
from .tool_round import FAILED, RESULT_LAST, Round

if TYPE_CHECKING:
    from ..middleware import Middleware
    from .chat_model_agent import ChatModelAgent

__all__ = ["React"]

T = TypeVar("T")

_OFF: Final = "off"
"""Where an agent notes which handoffs its model was not shown."""

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class React:
    """One play of a chat model's agent."""

    __slots__ = ("_agent", "_context", "_door", "_gate", "_given", "_hooked", "_input_checks", "_model", "_output_checks", "_replies", "_setup")

    def __init__(self, agent: ChatModelAgent, setup: Setup, given: AgentInput, context: AgentContext, door: AgentDoor) -> None:
        self._agent = agent
        self._setup = setup
        self._given = given
        self._context = context
        self._door = door
        self._model = door.run.model_for_run(agent.model)
        self._hooked = bool(door.run.hooks) or door.node.agent.hooks is not None
        before = names_before(door.invocation)
        if before and setup.everywhere is None:
            setup.everywhere = for_every_agent(door.node)
        wide = (setup.everywhere if before else None) or _NOTHING
        self._input_checks = applying(agent.input_guardrails, "input_guardrails", before, wide) if wide or agent.input_guardrails else ()
        self._output_checks = applying(agent.output_guardrails, "output_guardrails", before, wide) if wide or agent.output_guardrails else ()
        self._gate: asyncio.Future[None] | None = None  # what looks at the input, as long as nothing may be shown

    async def play(self) -> AsyncIterator[AgentEvent]:
        agent, setup, context, door = self._agent, self._setup, self._context, self._door
        said = door.invocation.messages  # grows as events are recorded
        for middleware in setup.before_agent:
            self._given = _kept(await maybe_await(middleware.before_agent(context, self._given)), self._given, middleware, "before_agent")
        start = await self._start()
        while True:
            notes = door.invocation.notes or _NOTHING
            calls = _unanswered(said, notes) if said else None
            if calls or RESULT_LAST in notes or FAILED in notes:
                reply = _last_reply(said)
                if door.run.stopping == "after_model":
                    await door.pause()
                if await self._round(calls or (), reply):
                    break
            if door.invocation.transfer is not None:
                if setup.rules.handoffs and door.invocation.following is None:
                    await follow_again(door, setup.rules, said)
                break  # a tool has handed over, and control does not come back
            if calls:
                continue
            if said:
                notes = door.invocation.notes or _NOTHING  # the round may have made them
                if "returned" in notes or (not _last_reply(said).tool_calls and "problem" not in notes):
                    break
                if sum(message.role == "assistant" for message in said) >= agent.max_iterations:
                    msg = f"agent {agent.name!r} has asked its model {agent.max_iterations} times, and it still wants more. Give it a larger max_iterations."
                    raise MaxIterationsExceeded(msg, run=door.run.run_id, agent=agent.name)
            reply = await self._next_reply(start, said)
            if setup.answer is None or reply.tool_calls:
                if self._output_checks and not reply.tool_calls:
                    await self._check_output(reply.text)
                yield AgentEvent.of(reply)
                if not reply.tool_calls:
                    break
            else:
                parsed, problem = self._parsed(setup.answer, reply)
                if self._output_checks and (parsed is not None or door.run.null_answer == reply.id):
                    await self._check_output(parsed)
                yield AgentEvent.of(reply, None, parsed)
                if problem is not None:
                    raise problem
        outcome = door.invocation.outcome
        if outcome is not None and outcome.kind != "exited":
            return
        if agent.output_key is not None and said:
            door.run.session[agent.output_key] = said[-1].text
        for middleware in setup.after_agent:
            await maybe_await(middleware.after_agent(context, said[-1] if said else None))

    async def _next_reply(self, start: tuple[Message, ...], said: list[Message]) -> Message:
        door = self._door
        if door.run.stopping is not None:
            await door.pause()
        door.invocation.busy += 1
        try:
            return await (self._ask(start, said) if said or not self._input_checks else self._ask_checked(start))
        finally:
            door.invocation.busy -= 1

    async def _round(self, calls: Sequence[ToolCall], reply: Message) -> bool:
        """The calls of one reply, and the handoff among them. Returns whether the agent is to end now."""
        agent, setup, door = self._agent, self._setup, self._door
        off = door.notes.get(_OFF, ()) if setup.rules.handoffs else ()
        final = self._check_output if self._output_checks else None
        step = Round(setup.policy, door, hooked=self._hooked, off=off, final=final)
        if await step.play(calls, reply.tool_calls):
            return True
        if step.handoff is None:
            return False
        if door.run.stopping is not None:
            await door.pause()
        handoff = setup.rules.handoffs[step.handoff.name]
        return await hand_off(door, setup.rules, handoff, step.handoff, step.rivals, raises=agent.on_tool_error == "raise")

    async def _ask_checked(self, start: tuple[Message, ...]) -> Message:
        """The first call of the model, and what looks at the input: some of it before, the rest beside it."""
        context, door, checks = self._context, self._door, self._input_checks
        value = last_input(self._given.messages)
        before, beside = [one for one in checks if not one.run_in_parallel], [one for one in checks if one.run_in_parallel]
        if before:
            await check_all(before, context, value)
        if not beside:
            return await self._ask(start, [])
        checking = self._gate = door.create_task(check_all(beside, context, value))
        asking = door.create_task(self._ask(start, []))
        passed = False
        try:
            await asyncio.wait((checking, asking), return_when=asyncio.FIRST_EXCEPTION)
            if checking.done():
                checking.result()  # what has tripped goes before what the model came to
            passed = True
            return await asking
        finally:
            for task in (checking, asking):
                task.cancel()
            _, unwanted = await asyncio.gather(checking, asking, return_exceptions=True)
            if not passed and isinstance(unwanted, Message) and unwanted.usage is not None:
                door.run.usage += unwanted.usage  # nobody is shown it, but it has cost something

    async def _may_show(self) -> None:
        """Wait until the input was looked at. If it must not be, nothing is shown: whoever asks is cancelled here."""
        gate = self._gate
        if gate is not None:
            await asyncio.wait((gate,))
            if gate.cancelled() or gate.exception() is not None:
                await asyncio.get_running_loop().create_future()
            self._gate = None

    async def _check_output(self, value: object) -> None:
        """Raise, if the agent must not end with that."""
        await check_all(self._output_checks, self._context, value)

    # --- asking ---

    async def _start(self) -> tuple[Message, ...]:
        """The messages that every request of this play begins with."""
        agent, setup, given = self._agent, self._setup, self._given
        if setup.system is not None:
            return (setup.system, *given.messages)
        instruction = agent.instruction
        if callable(instruction):
            text = await maybe_await(instruction(self._context))
            if not isinstance(text, str):
                msg = f"agent {agent.name!r}: its instruction function returned {text!r}, which is no text."
                raise UsageError(msg, agent=agent.name)
        else:
            text = PLACEHOLDER.sub(self._fill, instruction) if instruction else ""
        text = setup.joined(text)
        if agent.make_model_input is not None:
            return self._checked(await maybe_await(agent.make_model_input(text, given, self._context)), "make_model_input")
        return (Message("system", text), *given.messages) if text else given.messages

    def _checked(self, made: object, maker: str) -> tuple[Message, ...]:
        messages = tuple(made) if isinstance(made, Iterable) else (made,)
        for message in messages:
            if not isinstance(message, Message):
                msg = f"agent {self._agent.name!r}: {maker} returned {made!r}: return a sequence of Message."
                raise UsageError(msg, agent=self._agent.name)
        return messages

    def _fill(self, match: Any) -> str:
        """The session value of that name, if there is one."""
        session, key = self._door.run.session, match.group(1)
        if key in session:
            return str(session[key])
        if self._agent.strict_instruction and key.isidentifier():
            meant = closest(key, session)
            if meant is not None:
                msg = f"agent {self._agent.name!r}: its instruction has {{{key}}}, and there is no session value of that name: is {{{meant}}} meant? "
                raise UsageError(msg + "If not, give the agent strict_instruction=False: then it stays as it is.", agent=self._agent.name)
        return str(match.group(0))

    async def _ask(self, start: tuple[Message, ...], said: list[Message]) -> Message:
        """One call of the model, with what stands around it."""
        agent, setup, context, door = self._agent, self._setup, self._context, self._door
        messages = (*start, *complete_calls(said)) if said else start
        problem = door.notes.get("problem") if setup.answer is not None else None
        if problem is not None:
            messages = (*messages, Message("user", problem))
        if agent.message_modifier is not None:
            messages = await self._modified(messages)
        options = door.options
        settings = agent.model_settings if not options else model_options(options, agent.name, agent.model_settings)
        if not agent.parallel_tool_calls and setup.specs and settings.parallel_tool_calls is None:
            settings = replace(settings, parallel_tool_calls=False)
        if agent.reset_tool_choice and said and any(message.role == "tool" for message in said):
            settings = _with_free_choice(settings, agent.model)
        specs = setup.specs if not setup.rules.handoffs else await self._shown_specs()
        request = ModelRequest(messages, specs, settings.tool_choice, settings, None if setup.answer is None else setup.answer.schema)
        for middleware in setup.before_model:
            request = _kept(await maybe_await(middleware.before_model(context, request)), request, middleware, "before_model")
        if door.run.lease is not None and not door.run.lease.is_sure():
            await door.make_sure()
        if self._hooked:
            await door.call_hooks("on_model_start", agent, request)
        call: Callable[[ModelRequest], Awaitable[Message]] = self._call
        for middleware in setup.wrap_model:
            call = _around(middleware, context, call)
        replies: list[Message] = []
        self._replies = replies
        recorded: str | None = None
        try:
            reply = await call(request)
            self._check(reply)
            for middleware in setup.after_model:
                reply = _kept(await maybe_await(middleware.after_model(context, reply)), reply, middleware, "after_model")
                self._check(reply)
            recorded = reply.id
        except ModelError as error:
            if isinstance(error.message, Message):
                replies.append(error.message)  # of no use, but it has cost something
            raise
        finally:
            # The one that is recorded is counted there.
            for other in replies:
                if other.usage is not None and other.id != recorded:
                    door.run.usage += other.usage
        if reply.tool_calls:
            reply = _with_ids(reply, said)
        if self._hooked:
            await door.call_hooks("on_model_end", agent, reply)
        return reply

    async def _modified(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages as the agent's modifier makes them, each call with its result."""
        modifier = self._agent.message_modifier
        assert modifier is not None
        return tuple(complete_calls(list(self._checked(await maybe_await(modifier(self._context, messages)), "message_modifier"))))

    async def _shown_specs(self) -> tuple[ToolSpec, ...]:
        """The tools, without those handoffs that are not enabled now."""
        setup, door = self._setup, self._door
        asked = [one for one in setup.rules.handoffs.values() if one.is_enabled is not True]
        if not asked:
            return setup.specs
        enabled = await door.at_once([one.enabled(door.run, self._agent) for one in asked])
        off = [one.tool_name for one, is_on in zip(asked, enabled, strict=True) if not is_on]
        if off or _OFF in door.notes:
            door.notes[_OFF] = off
        return tuple(spec for spec in setup.specs if spec.name not in off)

    async def _call(self, request: ModelRequest) -> Message:
        if not self._given.streaming:
            reply: Message = await answer_of(self._model, request)
            if isinstance(reply, Message) and reply.usage is not None:
                self._replies.append(reply)
            return reply
        whole: Message | None = None
        emit_delta = self._door.emit_delta
        async with aclosing(stream_of(self._model, request)) as items:
            async for item in items:
                if self._gate is not None:
                    await self._may_show()
                if type(item) is MessageDelta:
                    await emit_delta(item)
                elif isinstance(item, Message):
                    whole = item
                elif isinstance(item, ModelRetry):
                    await self._door.emit(AgentEvent(delta=MessageDelta(), error=item))
                else:
                    self._check(item)
        if whole is None:
            self._check(whole)
        assert whole is not None
        self._replies.append(whole)
        return whole

    def _check(self, reply: Any) -> None:
        """Raise, if that is no message."""
        if isinstance(reply, Message) and reply.role == "assistant":
            return
        what = "nothing" if reply is None else repr(reply)
        msg = f"the model {self._model!r} of agent {self._agent.name!r} returned {what}: a model returns an assistant Message."
        raise ModelBehaviorError(msg, run=self._door.run.run_id, agent=self._agent.name)

    def _parsed(self, form: AnswerForm, reply: Message) -> tuple[object, ModelBehaviorError | None]:
        """The answer as an instance of the output type. An answer that is none goes back to the model, once; the second time it is an error."""
        notes = self._door.notes
        parsed, what = form.parse(reply.text)
        if what is None:
            notes.pop("problem", None)
            if parsed is None:
                self._door.run.null_answer = reply.id
        elif "problem" in notes:
            msg = f"agent {self._agent.name!r}: the model's answer is no {self._agent.output_type!r}, not at the second try either: {what}"
            return None, ModelBehaviorError(msg, run=self._door.run.run_id, agent=self._agent.name, message=reply)
        else:
            notes["problem"] = f"Your answer is not valid: {what}. Answer again, with valid JSON in the form that was asked for, and nothing else."
        return parsed, None


def _with_free_choice(settings: ModelSettings, model: object) -> ModelSettings:
    """The settings of a request after a round of tools: a model that has to call one each time would never come to an answer."""
    own = getattr(model, "settings", None)
    choice = settings.tool_choice or (own.tool_choice if isinstance(own, ModelSettings) else None)
    return settings if choice in (None, "auto", "none") else replace(settings, tool_choice="auto")


def _last_reply(said: list[Message]) -> Message:
    """What the model has said last."""
    return next(message for message in reversed(said) if message.role == "assistant")


def _unanswered(said: list[Message], notes: Mapping[str, Any]) -> Sequence[ToolCall]:
    """The calls of the model's last reply that have no result yet."""
    answered = {notes[RESULT_LAST][0]} if RESULT_LAST in notes else set()
    answered.update(call_id for call_id, _ in notes.get(FAILED, ()))
    for message in reversed(said):
        if message.role == "tool":
            answered.add(message.tool_call_id)
        elif message.role == "assistant":
            return [call for call in message.tool_calls if call.id not in answered] if message.tool_calls else ()
    return ()


def _with_ids(reply: Message, said: Sequence[Message]) -> Message:
    """The reply, each of whose calls has an id that no other of this invocation has. Providers leave them out, or give one to several."""
    seen = {call.id for message in said for call in message.tool_calls}
    calls = []
    for call in reply.tool_calls:
        calls.append(call if call.id and call.id not in seen else replace(call, id=f"call_{new_id()}"))
        seen.add(calls[-1].id)
    return reply if calls == list(reply.tool_calls) else replace(reply, tool_calls=tuple(calls))


def _around(middleware: Middleware, context: AgentContext, inner: Callable[[ModelRequest], Awaitable[Message]]) -> Callable[[ModelRequest], Awaitable[Message]]:
    async def outer(request: ModelRequest) -> Message:
        reply: Message = await maybe_await(middleware.wrap_model(context, request, inner))
        return reply

    return outer


def _kept(given: Any, before: T, middleware: Middleware, stage: str) -> T:
    """What a middleware has returned; or what there was, if it returned nothing."""
    if given is None:
        return before
    if not isinstance(given, type(before)):
        msg = f"{type(middleware).__name__}.{stage}() returned {given!r}: return an instance of {type(before).__name__}, or None to leave it."
        raise UsageError(msg)
    return given
