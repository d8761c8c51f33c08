"""What a run produces, item by item, in the forms of the Responses API.

Owns the items of a run, and the way between them and what a model is given. Its files, each importing only from those above it:

    kinds           the names of the types, and how items are read as mappings
    run_items       the items of a run
    approval        a call that waits for an approval
    response        what one call of a model gave
    helpers         `ItemHelpers`
    history         items as a model's input: without what has lost its counterpart, and without what is there twice
    messages        items as understudy's messages, and back

It must never run anything.
"""

from .approval import ToolApprovalItem
from .helpers import ItemHelpers
from .kinds import TResponse, TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from .response import ModelResponse
from .run_items import (
    CompactionItem,
    HandoffCallItem,
    HandoffOutputItem,
    InputItem,
    MCPApprovalRequestItem,
    MCPApprovalResponseItem,
    MCPListToolsItem,
    MessageOutputItem,
    ReasoningItem,
    RunItemBase,
    ToolCallItem,
    ToolCallItemTypes,
    ToolCallOutputItem,
    ToolCallOutputTypes,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)

RunItem = RunItemBase

__all__ = [
    "CompactionItem",
    "HandoffCallItem",
    "HandoffOutputItem",
    "InputItem",
    "ItemHelpers",
    "MCPApprovalRequestItem",
    "MCPApprovalResponseItem",
    "MCPListToolsItem",
    "MessageOutputItem",
    "ModelResponse",
    "ReasoningItem",
    "RunItem",
    "RunItemBase",
    "TResponse",
    "TResponseInputItem",
    "TResponseOutputItem",
    "TResponseStreamEvent",
    "ToolApprovalItem",
    "ToolCallItem",
    "ToolCallItemTypes",
    "ToolCallOutputItem",
    "ToolCallOutputTypes",
    "ToolSearchCallItem",
    "ToolSearchOutputItem",
]
