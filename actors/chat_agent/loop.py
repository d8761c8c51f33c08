"""The loop of a chat model's agent: read the messages so far, take the next step, record it.

The loop has no state of its own: the next step follows from the agent's messages in this
invocation. So starting, retrying after a failure and resuming after an interrupt are the same
operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.agent.context import AgentContext
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, ToolCall
from ...runtime.data.events import AgentEvent
from ...runtime.data.whole_reply import is_cut_off, why_cut_off
from ...runtime.errors import MaxIterationsExceeded, ModelBehaviorError, ModelError
from ...runtime.maybe_await import maybe_await
from ...runtime.models import answer_of
from ..guardrail import (
    InputGuardrail,
    OutputGuardrail,
    applying,
    check_all,
    for_every_agent,
    last_input,
    names_before,
)
from ..handoffs.step import follow_again, hand_off
from .answer import AnswerForm
from .model_call import OFF, Asking, kept
from .said import last_reply, unanswered
from .setup import Setup
from .tool_round import FAILED, RESULT_LAST, ToolRound

if TYPE_CHECKING:
    from .chat_model_agent import ChatModelAgent

__all__ = ["ChatLoop"]

T = TypeVar("T")

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class ChatLoop(Asking):
    """One run of a chat model's agent, event by event.

    It is not a generator, because a generator retains a frame and takes 3 µs longer for each run.
    """

    __slots__ = ("_has_answered", "_input_checks", "_output_checks", "_problem")

    def __init__(
        self,
        agent: ChatModelAgent,
        setup: Setup,
        given: AgentInput,
        context: AgentContext,
        runtime: AgentRuntime,
    ) -> None:
        Asking.__init__(self, agent, setup, given, context, runtime)
        self._input_checks: Sequence[InputGuardrail] = ()
        self._output_checks: Sequence[OutputGuardrail] = ()
        invocation = runtime.invocation
        if setup.guards or len(invocation.names) > 1 or invocation.agent_call.parent is not None:
            self._find_checks(names_before(invocation))
        # With the last answer shown; the agent fails with it.
        self._problem: ModelBehaviorError | ModelError | None = None
        self._has_answered = False  # whether the model has answered without a tool call

    def _find_checks(self, before: Sequence[str]) -> None:
        """Find the guardrails of this run.

        They are the agent's own, and those of earlier agents that apply to every agent.
        """
        agent, setup = self._agent, self._setup
        if before and setup.everywhere is None:
            setup.everywhere = for_every_agent(self._runtime.node)
        wide = (setup.everywhere if before else None) or _NOTHING
        self._input_checks = (
            applying(agent.input_guardrails, "input_guardrails", before, wide)
            if wide or agent.input_guardrails
            else ()
        )
        self._output_checks = (
            applying(agent.output_guardrails, "output_guardrails", before, wide)
            if wide or agent.output_guardrails
            else ()
        )

    async def next_event(self) -> AgentEvent | None:
        """Take steps until there is an event, which is recorded before the next call."""
        agent, setup, runtime = self._agent, self._setup, self._runtime
        invocation = runtime.invocation
        try:
            if self._opening is None:
                for middleware in setup.before_agent:
                    self._given = kept(
                        await maybe_await(middleware.before_agent(self._context, self._given)),
                        self._given,
                        middleware,
                        "before_agent",
                    )
                prefix, given = (
                    None if self._options else setup.prefix,
                    self._given.messages,
                )  # options may contain another instruction
                self._opening = (
                    await self._make_opening()
                    if prefix is None
                    else (*prefix, *given)
                    if prefix
                    else given
                )
            self._raise_problem()
            said = invocation.messages  # grows as events are recorded
            while not self._has_answered:
                if said and (await self._work_off(said) or self._is_done(said)):
                    break
                if runtime.run.stopping is not None:
                    await runtime.pause()
                if runtime.run.inbox is not None and (
                    said or len(invocation.names) > 1 or invocation.agent_call.parent is not None
                ):
                    await runtime.hear()  # the turn itself has started with the earlier posts
                invocation.busy += 1
                try:
                    if not said and self._input_checks:
                        reply = await self._ask_checked()
                    elif not self._is_bare:
                        reply = await self.ask(said)
                    else:
                        # The bare call, inline and with few variables: two more frames that live as
                        # long as the call take 0.8 KiB for each session that waits for its model.
                        try:
                            reply = await answer_of(self._model, self._request(said))
                            if (
                                type(reply) is not Message
                                or reply.role != "assistant"
                                or reply.tool_calls
                            ):
                                # Nearly all final answers are usable unchanged.
                                reply = self.usable(reply, said)
                        except ModelError as error:
                            self.count(error.message)
                            raise
                finally:
                    invocation.busy -= 1
                if setup.answer is None or reply.tool_calls:
                    self._has_answered = not reply.tool_calls
                    if self._output_checks and self._has_answered:
                        runtime.run.count(reply)
                        await self._check_output(reply.text)
                    self.is_last = (
                        self._has_answered and agent.output_key is None and not setup.after_agent
                    )
                    return AgentEvent(message=reply)
                parsed, self._problem = self._parsed(setup.answer, reply)
                if self._output_checks and (
                    parsed is not None or runtime.run.null_answer == reply.id
                ):
                    runtime.run.count(reply)
                    await self._check_output(parsed)
                return AgentEvent(message=reply, custom_output=parsed)
            if agent.output_key is not None or setup.after_agent:
                await self._end(said)
        except StopAsyncIteration as error:
            msg = (
                "a model, tool or callback raised StopAsyncIteration. Return a value instead, or "
                "raise another error"
            )
            raise RuntimeError(msg) from error
        return None

    async def _work_off(self, said: list[Message]) -> bool:
        """Run the calls of the last reply that have no result yet.

        Returns whether the agent ends now.
        """
        setup, runtime = self._setup, self._runtime
        while True:
            notes = runtime.invocation.notes or _NOTHING
            calls = unanswered(said, notes)
            if calls or RESULT_LAST in notes or FAILED in notes:
                if runtime.run.stopping is not None and runtime.run.stopping != "after_tools":
                    await runtime.pause()
                if await self._round(calls, last_reply(said)):
                    return True
            if runtime.invocation.transfer is not None:
                if setup.rules.handoffs and runtime.invocation.following is None:
                    await follow_again(runtime, setup.rules, said)
                return True  # a tool has transferred, and control does not return
            if not calls:
                return False

    def _is_done(self, said: list[Message]) -> bool:
        """Return whether the agent has answered. Raise if it called its model too often."""
        agent, runtime = self._agent, self._runtime
        notes = runtime.invocation.notes or _NOTHING
        if "returned" in notes or (not last_reply(said).tool_calls and "problem" not in notes):
            return True
        if (
            len(said) >= agent.max_iterations
            and sum(message.role == "assistant" for message in said) >= agent.max_iterations
        ):
            msg = (
                f"agent {agent.name!r} has called its model {agent.max_iterations} times "
                "without a final answer. Pass a larger max_iterations."
            )
            raise MaxIterationsExceeded(msg, run=runtime.run.run_id, agent=agent.name)
        return False

    async def _end(self, said: list[Message]) -> None:
        agent, runtime = self._agent, self._runtime
        outcome = runtime.invocation.outcome
        if outcome is not None and outcome.kind != "exited":
            return
        if agent.output_key is not None and said:
            runtime.run.session[agent.output_key] = said[-1].text
        for middleware in self._setup.after_agent:
            await maybe_await(middleware.after_agent(self._context, said[-1] if said else None))

    async def _round(self, calls: Sequence[ToolCall], reply: Message) -> bool:
        """Run the calls of one reply, and the handoff among them.

        Returns whether the agent ends now.
        """
        agent, setup, runtime = self._agent, self._setup, self._runtime
        off = runtime.notes.get(OFF, ()) if setup.rules.handoffs else ()
        final = self._check_output if self._output_checks else None
        step = ToolRound(setup.policy, runtime, hooked=self._hooked, off=off, final=final)
        if await step.play(calls, reply):
            return True
        if step.handoff is None:
            return False
        if runtime.run.stopping is not None:
            await runtime.pause()
        handoff = setup.rules.handoffs[step.handoff.name]
        return await hand_off(
            runtime,
            setup.rules,
            handoff,
            step.handoff,
            step.rivals,
            raises=agent.on_tool_error == "raise",
        )

    def _raise_problem(self) -> None:
        """Raise the problem with the last answer, if there is one."""
        problem, self._problem = self._problem, None
        if problem is not None:
            try:
                raise problem
            finally:
                del problem  # its traceback has this frame

    async def _ask_checked(self) -> Message:
        """Make the first model call with the input guardrails.

        Some of them run before the call, the rest in parallel.
        """
        context, runtime, checks = self._context, self._runtime, self._input_checks
        value = last_input(self._given.messages)
        before, beside = (
            [one for one in checks if not one.run_in_parallel],
            [one for one in checks if one.run_in_parallel],
        )
        if before:
            await check_all(before, context, value)
        if not beside:
            return await self.ask([])
        checking = self._gate = runtime.create_task(
            check_all(beside, context, value), "an input guardrail"
        )
        asking = runtime.create_task(self.ask([]), "the model")
        passed = False
        try:
            # `asyncio.wait` does not raise for a cancelled task.
            await asyncio.wait((checking, asking), return_when=asyncio.FIRST_COMPLETED)
            if asking.done() and not asking.cancelled() and asking.exception() is None:
                await asyncio.wait((checking,))
            if checking.done():
                checking.result()  # a tripped guardrail takes precedence over the reply
            passed = True
            return await asking
        finally:
            for task in (checking, asking):
                task.cancel()
            unwanted = (await asyncio.gather(checking, asking, return_exceptions=True))[1]
            self._gate = None
            del checking, asking, task  # an error of theirs has this frame in its traceback
            if not passed and isinstance(unwanted, Message) and unwanted.usage is not None:
                runtime.run.usage += unwanted.usage  # not shown, but it counts towards the usage

    async def _check_output(self, value: object) -> None:
        """Raise if an output guardrail refuses that value."""
        await check_all(self._output_checks, self._context, value)

    def _parsed(
        self, form: AnswerForm, reply: Message
    ) -> tuple[object, ModelBehaviorError | ModelError | None]:
        """Parse the answer as an instance of the output type.

        An invalid answer is returned to the model once. A refusal or a truncated answer is not.
        """
        notes = self._runtime.notes
        parsed, what = form.parse(reply.text)
        if what is None:
            notes.pop("problem", None)
            if parsed is None:
                self._runtime.run.null_answer = reply.id
        elif (why := _why_no_answer(reply)) is not None:
            kind, text = why
            msg = (
                f"agent {self._agent.name!r}: the model returned no "
                f"{_type_name(self._agent.output_type)}: {text}"
            )
            return None, ModelError(
                msg, kind=kind, run=self._runtime.run.run_id, agent=self._agent.name, message=reply
            )
        elif "problem" in notes:
            msg = (
                f"agent {self._agent.name!r}: the model's answer must be "
                f"{_type_name(self._agent.output_type)}, and its second attempt was not valid "
                f"either: {what}. It replied {reply.text!r:.200}. Simplify output_type, or use "
                "another model."
            )
            return None, ModelBehaviorError(
                msg, run=self._runtime.run.run_id, agent=self._agent.name, message=reply
            )
        else:
            notes["problem"] = (
                f"Your answer is not valid: {what}. Answer again, with valid JSON in the "
                "form that was asked for, and nothing else."
            )
        return parsed, None


def _type_name(output_type: object) -> str:
    return output_type.__name__ if isinstance(output_type, type) else repr(output_type)


def _why_no_answer(reply: Message) -> tuple[str, str] | None:
    """Return the kind and the text of the error if asking again would fail in the same way.

    Returns None if the answer is merely invalid.
    """
    if reply.refusal and not reply.text:
        return "refusal", f"it refused: {reply.refusal[:500]}"
    if is_cut_off(reply.finish_reason):
        advice = " Raise max_tokens." if reply.finish_reason == "length" else ""
        return (
            reply.finish_reason or "other",
            f"{why_cut_off(reply)} before the answer was complete.{advice}",
        )
    return None
