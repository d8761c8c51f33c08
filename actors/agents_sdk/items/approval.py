"""A call that waits for an approval.

Owns: `ToolApprovalItem`. It must never be given to a model.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..exceptions import AgentsException
from ..tool_names import LookupKey, lookup_key, part, trace_name
from .kinds import kind_named
from .run_items import RunItemBase

if TYPE_CHECKING:
    from ..tool import ToolOrigin

__all__ = ["ToolApprovalItem"]

_APPROVAL: Final = kind_named("tool_approval_item")


@dataclass(eq=False)
class ToolApprovalItem(RunItemBase[Any]):
    """A call that waits for an approval. Two of them are never equal."""

    tool_name: str | None = None
    type: str = _APPROVAL
    tool_namespace: str | None = None
    tool_origin: ToolOrigin | None = None
    tool_lookup_key: LookupKey | None = field(default=None, kw_only=True, repr=False)
    allow_bare_name_alias: bool = field(default=False, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.tool_name is None:
            self.tool_name = part(self.raw_item, "name")
        if self.tool_namespace is None:
            namespace = part(self.raw_item, "namespace")
            self.tool_namespace = namespace if isinstance(namespace, str) else None
        if self.tool_lookup_key is None and part(self.raw_item, "type") == "function_call" and self.tool_namespace != self.tool_name:
            self.tool_lookup_key = lookup_key(self.tool_name, self.tool_namespace)

    @property
    def name(self) -> str | None:
        """The name of the tool."""
        found = self.tool_name or part(self.raw_item, "name") or part(self.raw_item, "tool_name")
        return None if found is None else str(found)

    @property
    def qualified_name(self) -> str | None:
        """The name of the tool with its namespace."""
        return None if self.tool_name is None else trace_name(self.tool_name, self.tool_namespace) or self.tool_name

    @property
    def arguments(self) -> str | None:
        """What the tool is to be called with, as JSON."""
        found = part(self.raw_item, "arguments")
        if found is None:
            found = part(self.raw_item, "params") or part(self.raw_item, "input")
        if found is None or isinstance(found, str):
            return found
        try:
            return json.dumps(found)
        except (TypeError, ValueError):
            return str(found)

    @property
    def call_id(self) -> str | None:
        """The id of the call."""
        found: str | None = part(self.raw_item, "call_id") or part(self.raw_item, "id")
        return found

    def to_input_item(self) -> Any:
        msg = "ToolApprovalItem cannot be converted to an input item. These items should be filtered out before preparing input for the API."
        raise AgentsException(msg)
