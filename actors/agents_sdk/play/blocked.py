"""What is kept of a final output that a guardrail has refused.

Owns: which items are kept, and what stands in the place of what must not be. It must never keep the message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ..items import MessageOutputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem
from .steps import Step

__all__ = ["BLOCKED", "redacted"]

BLOCKED: Final = "Tool output was blocked by an output guardrail."


def redacted(step: Step) -> list[Any] | None:
    """The calls of a turn that has ended with the result of a tool, with other results; None for a turn that has ended with a message."""
    items = step.items
    if not any(isinstance(item, ToolCallOutputItem) for item in items):
        return None
    kept: list[Any] = []
    for item in items:
        if isinstance(item, ToolCallOutputItem):
            raw = {**item.raw_item, "output": BLOCKED} if isinstance(item.raw_item, dict) else item.raw_item
            kept.append(replace(item, raw_item=raw, output=BLOCKED, custom_data=None))
        elif isinstance(item, ToolCallItem) or not isinstance(item, MessageOutputItem | ReasoningItem):
            kept.append(item)
    return kept
