"""The items of a run.

Owns: their classes. An item can be read as a mapping too, as filters of handoffs do. Once the agents are released, an item keeps its agent only as long as
something else does. It must never change its raw item.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias
from uuid import uuid4

from typing_extensions import TypeVar

from ..tool_names import part
from .kinds import dumped, kind_named

if TYPE_CHECKING:
    from ..agent import Agent
    from ..tool import ToolOrigin

__all__ = [
    "CompactionItem",
    "HandoffCallItem",
    "HandoffOutputItem",
    "InputItem",
    "MCPApprovalRequestItem",
    "MCPApprovalResponseItem",
    "MCPListToolsItem",
    "MessageOutputItem",
    "ReasoningItem",
    "RunItemBase",
    "ToolCallItem",
    "ToolCallItemTypes",
    "ToolCallOutputItem",
    "ToolCallOutputTypes",
    "ToolSearchCallItem",
    "ToolSearchOutputItem",
    "without_creator",
]

T = TypeVar("T", default=Any)

ToolCallItemTypes: TypeAlias = Any
"""A model of `openai` for a call, or a dict of the same form."""
ToolCallOutputTypes: TypeAlias = Any
"""A dict of an output, or a model of `openai` for one."""

_INPUT: Final = kind_named("input_item")
_MESSAGE: Final = kind_named("message_output_item")
_SEARCH: Final = kind_named("tool_search_call_item")
_FOUND: Final = kind_named("tool_search_output_item")
_HANDOFF: Final = kind_named("handoff_call_item")
_HANDED: Final = kind_named("handoff_output_item")
_CALL: Final = kind_named("tool_call_item")
_OUTPUT: Final = kind_named("tool_call_output_item")
_REASONING: Final = kind_named("reasoning_item")
_LIST: Final = kind_named("mcp_list_tools_item")
_REQUEST: Final = kind_named("mcp_approval_request_item")
_RESPONSE: Final = kind_named("mcp_approval_response_item")
_COMPACTION: Final = kind_named("compaction_item")


@dataclass
class RunItemBase(Generic[T]):
    """One item of a run."""

    agent: Agent[Any]
    raw_item: T

    # What an item holds of agents is looked up here only after it was released.

    def __getattr__(self, name: str) -> Any:
        released = self.__dict__.get("released")
        if released is None or name not in released:
            msg = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(msg)
        return released[name]()

    def release_agent(self) -> None:
        """Keep the agents only as long as something else does."""
        released = self.__dict__.setdefault("released", {})
        for name in ("agent", "source_agent", "target_agent"):
            agent = self.__dict__.pop(name, None)
            if agent is not None:
                released[name] = weakref.ref(agent)

    def to_input_item(self) -> Any:
        """The item as a model's input."""
        raw = self.raw_item
        return raw if isinstance(raw, dict) else dumped(raw)

    # --- as a mapping ---

    def _mapping(self) -> dict[str, Any]:
        found = dumped(self.raw_item)
        found["type"] = self.type
        found.setdefault("role", "assistant") if self.type == "message_output_item" else None
        return found

    def get(self, key: str, default: Any = None) -> Any:
        return self._mapping().get(key, default)

    def __getitem__(self, key: str) -> Any:
        return self._mapping()[key]

    def __contains__(self, key: object) -> bool:
        return key in self._mapping()

    def keys(self) -> Iterator[str]:
        return iter(self._mapping())


@dataclass
class InputItem(RunItemBase[Any]):
    """Input that was added to a run while it was resumed."""

    type: str = _INPUT
    input_id: str = field(default_factory=lambda: uuid4().hex)


@dataclass
class MessageOutputItem(RunItemBase[Any]):
    """A message of the model."""

    type: str = _MESSAGE


@dataclass
class ToolSearchCallItem(RunItemBase[Any]):
    """A search for tools."""

    type: str = _SEARCH

    def to_input_item(self) -> Any:
        return without_creator(self.raw_item)


@dataclass
class ToolSearchOutputItem(RunItemBase[Any]):
    """The tools that a search has found."""

    type: str = _FOUND

    def to_input_item(self) -> Any:
        return without_creator(self.raw_item)


@dataclass
class HandoffCallItem(RunItemBase[Any]):
    """The call of a handoff."""

    type: str = _HANDOFF


@dataclass
class HandoffOutputItem(RunItemBase[Any]):
    """The result of a handoff."""

    source_agent: Agent[Any]
    target_agent: Agent[Any]
    type: str = _HANDED


class _Called:
    raw_item: Any

    @property
    def call_id(self) -> str | None:
        """The id of the call, or that of the item."""
        found = part(self.raw_item, "call_id") or part(self.raw_item, "id")
        return None if found is None else str(found)


@dataclass
class ToolCallItem(_Called, RunItemBase[Any]):
    """A call of a tool."""

    type: str = _CALL
    description: str | None = None
    title: str | None = None
    tool_origin: ToolOrigin | None = None
    resolved_name: str | None = field(default=None, kw_only=True, repr=False)
    """The tool's name, where the call does not say it."""

    @property
    def tool_name(self) -> str | None:
        """The name of the tool, if the item has one."""
        return self.resolved_name if self.resolved_name is not None else part(self.raw_item, "name")


@dataclass
class ToolCallOutputItem(_Called, RunItemBase[Any]):
    """The result of a call of a tool. `output` is what the tool has returned."""

    output: Any
    type: str = _OUTPUT
    tool_origin: ToolOrigin | None = None
    custom_data: dict[str, Any] | None = None
    """What the program keeps with it; no model sees it."""

    def to_input_item(self) -> Any:
        raw = self.raw_item
        if not isinstance(raw, dict):
            return dumped(raw)
        if raw.get("type") == "shell_call_output":
            return {key: value for key, value in raw.items() if key not in ("status", "shell_output", "provider_data")}
        return dict(raw)


@dataclass
class ReasoningItem(RunItemBase[Any]):
    """What the model has thought."""

    type: str = _REASONING


@dataclass
class MCPListToolsItem(RunItemBase[Any]):
    """The tools of an MCP server."""

    type: str = _LIST


@dataclass
class MCPApprovalRequestItem(RunItemBase[Any]):
    """A hosted MCP server's tool waits for an approval."""

    type: str = _REQUEST


@dataclass
class MCPApprovalResponseItem(RunItemBase[Any]):
    """The approval, or its refusal."""

    type: str = _RESPONSE


@dataclass
class CompactionItem(RunItemBase[Any]):
    """What the provider has made of a long conversation."""

    type: str = _COMPACTION


def without_creator(raw: Any) -> Any:
    """A raw item as input: who has made it is the provider's to say."""
    found = dumped(raw)
    found.pop("created_by", None)
    if found.get("type") == "shell_call_output" and isinstance(found.get("output"), list):
        found["output"] = [{key: value for key, value in one.items() if key != "created_by"} if isinstance(one, dict) else one for one in found["output"]]
    return found
