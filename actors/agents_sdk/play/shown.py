"""Items as events.

Owns: the names of the events. It must never show an item that waits for an approval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ..stream_events import RunItemStreamEvent
from .live import LiveRun

__all__ = ["show_items"]

_NAMES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "message_output_item": "message_output_created",
        "handoff_call_item": "handoff_requested",
        "handoff_output_item": "handoff_occured",
        "tool_call_item": "tool_called",
        "tool_search_call_item": "tool_search_called",
        "tool_search_output_item": "tool_search_output_created",
        "tool_call_output_item": "tool_output",
        "reasoning_item": "reasoning_item_created",
        "mcp_approval_request_item": "mcp_approval_requested",
        "mcp_approval_response_item": "mcp_approval_response",
        "mcp_list_tools_item": "mcp_list_tools",
    }
)


def show_items(run: LiveRun, items: Iterable[Any]) -> None:
    """Show each item, if the run is looked at."""
    for item in items:
        name = _NAMES.get(getattr(item, "type", ""))
        if name is not None:
            run.show(RunItemStreamEvent(name, item))
