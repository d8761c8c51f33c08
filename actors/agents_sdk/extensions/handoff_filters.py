"""Ready-made filters of handoffs.

Owns: `remove_all_tools`; and the folding of histories, by the SDK's name of the module. None of them changes what is recorded before the handoff.
"""

from __future__ import annotations

from typing import Any, Final

from ..handoffs import HandoffInputData
from ..handoffs.history import default_handoff_history_mapper as default_handoff_history_mapper
from ..handoffs.history import nest_handoff_history as nest_handoff_history

__all__ = ["remove_all_tools"]

_KEPT_ITEMS: Final = frozenset({"message_output_item", "input_item", "compaction_item"})
_CALLS: Final = ("computer", "file_search", "web_search", "mcp", "code_interpreter", "image_generation", "local_shell", "shell", "apply_patch", "custom_tool")
_REMOVED: Final = frozenset(
    {
        *(f"{name}_call" for name in _CALLS),
        *(f"{name}_call_output" for name in _CALLS),
        "function_call",
        "function_call_output",
        "tool_search_call",
        "tool_search_output",
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "hosted_tool_call",
        "reasoning",
        "program",
        "program_output",
    }
)


def remove_all_tools(handoff_input_data: HandoffInputData) -> HandoffInputData:
    """Without calls of tools, their results, handoffs, and what a model has thought."""
    data = handoff_input_data
    history = data.input_history
    if not isinstance(history, str):
        history = tuple(item for item in history if item.get("type") not in _REMOVED)
    return data.clone(
        input_history=history,
        pre_handoff_items=_said(data.pre_handoff_items),
        new_items=_said(data.new_items),
        input_items=None if data.input_items is None else _said(data.input_items),
    )


def _said(items: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(item for item in items if item.type in _KEPT_ITEMS)
