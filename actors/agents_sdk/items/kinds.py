"""The types of items by OpenAI's names, and the names that one kind of item has.

Owns: the aliases, and which names are equal. It must never hold an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from openai.types.responses import Response, ResponseFunctionToolCall, ResponseInputItemParam, ResponseOutputItem, ResponseStreamEvent
from pydantic import BaseModel

from ...handoffs.items import ItemType
from ..exceptions import AgentsException

__all__ = ["TResponse", "TResponseInputItem", "TResponseOutputItem", "TResponseStreamEvent", "dumped", "kind_named", "plain"]

TResponse: TypeAlias = Response
TResponseInputItem: TypeAlias = ResponseInputItemParam
TResponseOutputItem: TypeAlias = ResponseOutputItem
TResponseStreamEvent: TypeAlias = ResponseStreamEvent

_RAW: Final[Mapping[str, str]] = MappingProxyType(
    {
        "message_output_item": "message",
        "tool_call_item": "function_call",
        "tool_call_output_item": "function_call_output",
        "handoff_call_item": "function_call",
        "handoff_output_item": "function_call_output",
        "reasoning_item": "reasoning",
    }
)


def kind_named(name: str) -> str:
    """The name of a kind, equal to each name that it has: `tool_call_output_item`, `tool_call_output`, `function_call_output`."""
    short = name.removesuffix("_item")
    return ItemType(name, frozenset((short, _RAW.get(name, short))))


def dumped(raw: Any) -> dict[str, Any]:
    """A raw item as a dict of its own. Raises, if it is none."""
    if isinstance(raw, dict):
        return dict(raw)
    if type(raw) is ResponseFunctionToolCall and raw.caller is None and not raw.__pydantic_extra__:
        # Nearly all calls: what is in them are texts. A dump is the same, and takes its time.
        given = raw.model_fields_set
        return {name: value for name, value in raw.__dict__.items() if name in given}
    if isinstance(raw, BaseModel):
        return raw.model_dump(exclude_unset=True)
    msg = f"Unexpected raw item type: {type(raw)}"
    raise AgentsException(msg)


def plain(value: Any) -> Any:
    """The value, in which every mapping is a dict and every other collection a list."""
    if isinstance(value, str | bytes | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, BaseModel):
        return value
    return [plain(one) for one in value] if hasattr(value, "__iter__") else value
