"""The folding of what came before a handoff.

Owns: the summary and its markers, and which items stay as they are. It must never change what is recorded.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from ..items.approval import ToolApprovalItem
from ..items.helpers import ItemHelpers
from ..items.history import run_item_to_input
from .input_data import HandoffHistoryMapper, HandoffInputData
from .owned import Owned, digest
from .transcript import as_line, from_body, without_session_keys

__all__ = [
    "default_handoff_history_mapper",
    "get_conversation_history_wrappers",
    "nest_handoff_history",
    "reset_conversation_history_wrappers",
    "set_conversation_history_wrappers",
]

_START: Final = "<CONVERSATION HISTORY>"
_END: Final = "</CONVERSATION HISTORY>"
_PREAMBLE: Final = "For context, here is the conversation so far between the user and the previous agent:"
_PREAMBLES: Final = (_PREAMBLE, "For context, here is the conversation so far:")
_SUMMARIZED: Final = ("function_call", "function_call_output", "reasoning")


class _Wrappers:
    def __init__(self) -> None:
        self.start, self.end = _START, _END


_wrappers = _Wrappers()


def set_conversation_history_wrappers(*, start: str | None = None, end: str | None = None) -> None:
    """Other markers for the summaries of this process."""
    _wrappers.start = _wrappers.start if start is None else start
    _wrappers.end = _wrappers.end if end is None else end


def reset_conversation_history_wrappers() -> None:
    """The markers that summaries have at first."""
    _wrappers.start, _wrappers.end = _START, _END


def get_conversation_history_wrappers() -> tuple[str, str]:
    """The markers of the summaries."""
    return _wrappers.start, _wrappers.end


def default_handoff_history_mapper(transcript: list[Any]) -> list[Any]:
    """One assistant message that sums the conversation up."""
    lines = [f"{number}. {as_line(item)}" for number, item in enumerate(transcript, 1)] or ["(no previous turns recorded)"]
    return [{"role": "assistant", "content": "\n".join([_PREAMBLE, _wrappers.start, *lines, _wrappers.end])}]


def nest_handoff_history(handoff_input_data: HandoffInputData, *, history_mapper: HandoffHistoryMapper | None = None) -> HandoffInputData:
    """All that came before, folded: messages of the last turn stay where they were, what is between them becomes summaries."""
    data = handoff_input_data
    history = ItemHelpers.input_to_new_input_list(data.input_history) if isinstance(data.input_history, str) else deepcopy(list(data.input_history))
    before = [item for one in history for item in _unfolded(one)]
    said = [(_as_input(item), item, is_new) for is_new, items in ((False, data.pre_handoff_items), (True, data.new_items)) for item in items if _is_said(item)]
    owned: list[Owned] = []
    if history_mapper is not None:
        folded = history_mapper([*before, *(one for one, _, _ in said)])
    else:
        folded = []
        for one, item, is_new in said:
            if not _stays(one, is_new=is_new):
                before.append(one)
                continue
            if before or not folded:
                folded += default_handoff_history_mapper(before)
                before = []
            mark = digest(one)
            if mark is not None:
                owned.append(Owned(item, len(folded), mark))
            folded.append(one)
        if before or not folded:
            folded += default_handoff_history_mapper(before)
    return data.clone(input_history=tuple(deepcopy(one) for one in folded), pre_handoff_items=(), input_items=(), owned=tuple(owned))


def _is_said(item: Any) -> bool:
    return not isinstance(item, ToolApprovalItem)


def _as_input(item: Any) -> Any:
    return deepcopy(run_item_to_input(item))


def _stays(item: Any, *, is_new: bool) -> bool:
    """Whether an item is passed on as it is, and not summed up."""
    caller = item.get("caller")
    if item.get("type") in ("program", "program_output") or (caller.get("type") if isinstance(caller, dict) else getattr(caller, "type", None)) == "program":
        return False
    if isinstance(item.get("role"), str) and item["role"]:
        return is_new or item["role"] != "assistant"
    return item.get("type") not in _SUMMARIZED


def _unfolded(item: Any) -> list[Any]:
    """The items of a summary; an item that is none, as it is."""
    content = item.get("content") if isinstance(item, dict) and item.get("role") == "assistant" else None
    if isinstance(content, str):
        preamble, newline, rest = content.partition("\n")
        start, end = f"{_wrappers.start}\n", f"\n{_wrappers.end}"
        if newline and preamble in _PREAMBLES and rest.startswith(start) and rest.endswith(end):
            return from_body(rest[len(start) : -len(end)])
    return [without_session_keys(deepcopy(item))]
