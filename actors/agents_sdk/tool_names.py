"""How tools are told apart: names, namespaces, and the keys under which calls find them.

Owns: lookup keys, the names that traces and approvals show, and what is done about two tools of one name. It must never call a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from .exceptions import UserError
from .logger import hides_tool_data, logger

__all__ = [
    "LookupKey",
    "approval_keys",
    "call_lookup_key",
    "call_namespace",
    "check_namespace",
    "is_deferred",
    "lookup_key",
    "lookup_map",
    "namespace_of",
    "part",
    "qualified",
    "resolve_collisions",
    "tool_lookup_key",
    "trace_name",
]

LookupKey: TypeAlias = tuple[str, ...]

_RESERVED: Final = (
    "Responses tool-search reserves the synthetic namespace `{}` for deferred top-level function tools. "
    "Rename the namespace or tool name to avoid ambiguous dispatch."
)


def part(value: Any, key: str) -> Any:
    """A field of a dict or of an object."""
    return value.get(key) if isinstance(value, dict) else getattr(value, key, None)


def qualified(name: str | None, namespace: str | None = None) -> str | None:
    """`namespace.name`, or the name alone."""
    if not isinstance(name, str) or not name:
        return None
    return f"{namespace}.{name}" if isinstance(namespace, str) and namespace else name


def trace_name(name: str | None, namespace: str | None = None) -> str | None:
    """The name that is shown: a namespace that is the tool's own name is none."""
    return name if namespace == name else qualified(name, namespace)


def lookup_key(name: Any, namespace: Any = None) -> LookupKey | None:
    """The key of a tool of that name in that namespace."""
    if not isinstance(name, str) or not name:
        return None
    if namespace == name:
        return ("deferred_top_level", name)
    return ("namespaced", namespace, name) if isinstance(namespace, str) and namespace else ("bare", name)


def call_namespace(call: Any) -> str | None:
    namespace = part(call, "namespace")
    return namespace if isinstance(namespace, str) and namespace else None


def call_lookup_key(call: Any) -> LookupKey | None:
    """The key of the tool that a call is for."""
    if not isinstance(call, dict):
        return lookup_key(getattr(call, "name", None), getattr(call, "namespace", None))
    return lookup_key(part(call, "name"), call_namespace(call))


def namespace_of(tool: Any) -> str | None:
    """The namespace that `tool_namespace()` has given a function tool."""
    namespace = getattr(tool, "namespace", None)
    return namespace if isinstance(namespace, str) and namespace else None


def is_deferred(tool: Any) -> bool:
    """Whether the model sees the tool only after a search for it, without a namespace."""
    return bool(getattr(tool, "defer_loading", False)) and namespace_of(tool) is None and _is_function(tool)


def _is_function(tool: Any) -> bool:
    return callable(getattr(tool, "on_invoke_tool", None)) and isinstance(getattr(tool, "params_json_schema", None), dict)


def tool_lookup_key(tool: Any) -> LookupKey | None:
    """The key of a function tool; None for other tools."""
    if not _is_function(tool):
        return None
    return ("deferred_top_level", tool.name) if is_deferred(tool) else lookup_key(tool.name, namespace_of(tool))


def lookup_map(tools: Iterable[Any]) -> dict[LookupKey, Any]:
    """The function tools by their keys; of two with one key, the last."""
    tools = list(tools)
    _check(tools)
    return {key: tool for tool in tools if (key := tool_lookup_key(tool)) is not None}


def check_namespace(name: str | None, namespace: str | None) -> None:
    """Raise, if the namespace is one that tool search makes itself."""
    if name and namespace == name:
        raise UserError(_RESERVED.format(qualified(name, namespace)))


def _check(tools: Sequence[Any]) -> None:
    names: dict[str, Any] = {}
    deferred: set[str] = set()
    for tool in tools:
        if not _is_function(tool):
            continue
        namespace = namespace_of(tool)
        check_namespace(tool.name, namespace)
        if is_deferred(tool):
            if tool.name in deferred:
                msg = (
                    f"Ambiguous function tool configuration: the deferred top-level tool name `{tool.name}` is used by multiple tools. "
                    "Rename one of the deferred-loading top-level function tools to avoid ambiguous dispatch."
                )
                raise UserError(msg)
            deferred.add(tool.name)
        name = qualified(tool.name, namespace)
        if name is None:
            continue
        other = names.setdefault(name, tool)
        if other is not tool and (namespace is not None or namespace_of(other) is not None):
            msg = (
                f"Ambiguous function tool configuration: the qualified name `{name}` is used by multiple tools. "
                "Rename the namespace-wrapped function or dotted top-level tool to avoid ambiguous dispatch."
            )
            raise UserError(msg)


