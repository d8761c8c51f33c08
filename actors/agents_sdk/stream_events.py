"""What is seen of a run while it goes on.

Owns: the three kinds of events and their names. It must never send one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from .items import RunItem, TResponseStreamEvent

__all__ = ["AgentUpdatedStreamEvent", "RawResponsesStreamEvent", "RunItemStreamEvent", "StreamEvent"]


@dataclass
class RawResponsesStreamEvent:
    """An event of the model, as it came."""

    data: TResponseStreamEvent
    type: Literal["raw_response_event"] = "raw_response_event"


@dataclass
class RunItemStreamEvent:
    """An item of the run: `name` says what has happened."""

    name: Literal[
        "message_output_created",
        "handoff_requested",
        "handoff_occured",
        "tool_called",
        "tool_search_called",
        "tool_search_output_created",
        "tool_output",
        "reasoning_item_created",
        "mcp_approval_requested",
        "mcp_approval_response",
        "mcp_list_tools",
    ]
    item: RunItem
    type: Literal["run_item_stream_event"] = "run_item_stream_event"


@dataclass
class AgentUpdatedStreamEvent:
    """Another agent is at work."""

    new_agent: Any
    type: Literal["agent_updated_stream_event"] = "agent_updated_stream_event"


StreamEvent: TypeAlias = RawResponsesStreamEvent | RunItemStreamEvent | AgentUpdatedStreamEvent
