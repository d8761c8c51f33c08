"""An agent as a tool of another agent.

The inner agent has its own history and run path, and shares the session values. Its exits,
transfers and breaks have no effect outside.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...runtime.agent.history import retold, select
from ...runtime.agent.tree import Node, build_tree
from ...runtime.data.agent_input import AgentInput
from ...runtime.data.chat import Message
from ...runtime.errors import ToolError, text_of
from ..tools.tool import Tool
from ..tools.tool_call_state import ToolInterrupted
from ..tools.tool_context import ToolContext, call_state_of
from .transfer import text_argument

if TYPE_CHECKING:
    from ..agent import Agent

__all__ = ["AgentTool", "request_of"]


class AgentTool(Tool):
    """The tool that `agent.as_tool()` returns."""

    plays_agent = True

    def __init__(
        self,
        agent: Agent,
        *,
        name: str | None,
        description: str | None,
        parameters: Any,
        full_history: bool,
        emit_events: bool,
    ) -> None:
        own = self.__dict__
        own["agent"] = agent
        own["_tree"] = build_tree(agent)
        own["_full_history"] = full_history
        own["_emit_events"] = emit_events
        own["_typed"] = parameters is not None
        super().__init__(
            name=name or _tool_name(agent.name),
            description=agent.description if description is None else description,
            parameters=_request_schema() if parameters is None else parameters,
            call=self._play,
        )

    async def _play(self, context: ToolContext, arguments: Any) -> object:
        own = self.__dict__
        outer = call_state_of(context).runtime
        if own["_full_history"]:
            invocation = outer.invocation
            entries = select(
                invocation.lane, len(invocation.lane.entries), "lane", self.agent_name, ()
            )
            asked = (
                *invocation.agent_call.conversation.input.messages,
                *retold(entries, self.agent_name, skip_transfers=outer.run.skip_transfers),
            )
        else:
            asked = (Message("user", request_of(context, arguments, typed=own["_typed"])),)
        return await self.answer(
            context, AgentInput(asked, outer.streaming), shown=own["_emit_events"]
        )

    async def answer(self, context: ToolContext, given: AgentInput, *, shown: bool) -> str:
        """Run the agent, and return its last message."""
        call = call_state_of(context)
        outer = call.runtime
        outcome = await outer.call_agent(
            self.tree, given, call.next_cast_key(), shown=shown, tool=call.address_step
        )
        if outcome.kind == "failed":
            msg = (
                f"agent {self.agent_name} failed: {type(outcome.error).__name__}: "
                f"{'' if outcome.error is None else text_of(outcome.error)}"
            )
            raise ToolError(msg, agent=outer.agent_name) from outcome.error
        if outcome.kind == "interrupted":
            raise ToolInterrupted(outcome.contexts)
        if outcome.message is None:
            msg = f"agent {self.agent_name} ended without a message, so this call has no result"
            raise ToolError(msg, agent=outer.agent_name)
        return outcome.message.text

    @property
    def tree(self) -> Node:
        """The agent's own tree. It is part of no other tree."""
        tree: Node = self.__dict__["_tree"]
        return tree

    @property
    def agent_name(self) -> str:
        name: str = self.__dict__["agent"].name
        return name


def request_of(context: ToolContext, arguments: Any, *, typed: bool) -> str:
    """Return the text of a request to the agent."""
    return _as_text(arguments) if typed else text_argument(context, arguments, "request")


def _request_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "request": {"type": "string", "description": "what the agent is asked to do"}
        },
        "required": ["request"],
        "additionalProperties": False,
    }


def _tool_name(agent_name: str) -> str:
    """Convert an agent's name to a valid tool name."""
    return "".join(
        letter if (letter.isascii() and letter.isalnum()) or letter in "_-" else "_"
        for letter in agent_name
    )[:64]


def _as_text(arguments: object) -> str:
    dump = getattr(arguments, "model_dump_json", None)
    if dump is not None:
        return str(dump())
    from pydantic_core import to_json  # noqa: PLC0415 -- already imported when needed

    return (
        json.dumps(arguments, ensure_ascii=False)
        if isinstance(arguments, dict)
        else to_json(arguments).decode()
    )
