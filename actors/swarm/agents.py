"""The actor of one of Swarm's agents.

It runs the agent's turns one after the other. When a function returns another agent, it transfers
to that agent's actor. The definitions here belong to one run and store only their agent; the state
of the run is its `SwarmCall`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

from ...runtime.agent.context import AgentContext, runtime_of
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, MessageDelta, ToolCall
from ...runtime.data.events import AgentEvent
from ..agent import Agent as Definition
from .call_state import SWARM_CALL, VARIABLES, SwarmCall
from .turn import SwarmReply
from .types import Agent, CallDict, MessageDict

__all__ = ["StartAgent", "SwarmAgent"]


class StartAgent(Definition):
    """The root of every run. It transfers to the first agent."""

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        swarm_call: SwarmCall = context.options[SWARM_CALL]
        if swarm_call.agent:
            yield AgentEvent.of(
                action=runtime_of(context).hand_over(
                    SwarmAgent(swarm_call.agent, swarm_call.agent.name), input
                )
            )


class SwarmAgent(Definition):
    """One of Swarm's agents, for as long as it is active."""

    def __init__(self, agent: Agent, sender: str) -> None:
        super().__init__(name=agent.name or "Agent")
        self.agent = agent
        self.sender = sender  # the first agent of the run

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the documented name
        swarm_call: SwarmCall = context.options[SWARM_CALL]
        while swarm_call.has_turns:
            reply = SwarmReply(self.agent, swarm_call, context)
            if swarm_call.streaming:
                async with aclosing(reply.stream(self.sender)) as pieces:
                    async for piece in pieces:
                        yield AgentEvent(
                            delta=MessageDelta(piece.get("content") or ""), custom_output=piece
                        )
            else:
                await reply.ask()
            swarm_call.history.append(reply.message)
            yield _event_of(reply.message)
            if not reply.calls or not swarm_call.execute_tools:
                await reply.print_debug("Ending turn.")
                return
            response = await reply.call_functions()
            swarm_call.history.extend(response.messages)
            context.session[VARIABLES].update(response.context_variables)
            for message in response.messages:
                yield _event_of(message)
            if response.agent:
                swarm_call.agent = response.agent
                yield AgentEvent.of(
                    action=runtime_of(context).hand_over(
                        SwarmAgent(response.agent, self.sender), input
                    )
                )
                return


def _event_of(message: MessageDict) -> AgentEvent:
    """Make an event with the message in this runtime's form, and in Swarm's as `custom_output`."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    if message.get("role") == "tool":
        own = Message.tool(text, message.get("tool_call_id"), message.get("tool_name"))
    else:
        own = Message.assistant(
            text, tuple(_call_of(call) for call in message.get("tool_calls") or ())
        )
    return AgentEvent.of(own, custom_output=message)


def _call_of(call: CallDict) -> ToolCall:
    # calls of other kinds have no function, and are only passed on
    function = call.get("function") or {}
    return ToolCall(
        call.get("id") or "", function.get("name") or "", function.get("arguments") or ""
    )
