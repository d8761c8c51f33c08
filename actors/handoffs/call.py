"""A handoff that returns: the agent answers, and its answer is the result of the call.

This is `mode="call"`. The agent receives the input of a handoff, in its own conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.data.agent_input import AgentInput
from ...runtime.errors import HandoffError, ModelBehaviorError, UsageError, text_of
from ...runtime.maybe_await import maybe_await
from ...runtime.tracing import span
from ..tools.tool import ToolArgumentsError
from ..tools.tool_context import ToolContext, call_state_of
from .agent_tool import AgentTool
from .handoff import Handoff
from .step import conversation, filtered_input

if TYPE_CHECKING:
    from .handoff import HandoffRules

__all__ = ["HandoffCall"]


class HandoffCall(AgentTool):
    """The tool of a handoff with `mode="call"`."""

    def __init__(self, handoff: Handoff, rules: HandoffRules, whose: str) -> None:
        if handoff.agent is None:
            msg = (
                f"agent {whose!r}: the handoff {handoff.tool_name} with mode='call' needs a "
                "fixed target. Pass agent= to the Handoff."
            )
            raise UsageError(msg, agent=whose)
        self.__dict__["_handoff"] = handoff
        self.__dict__["_rules"] = rules
        super().__init__(
            handoff.agent,
            name=handoff.tool_name,
            description=handoff.tool_description,
            parameters=dict(handoff.input_json_schema),
            full_history=False,
            emit_events=True,
        )

    async def _play(self, context: ToolContext, arguments: object) -> object:
        del arguments
        own = self.__dict__
        handoff: Handoff = own["_handoff"]
        call_state = call_state_of(context)
        outer, call = call_state.runtime, call_state.call

        async def invoke() -> None:
            try:
                await maybe_await(handoff.on_invoke_handoff(outer.run, call.arguments))
            except (HandoffError, ModelBehaviorError):
                raise
            except Exception as error:
                msg = f"the handoff {call.name} failed: {type(error).__name__}: {text_of(error)}"
                raise HandoffError(msg, message=call) from error

        with span("handoff", from_agent=outer.agent_name, to_agent=handoff.agent_name) as opened:
            try:
                # Once, even if the run is recovered after a crash.
                await outer.step(f"handoff {call.id}", invoke)
            except ModelBehaviorError as error:
                opened.fail(error)
                raise ToolArgumentsError(str(error)) from error
        try:
            filtered = await filtered_input(outer, own["_rules"], handoff, call)
            given = conversation(outer, handoff) if filtered is None else filtered[0]
        except UsageError as error:
            raise HandoffError(str(error), message=call) from error
        return await self.answer(context, AgentInput(given, outer.streaming), shown=True)