def approval_keys(name: str | None, namespace: str | None = None, key: LookupKey | None = None, *, alias: bool = False) -> tuple[str, ...]:
    """Under which keys a decision about a tool is kept, the tool's own last."""
    if not isinstance(name, str) or not name:
        return ()
    key = key or lookup_key(name, namespace)
    keys = [name] if alias else []
    if key is None:
        own = qualified(name, namespace)
    elif key[0] == "namespaced":
        own = qualified(key[2], key[1])
    else:
        own = f"deferred_top_level:{key[1]}" if key[0] == "deferred_top_level" else key[1]
    if own is not None and own not in keys:
        keys.append(own)
    return tuple(keys or [name])


def resolve_collisions(tools: Sequence[Any], handoffs: Sequence[Any], *, policy: Literal["warn", "error"]) -> tuple[list[Any], list[Any]]:
    """The tools and handoffs without those that another one of the same name hides: the last counts, and a handoff before a tool."""
    if not tools and len(handoffs) < 2:  # noqa: PLR2004 -- a pair
        return [], list(handoffs)
    _check(tools)
    owners: dict[str, list[tuple[str, Any]]] = {}
    for tool in tools:
        key = tool_lookup_key(tool)
        if key is not None and key[0] == "bare":
            owners.setdefault(key[1], []).append(("tool", tool))
    for handoff in handoffs:
        if isinstance(getattr(handoff, "tool_name", None), str):
            owners.setdefault(handoff.tool_name, []).append(("handoff", handoff))
    hidden: set[int] = set()
    for name, entries in owners.items():
        if len(entries) > 1:
            if policy == "error":
                raise UserError(_collision(name, entries))
            if hides_tool_data():
                logger.warning("Tool name collision detected. Assign unique routed tool names or enable tool data logging for details.")
            else:
                logger.warning("%s", _collision(name, entries))
            winner = ([one for kind, one in entries if kind == "handoff"] or [one for _, one in entries])[-1]
            hidden.update(id(one) for _, one in entries if one is not winner)
    if not hidden:
        return list(tools), list(handoffs)
    return [one for one in tools if id(one) not in hidden], [one for one in handoffs if id(one) not in hidden]


def _collision(name: str, entries: list[tuple[str, Any]]) -> str:
    derived: dict[str, str] = {}
    for kind, entry in entries:
        identity = getattr(entry, "default_identity", None)
        current = getattr(entry, "name" if kind == "tool" else "tool_name", None)
        if isinstance(identity, tuple) and identity[1] == current:
            derived.setdefault(identity[0], "tool_name" if kind == "tool" else "tool_name_override")
    if len(entries) == 2 and len(derived) == 2:  # noqa: PLR2004 -- a pair
        (one, first), (other, second) = derived.items()
        kinds = {first, second}
        what, label, how = (
            ("agent tool", "tool name", "`tool_name=`")
            if kinds == {"tool_name"}
            else ("handoff", "handoff tool name", "`tool_name_override=`")
            if kinds == {"tool_name_override"}
            else ("agent routing", "tool name", "`tool_name=` or `tool_name_override=`")
        )
        return f"Ambiguous {what} configuration: agents {one!r} and {other!r} both derive the {label} `{name}`. Pass an explicit {how} to one of them."
    kinds = {kind for kind, _ in entries}
    if kinds == {"tool"}:
        return (
            f"Ambiguous function tool configuration: the tool name `{name}` is used by multiple tools. Assign a unique routed name to every colliding "
            "function tool with `name_override=`, `tool_name=`, or a namespace."
        )
    if kinds == {"handoff"}:
        return (
            f"Ambiguous handoff configuration: the handoff tool name `{name}` is used by multiple handoffs. "
            "Pass a unique `tool_name_override=` to each handoff."
        )
    return (
        f"Ambiguous tool routing configuration: the tool name `{name}` is used by both a function tool and a handoff. Assign a unique routed name to every "
        "colliding function tool and handoff with `name_override=`, `tool_name=`, `tool_name_override=`, or a namespace."
    )
