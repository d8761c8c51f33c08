"""What makes one call of a tool the same as another one.

Owns: the identity of a call: its kind, its id, and a fingerprint of what it asks for. It must never say whether a call may be made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from openai.types.responses import ResponseFunctionToolCall

from .tool_names import LookupKey, call_lookup_key, part

__all__ = ["OUTPUT_OF", "Identity", "as_dict", "call_id_of", "hosted_request", "identity_of", "output_identity", "scope_of"]

OUTPUT_OF: Final[Mapping[str, str]] = MappingProxyType(
    {
        "apply_patch_call_output": "apply_patch_call",
        "computer_call_output": "computer_call",
        "custom_tool_call_output": "custom_tool_call",
        "function_call_output": "function_call",
        "local_shell_call_output": "local_shell_call",
        "mcp_approval_response": "mcp_approval_request",
        "shell_call_output": "shell_call",
    }
)
_CALLS: Final = frozenset(OUTPUT_OF.values())
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "function_call": ("arguments",),
        "mcp_approval_request": ("arguments",),
        "custom_tool_call": ("input",),
        "computer_call": ("action",),
        "local_shell_call": ("action",),
        "shell_call": ("action",),
        "apply_patch_call": ("operation", "operations"),
    }
)
_MEANING: Final = (
    "type", "name", "namespace", "server_label", "arguments", "input", "action", "actions", "pending_safety_checks", "operation", "operations",
    "environment", "caller",
)  # fmt: skip


_OF_FUNCTIONS: Final = ("name", "namespace", "call_id", "id", "arguments", "caller")


class Identity(NamedTuple):
    """One call."""

    kind: str
    call_id: str
    scope: str
    """What it is a call of: the same for all calls of one tool."""
    fingerprint: str


def as_dict(value: Any) -> dict[str, Any] | None:
    """A dict, or what a model of `openai` dumps; None for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        return None
    dumped = dump(exclude_none=True, exclude_unset=True, warnings=False)
    return dumped if isinstance(dumped, dict) else None


def hosted_request(item: Any) -> dict[str, Any] | None:
    """The request for approval of a hosted MCP server's tool that an item is, with `id`, `name` and `server_label` where they are valid."""
    raw = getattr(item, "raw_item", item)
    if part(raw, "type") not in ("hosted_tool_call", "mcp_approval_request"):
        return None
    mapping = as_dict(raw) or {}
    provider = mapping.get("provider_data")
    if mapping.get("type") == "hosted_tool_call" and isinstance(provider, Mapping) and provider.get("type") == "mcp_approval_request":
        name = provider.get("name") or mapping.get("name")
        found: dict[str, Any] = {**mapping, **provider, "name": name}
        if provider.get("id") is None:
            found["id"] = mapping.get("call_id") or mapping.get("id")
        mapping = found
    if mapping.get("type") != "mcp_approval_request":
        return None
    return {**mapping, **{key: _text(mapping.get(key)) for key in ("id", "name", "server_label")}}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _meant(raw: Any) -> dict[str, Any] | None:
    if isinstance(raw, ResponseFunctionToolCall):  # nearly all calls are: what is meant is read without a dump of all of it
        return {name: value for name in ("type", *_OF_FUNCTIONS) if (value := getattr(raw, name, None)) is not None}
    return hosted_request(raw) or as_dict(raw)


def call_id_of(raw: Any) -> tuple[str, str | None] | None:
    """The kind of a call and its id, if it has one; None for what is no call."""
    if type(raw) is ResponseFunctionToolCall and raw.type == "function_call":
        return "function_call", _text(raw.call_id)
    mapping = _meant(raw)
    kind = None if mapping is None else mapping.get("type")
    if mapping is None or kind not in _CALLS:
        return None
    return str(kind), _text(mapping.get("id" if kind == "mcp_approval_request" else "call_id"))


def scope_of(raw: Any, key: LookupKey | None = None, name: str | None = None, role: str | None = None) -> tuple[str, str] | None:
    """The kind of a call, and what it is a call of."""
    mapping = _meant(raw)
    kind = None if mapping is None else mapping.get("type")
    if mapping is None or kind not in _CALLS:
        return None
    payload: dict[str, Any] = {"type": kind}
    if role is not None:
        payload["invocation_role"] = role
    if kind == "function_call":
        resolved = key or call_lookup_key(mapping)
        if resolved is None:
            return None
        payload["tool_lookup_key"] = list(resolved)
    elif kind == "mcp_approval_request":
        if not mapping.get("name") or not mapping.get("server_label"):
            return None
        payload |= {"name": mapping["name"], "server_label": mapping["server_label"]}
    elif resolved_name := name or mapping.get("name"):
        payload["name"] = resolved_name
    return str(kind), _digest(payload)


def identity_of(raw: Any, key: LookupKey | None = None, name: str | None = None, role: str | None = None) -> Identity | None:
    """The identity of a call; None for what is none, or is not whole."""
    if type(raw) is ResponseFunctionToolCall and raw.caller is None and raw.call_id and raw.arguments is not None:
        resolved = key or call_lookup_key(raw)
        return None if resolved is None else _of_function(raw.call_id, raw.arguments, resolved, role)
    known, scope = call_id_of(raw), scope_of(raw, key, name, role)
    mapping = _meant(raw)
    if known is None or scope is None or mapping is None:
        return None
    kind, call_id = known
    if call_id is None:
        return None
    if not any(field in mapping for field in _NEEDED[kind]) or (kind == "custom_tool_call" and not mapping.get("name")):
        return None
    payload: dict[str, Any] = {"approval_scope": scope[1]}
    for field in _MEANING:
        value = mapping.get(field)
        if value is not None and not (kind == "function_call" and field in ("name", "namespace")):
            payload[field] = _arguments(value) if field == "arguments" else _plain(value)
    return Identity(kind, call_id, scope[1], _digest(payload))


@lru_cache(maxsize=64)
def _of_function(call_id: str, arguments: str, key: LookupKey, role: str | None) -> Identity:
    """The identity of a call of a function. It is asked for several times within a turn."""
    scope: dict[str, Any] = {"type": "function_call", "tool_lookup_key": list(key)}
    if role is not None:
        scope["invocation_role"] = role
    digest = _digest(scope)
    payload = {"approval_scope": digest, "type": "function_call", "arguments": _arguments(arguments)}
    return Identity("function_call", call_id, digest, _digest(payload))


def output_identity(raw: Any) -> tuple[str, str] | None:
    """The kind and id of the call that an output is the end of."""
    if part(raw, "type") not in OUTPUT_OF:
        return None
    mapping = raw if type(raw) is dict else as_dict(raw)
    kind = None if mapping is None else OUTPUT_OF.get(str(mapping.get("type")))
    if mapping is None or kind is None:
        return None
    call_id = _text(mapping.get("approval_request_id" if kind == "mcp_approval_request" else "call_id"))
    return None if call_id is None else (kind, call_id)


def _arguments(value: Any) -> Any:
    if not isinstance(value, str):
        return _plain(value)
    try:
        return _plain(json.loads(value))
    except ValueError:
        return value


def _plain(value: Any) -> Any:
    mapping = as_dict(value)
    if mapping is not None:
        return {str(key): _plain(one) for key, one in mapping.items() if one is not None}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


_written: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _digest(payload: Mapping[str, Any]) -> str:
    return hashlib.sha256(_written(payload).encode()).hexdigest()
