"""The actor of one of Swarm's agents.

Owns: that it says what it has to say, turn by turn, and hands over when a function has returned another agent: an ordinary transfer, to an actor of that one.
The definitions here belong to one run, and hold nothing but whom they play.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from ...runtime.agent.context import AgentContext
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message, MessageDelta, ToolCall
from ...runtime.data.events import AgentEvent
from ..agent import Agent as Definition
from .call_state import PLAY, VARIABLES, SwarmCall
from .turn import SwarmReply
from .types import Agent

__all__ = ["StartAgent", "SwarmAgent"]


class StartAgent(Definition):
    """Where every run begins: it hands over to the first agent."""

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        swarm_call: SwarmCall = context.options[PLAY]
        if swarm_call.agent:
            yield AgentEvent.of(action=context.hand_over(SwarmAgent(swarm_call.agent, swarm_call.agent.name), input))


class SwarmAgent(Definition):
    """Plays one agent, for as long as it is active."""

    def __init__(self, agent: Agent, sender: str) -> None:
        super().__init__(name=agent.name or "Agent")
        self.agent = agent
        self.sender = sender  # the first agent of the run

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        swarm_call: SwarmCall = context.options[PLAY]
        while swarm_call.has_turns:
            turn = SwarmReply(self.agent, swarm_call, context)
            if swarm_call.streaming:
                async with aclosing(turn.stream(self.sender)) as pieces:
                    async for piece in pieces:
                        yield AgentEvent(delta=MessageDelta(piece.get("content") or ""), custom_output=piece)
            else:
                await turn.ask()
            swarm_call.history.append(turn.message)
            yield _said(turn.message)
            if not turn.calls or not swarm_call.execute_tools:
                await turn.say("Ending turn.")
                return
            response = await turn.call_functions()
            swarm_call.history.extend(response.messages)
            context.session[VARIABLES].update(response.context_variables)
            for message in response.messages:
                yield _said(message)
            if response.agent:
                swarm_call.agent = response.agent
                yield AgentEvent.of(action=context.hand_over(SwarmAgent(response.agent, self.sender), input))
                return


def _said(message: dict[str, Any]) -> AgentEvent:
    """A message of Swarm's as an event: as this runtime has messages, and beside it as it is."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    if message.get("role") == "tool":
        told = Message.tool(text, message.get("tool_call_id"), message.get("tool_name"))
    else:
        told = Message.assistant(text, tuple(_call_of(call) for call in message.get("tool_calls") or ()))
    return AgentEvent.of(told, custom_output=message)


def _call_of(call: dict[str, Any]) -> ToolCall:
    function = call.get("function") or {}  # there are other kinds of calls: those are only passed on
    return ToolCall(call.get("id") or "", function.get("name") or "", function.get("arguments") or "")
