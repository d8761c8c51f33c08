"""Detection of incomplete replies.

Some finish reasons mean that the provider ended a reply before the model did; unknown reasons count
among them. A call that may be incomplete is not made.
"""

from __future__ import annotations

import json
from typing import Final

from .chat import Message

__all__ = ["cut_off_calls", "is_cut_off", "why_cut_off"]

_WHOLE: Final = frozenset(
    (
        "stop",
        "tool_calls",
        "tool_call",
        "function_call",
        "tool_use",
        "end_turn",
        "stop_sequence",
        "eos",
        "eos_token",
        "completed",
    )
)


def is_cut_off(finish_reason: str | None) -> bool:
    """Return True if the provider ended the reply: a token limit, a filter, an error."""
    return finish_reason is not None and finish_reason.lower() not in _WHOLE


def why_cut_off(reply: Message) -> str:
    """Return the reason in words."""
    match reply.finish_reason:
        case "length":
            return "the token limit was reached (finish_reason='length')"
        case "content_filter":
            return "the provider's filter stopped it (finish_reason='content_filter')"
    return f"the provider stopped it (finish_reason={reply.finish_reason!r})"


def cut_off_calls(reply: Message) -> frozenset[str]:
    """Return the ids of the calls whose arguments are incomplete because the reply was cut off."""
    if not reply.tool_calls or not is_cut_off(reply.finish_reason):
        return frozenset()
    return frozenset(call.id for call in reply.tool_calls if not _is_json(call.arguments))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
