"""Which calls of tools were approved or rejected, and which have been made.

Owns: the decisions of one run, its calls by their ids, and the JSON form of both. A call id stands for one call: a model that uses it for another one is
refused. It must never ask for one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..exceptions import ModelBehaviorError, UserError
from ..invocation import Identity, call_id_of, hosted_request, identity_of, output_identity, scope_of
from ..tool_names import LookupKey, approval_keys, part

if TYPE_CHECKING:
    from ..items import ToolApprovalItem

__all__ = ["Call", "Decision", "Decisions"]

_REUSED = "Model reused a tool call ID for a different invocation. Use a unique call ID for each tool invocation."


@dataclass
class Decision:
    """What was decided about one tool: a bool for all of its calls, or the ids of those that it was decided about."""

    approved: bool | list[str] = field(default_factory=list)
    rejected: bool | list[str] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict)
    sticky_message: str | None = None
    scope: str | None = None
    """What was decided for all calls holds for calls of this scope."""

    def about(self, call_id: str) -> bool | None:
        if isinstance(self.approved, list) and call_id in self.approved:
            return True
        if isinstance(self.rejected, list) and call_id in self.rejected:
            return False
        if self.rejected is True:
            return False
        return True if self.approved is True else None

    def alone(self, call_id: str) -> bool | None:
        """What was decided about that call by its id."""
        if isinstance(self.approved, list) and call_id in self.approved:
            return True
        return False if isinstance(self.rejected, list) and call_id in self.rejected else None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"approved": copy.copy(self.approved), "rejected": copy.copy(self.rejected)}
        if self.messages:
            found["rejection_messages"] = dict(self.messages)
        if self.sticky_message is not None:
            found["sticky_rejection_message"] = self.sticky_message
        if self.scope is not None:
            found["sticky_scope"] = self.scope
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Decision:
        def value(raw: Any) -> bool | list[str]:
            return raw if isinstance(raw, bool) else [str(one) for one in raw or () if isinstance(one, str)]

        messages = data.get("rejection_messages") or {}
        return cls(value(data.get("approved")), value(data.get("rejected")), dict(messages), data.get("sticky_rejection_message"), data.get("sticky_scope"))


@dataclass
class Call:
    """One call, by its id."""

    kind: str
    scope: str
    fingerprint: str
    executed: bool = False
    completed: bool = False


class Decisions:
    """The decisions and calls of one run."""

    def __init__(self) -> None:
        self.by_key: dict[str, Decision] = {}
        self.by_server: dict[tuple[str, str], Decision] = {}
        self.calls: dict[str, Call] = {}

    def copy(self) -> Decisions:
        return copy.deepcopy(self)

    # --- calls ---

    def register(self, raw: Any, key: LookupKey | None = None, name: str | None = None, role: str | None = None) -> Call | None:
        """The call of that id. Raises, if the id was another call's."""
        identity = identity_of(raw, key, name, role)
        if identity is not None:
            return self.register_known(identity)
        known = call_id_of(raw)
        if known is not None and known[1] in self.calls and known[0] != "mcp_approval_request":
            raise ModelBehaviorError(_REUSED)
        return None

    def register_known(self, identity: Identity) -> Call:
        """The same, for a call whose identity is known."""
        call = self.calls.get(identity.call_id)
        if call is None:
            call = self.calls[identity.call_id] = Call(identity.kind, identity.scope, identity.fingerprint)
        elif (call.kind, call.scope, call.fingerprint) != (identity.kind, identity.scope, identity.fingerprint):
            raise ModelBehaviorError(_REUSED)
        return call

    def executed(self, raw: Any, key: LookupKey | None = None, name: str | None = None, role: str | None = None) -> None:
        """Note that the call is being made."""
        call = self.register(raw, key, name, role)
        if call is not None:
            call.executed = True

    def completed(self, raw_output: Any) -> None:
        """Note that the call of that output has ended."""
        known = output_identity(raw_output)
        call = None if known is None else self.calls.get(known[1])
        if call is not None and known is not None and call.kind == known[0]:
            call.executed = call.completed = True

    # --- decisions ---

    def decide(self, item: ToolApprovalItem, *, approve: bool, always: bool, message: str | None = None) -> None:
        """Note what was decided about a call, or about all calls of its tool."""
        hosted, call_id = hosted_request(item), self._checked_id(item)
        scope = scope_of(item.raw_item, item.tool_lookup_key, item.tool_name)
        if hosted is not None:
            entries = self._hosted_entries(hosted, call_id, always=always)
        else:
            keys = self._keys(item)
            entries = [(self.by_key.setdefault(key, Decision()), always) for key in ((keys[-1],) if always or call_id is None else keys)]
        for decision, sticky in entries:
            if sticky or call_id is None:
                decision.scope = None if scope is None else scope[1]
                decision.approved, decision.rejected = approve, [] if approve else True
                decision.sticky_message = None if approve else message
                if approve:
                    decision.messages.clear()
                    continue
            else:
                opposite = decision.rejected if approve else decision.approved
                if isinstance(opposite, list) and call_id in opposite:
                    opposite.remove(call_id)
                target = decision.approved if approve else decision.rejected
                if target is not True:
                    target = target if isinstance(target, list) else []
                    if call_id not in target:
                        target.append(call_id)
                    if approve:
                        decision.approved = target
                    else:
                        decision.rejected = target
            if call_id is not None:
                decision.messages.pop(call_id, None)
                if message is not None and not approve:
                    decision.messages[call_id] = message

    def _checked_id(self, item: ToolApprovalItem) -> str | None:
        raw = item.raw_item
        known = call_id_of(raw)
        if known is not None and known[1] is None:
            msg = "Approval decisions require a non-empty call ID for recognized tool invocations."
            raise ModelBehaviorError(msg)
        call_id = part(raw, "call_id") if known is None else known[1]
        if call_id is None and known is None and part(raw, "type") is None:
            call_id = part(raw, "id")
        identity = identity_of(raw, item.tool_lookup_key, item.tool_name)
        if identity is None and (call_id is not None or part(raw, "id") is not None):
            msg = "Approval decisions require a canonical invocation identity."
            raise ModelBehaviorError(msg)
        if identity is not None:
            self.register(raw, item.tool_lookup_key, item.tool_name)
        return None if identity is None else identity.call_id

    def _hosted_entries(self, hosted: dict[str, Any], call_id: str | None, *, always: bool) -> list[tuple[Decision, bool]]:
        server, name = hosted["server_label"], hosted["name"]
        if always and (server is None or name is None):
            msg = "Persistent hosted MCP approval decisions require a non-empty server_label and tool name."
            raise UserError(msg)
        entries = [(self.by_server.setdefault((server or "", name or ""), Decision()), always)]
        if name is not None and call_id is not None:
            entries.append((self.by_key.setdefault(f"hosted:{name}", Decision()), False))
        return entries

    def _keys(self, item: ToolApprovalItem) -> tuple[str, ...]:
        name = item.tool_name or part(item.raw_item, "name") or part(item.raw_item, "type") or "unknown_tool"
        alias = bool(getattr(item, "allow_bare_name_alias", False))
        return approval_keys(name, item.tool_namespace, item.tool_lookup_key, alias=alias) or ("unknown_tool",)

    def about(self, item: ToolApprovalItem) -> bool | None:
        """What was decided about the call of that item."""
        raw = item.raw_item
        identity = identity_of(raw, item.tool_lookup_key, item.tool_name)
        hosted = hosted_request(item)
        if hosted is not None:
            call_id = hosted["id"]
            decision = self.by_server.get((hosted["server_label"] or "", hosted["name"] or ""))
            return None if decision is None or call_id is None else self._of(decision, call_id, identity)
        call_id = None if identity is None else identity.call_id
        if call_id is None or identity is None:
            return None
        known = self.calls.get(call_id)
        if known is not None and known.fingerprint != identity.fingerprint:
            raise ModelBehaviorError(_REUSED)
        for key in reversed(self._keys(item)):
            decision = self.by_key.get(key)
            found = None if decision is None else self._of(decision, call_id, identity)
            if found is not None:
                return found
        return None

    @staticmethod
    def _of(decision: Decision, call_id: str, identity: Identity | None) -> bool | None:
        alone = decision.alone(call_id)
        if alone is not None:
            return alone
        if decision.scope is not None and (identity is None or identity.scope != decision.scope):
            return None
        return decision.about(call_id)

    def by_name(self, name: str, call_id: str, namespace: str | None = None, key: LookupKey | None = None) -> bool | None:
        """What was decided about the call of that id of that tool."""
        for one in reversed((f"hosted:{name}", *approval_keys(name, namespace, key))):
            decision = self.by_key.get(one)
            found = None if decision is None else decision.about(call_id)
            if found is not None:
                return found
        return None

    def message(self, name: str, call_id: str, namespace: str | None = None, key: LookupKey | None = None) -> str | None:
        """What a rejection has to say to the model."""
        found = [self.by_key.get(one) for one in reversed((f"hosted:{name}", *approval_keys(name, namespace, key)))]
        found += [decision for (_, tool), decision in self.by_server.items() if tool == name]
        return next((said for decision in found if (said := _said(decision, call_id)) is not None), None)

    def hosted_message(self, request: dict[str, Any], call_id: str) -> str | None:
        """The same, for a hosted MCP server's tool: what is said of another server's tool of that name does not count."""
        return _said(self.by_server.get((request["server_label"] or "", request["name"] or "")), call_id)


def _said(decision: Decision | None, call_id: str) -> str | None:
    if decision is None or decision.about(call_id) is not False:
        return None
    if call_id in decision.messages:
        return decision.messages[call_id]
    return decision.sticky_message if decision.rejected is True and decision.alone(call_id) is None else None
