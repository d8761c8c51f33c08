"""One call of a chat model: its settings, hooks, middleware and stream of deltas.

It builds the request and counts the usage of discarded replies. The loop decides the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.context import AgentContext
from ...runtime.agent.history import complete_calls
from ...runtime.agent.options import instruction_option, model_options
from ...runtime.agent.run_messages import TellsLast
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, MessageDelta
from ...runtime.data.events import AgentEvent
from ...runtime.errors import ModelBehaviorError, ModelError, ModelRetry, UsageError
from ...runtime.maybe_await import maybe_await
from ...runtime.models import ModelRequest, ModelSettings, ToolSpec, answer_of, stream_of
from ...runtime.telemetry.model_calls import ModelCall
from .said import with_ids
from .setup import PLACEHOLDER, Setup, closest

if TYPE_CHECKING:
    from ..middleware import Middleware
    from .chat_model_agent import ChatModelAgent

__all__ = ["OFF", "Asking", "kept"]

T = TypeVar("T")


OFF: Final = "off"
"""The key of the note that lists the handoffs an agent's model was not shown."""


class Asking(TellsLast):
    """The model calls of one run of an agent."""

    __slots__ = (
        "_agent",
        "_context",
        "_gate",
        "_given",
        "_hooked",
        "_is_bare",
        "_model",
        "_opening",
        "_options",
        "_replies",
        "_runtime",
        "_setup",
    )

    # replies of the current call, of which one is recorded; set by `ask`
    _replies: list[Message]

    def __init__(
        self,
        agent: ChatModelAgent,
        setup: Setup,
        given: AgentInput,
        context: AgentContext,
        runtime: AgentRuntime,
    ) -> None:
        self._agent = agent
        self._setup = setup
        self._given = given
        self._context = context
        self._runtime = runtime
        model = agent.model
        self._model = (
            model if model is setup.model_of_all_runs else runtime.run.model_for_run(model)
        )
        run = runtime.run
        self._options = runtime.options
        self._hooked = bool(run.hooks) or runtime.invocation.node.agent.hooks is not None
        # Whether there is nothing around a model call.
        self._is_bare = not (
            self._hooked
            or setup.stands_around
            or given.streaming
            or run.watch is not None
            or run.lease is not None
        )
        self.is_last = False
        # The running input guardrails, as long as they withhold the output.
        self._gate: asyncio.Future[None] | None = None
        self._opening: tuple[Message, ...] | None = (
            # The messages that open every request of this run; None until the first event is
            # requested.
            None
        )

    async def _make_opening(self) -> tuple[Message, ...]:
        """Build the opening messages of every request, if they are not the same for all runs."""
        agent, setup, given = self._agent, self._setup, self._given
        instruction: Any = instruction_option(self._runtime.options, agent.name)
        instruction = agent.instruction if instruction is None else instruction
        if callable(instruction):
            text = await maybe_await(instruction(self._context))
            if not isinstance(text, str):
                msg = (
                    f"agent {agent.name!r}: its instruction function must return a string, got "
                    f"{text!r}."
                )
                raise UsageError(msg, agent=agent.name)
        else:
            text = PLACEHOLDER.sub(self._fill, instruction) if instruction else ""
        text = setup.joined(text)
        if agent.make_model_input is not None:
            return self._checked(
                await maybe_await(agent.make_model_input(text, given, self._context)),
                "make_model_input",
            )
        return (Message("system", text), *given.messages) if text else given.messages

    def _checked(self, made: object, maker: str) -> tuple[Message, ...]:
        messages = tuple(made) if isinstance(made, Iterable) else (made,)
        for message in messages:
            if not isinstance(message, Message):
                msg = (
                    f"agent {self._agent.name!r}: {maker} must return a sequence of Message, "
                    f"got {made!r}."
                )
                raise UsageError(msg, agent=self._agent.name)
        return messages

    def _fill(self, match: Any) -> str:
        """Return the session value of that name, or the placeholder unchanged if there is none."""
        session, key = self._runtime.run.session, match.group(1)
        if key in session:
            return str(session[key])
        if self._agent.strict_instruction and key.isidentifier():
            meant = closest(key, session)
            if meant is not None:
                msg = (
                    f"agent {self._agent.name!r}: its instruction has {{{key}}}, but there is no "
                    f"session value of that name. Did you mean {{{meant}}}? "
                )
                raise UsageError(
                    msg + "If not, pass strict_instruction=False: then it stays unchanged.",
                    agent=self._agent.name,
                )
        return str(match.group(0))

    async def ask(self, said: list[Message]) -> Message:
        """Call the model once, with everything around the call: hooks, middleware, the claim.

        Replies that are not recorded count towards the usage, too.
        """
        agent, setup, context, runtime = self._agent, self._setup, self._context, self._runtime
        request = self._request(said)
        if setup.prepares:
            request = await self._prepared(request)
        if runtime.run.lease is not None and not runtime.run.lease.is_sure():
            await runtime.make_sure()
        if self._hooked:
            await runtime.call_hooks("on_model_start", agent, request)
        call: Callable[[ModelRequest], Awaitable[Message]] = self._call
        for middleware in setup.wrap_model:
            call = _around(middleware, context, call)
        replies = self._replies = []
        recorded: str | None = None
        try:
            reply = await call(request)
            self._check(reply)
            for middleware in setup.after_model:
                reply = kept(
                    await maybe_await(middleware.after_model(context, reply)),
                    reply,
                    middleware,
                    "after_model",
                )
                self._check(reply)
            recorded = reply.id
        except ModelError as error:
            if isinstance(error.message, Message):
                replies.append(error.message)  # unusable, but it counts towards the usage
            raise
        finally:
            # The recorded reply is counted when it is recorded.
            for other in replies:
                if other.id != recorded:
                    self.count(other)
        if reply.tool_calls:
            reply = with_ids(reply, said)
        if self._hooked:
            await runtime.call_hooks("on_model_end", agent, reply)
        return reply

    async def _call(self, request: ModelRequest) -> Message:
        """Call the model, whole or as a stream. This frame waits as long as the model does."""
        watch, streams = self._runtime.run.watch, self._given.streaming
        answer = None if streams else answer_of(self._model, request)
        call = (
            None
            if watch is None
            else ModelCall(watch, self._model, request, self._agent.name, streams=streams)
        )
        try:
            reply = await (self._streamed(request, call) if answer is None else answer)
        except BaseException as error:
            if call is not None:
                call.fail(error)
            raise
        if call is not None:
            call.end(reply)
        if isinstance(reply, Message):
            self._replies.append(reply)
        return reply

    def usable(self, reply: Message, said: list[Message]) -> Message:
        """Return the reply of a bare call as it is recorded. Raise if it is not the assistant's."""
        if not isinstance(reply, Message) or reply.role != "assistant":
            self.count(reply)
            self._check(reply)
        return with_ids(reply, said) if reply.tool_calls else reply

    def count(self, reply: object) -> None:
        """Count the usage of a reply that is not recorded."""
        if isinstance(reply, Message) and reply.usage is not None:
            self._runtime.run.usage += reply.usage

    def _request(self, said: list[Message]) -> ModelRequest:
        """Build the request, before any modification."""
        agent, setup, runtime, opening = self._agent, self._setup, self._runtime, self._opening
        assert opening is not None
        messages = (*opening, *complete_calls(said)) if said else opening
        if setup.answer is not None and (problem := runtime.notes.get("problem")) is not None:
            messages = (*messages, Message("user", problem))
        options = self._options
        settings = (
            agent.model_settings
            if not options
            else model_options(options, agent.name, agent.model_settings)
        )
        if not agent.parallel_tool_calls and setup.specs and settings.parallel_tool_calls is None:
            settings = replace(settings, parallel_tool_calls=False)
        if said and agent.reset_tool_choice:
            settings = _with_free_choice(settings, agent.model, said)
        return ModelRequest(
            messages,
            setup.specs,
            settings.tool_choice,
            settings,
            None if setup.answer is None else setup.answer.schema,
        )

    async def _prepared(self, request: ModelRequest) -> ModelRequest:
        """Apply the agent's modifier, the enabled handoffs and the middleware to the request."""
        if self._agent.message_modifier is not None:
            request = request.replace(messages=await self._modified(request.messages))
        if self._setup.rules.handoffs:
            request = request.replace(tools=await self._shown_specs())
        for middleware in self._setup.before_model:
            request = kept(
                await maybe_await(middleware.before_model(self._context, request)),
                request,
                middleware,
                "before_model",
            )
        return request

    async def _modified(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the messages after the agent's modifier, with a result for each call."""
        modifier = self._agent.message_modifier
        assert modifier is not None
        return tuple(
            complete_calls(
                list(
                    self._checked(
                        await maybe_await(modifier(self._context, messages)), "message_modifier"
                    )
                )
            )
        )

    async def _shown_specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools, without the handoffs that are disabled now."""
        setup, runtime = self._setup, self._runtime
        asked = [one for one in setup.rules.handoffs.values() if one.is_enabled is not True]
        if not asked:
            return setup.specs
        enabled = await runtime.at_once(
            [one.enabled(runtime.run, self._agent) for one in asked], "is_enabled of a handoff"
        )
        off = [one.tool_name for one, is_on in zip(asked, enabled, strict=True) if not is_on]
        if off or OFF in runtime.notes:
            runtime.notes[OFF] = off
        return tuple(spec for spec in setup.specs if spec.name not in off)

    async def _streamed(self, request: ModelRequest, call: ModelCall | None) -> Message:
        whole: Message | None = None
        emit_delta = self._runtime.emit_delta
        async with aclosing(stream_of(self._model, request)) as items:
            async for item in items:
                if call is not None:
                    call.piece()
                if self._gate is not None:
                    await self._may_show()
                if type(item) is MessageDelta:
                    await emit_delta(item)
                elif isinstance(item, Message):
                    whole = item
                elif isinstance(item, ModelRetry):
                    await self._runtime.emit(AgentEvent(delta=MessageDelta(), error=item))
                else:
                    self._check(item)
        if whole is None:
            self._check(whole)
        assert whole is not None
        return whole

    def _check(self, reply: Any) -> None:
        """Raise if the reply is not an assistant message."""
        if isinstance(reply, Message) and reply.role == "assistant":
            return
        what = "nothing" if reply is None else repr(reply)
        msg = (
            f"the model {self._model!r} of agent {self._agent.name!r} returned {what}. Return "
            "an assistant Message."
        )
        raise ModelBehaviorError(msg, run=self._runtime.run.run_id, agent=self._agent.name)

    async def _may_show(self) -> None:
        """Wait until the input guardrails finish.

        If they refuse the input, nothing is shown: this task waits here until it is cancelled.
        """
        gate = self._gate
        if gate is not None:
            await asyncio.wait((gate,))
            if gate.cancelled() or gate.exception() is not None:
                await asyncio.get_running_loop().create_future()
            self._gate = None


def _with_free_choice(settings: ModelSettings, model: object, said: list[Message]) -> ModelSettings:
    """Return the settings of a request after a round of tools.

    A model that must call a tool each time would never produce an answer.
    """
    own = getattr(model, "settings", None)
    choice = settings.tool_choice or (own.tool_choice if isinstance(own, ModelSettings) else None)
    if choice in (None, "auto", "none") or all(message.role != "tool" for message in said):
        return settings
    return replace(settings, tool_choice="auto")


def _around(
    middleware: Middleware,
    context: AgentContext,
    inner: Callable[[ModelRequest], Awaitable[Message]],
) -> Callable[[ModelRequest], Awaitable[Message]]:
    async def outer(request: ModelRequest) -> Message:
        reply: Message = await maybe_await(middleware.wrap_model(context, request, inner))
        return reply

    return outer


def kept(given: Any, before: T, middleware: Middleware, stage: str) -> T:
    """Return the value that a middleware returned, or the previous value if it returned None."""
    if given is None:
        return before
    if not isinstance(given, type(before)):
        msg = (
            f"{type(middleware).__name__}.{stage}() must return an instance of "
            f"{type(before).__name__}, or None to leave it unchanged, got {given!r}."
        )
        raise UsageError(msg)
    return given
