"""Converts a JSON schema to the strict form that a provider can enforce.

The schema passed in is not modified. A construct that strict mode cannot express is refused, never
altered silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from ...runtime.errors import UsageError

__all__ = ["ensure_strict_json_schema", "has_untyped_property"]

_MOST_LEVELS: Final = 100
_MOST_NODES: Final = 100_000
_ANNOTATIONS: Final = frozenset(
    (
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    )
)
_OF_THE_ROOT: Final = frozenset(("$schema", "$id"))
_TYPING: Final = frozenset(
    ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "properties")
)


def ensure_strict_json_schema(schema: Mapping[str, object]) -> dict[str, Any]:
    """Return the schema in strict form, as a new dict: objects closed, all properties required.

    Raises `UsageError` with the place of a construct that strict mode cannot express, and
    `TypeError` if it is not a schema.
    """
    if not isinstance(schema, Mapping):
        msg = f"a JSON schema must be a dict, got {schema!r}"
        raise TypeError(msg)
    if not schema:
        return {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
    strict = _Walk(schema).node(schema, "#", 0, ())
    kind = strict.get("type")
    if "anyOf" in strict:
        raise UsageError(
            "#: the root of a strict schema must be one object, not a choice (anyOf). Put the "
            "choice into a property."
        )
    if (
        strict.get("nullable") is True
        or kind == "null"
        or (isinstance(kind, list) and "null" in kind)
    ):
        raise UsageError(
            "#: the root of a strict schema must not be nullable. Make a property nullable instead."
        )
    return {"type": "object", **strict} if kind is None and "properties" in strict else strict


def has_untyped_property(schema: object) -> bool:
    """Return whether a property or item has no type: `Any`, or no annotation at all."""
    if not isinstance(schema, Mapping):
        return schema is True
    within: list[object] = []
    for key in ("properties", "$defs", "definitions"):
        within.extend(schema.get(key, {}).values())
    within.extend(
        schema[key]
        for key in ("items", "additionalProperties")
        if isinstance(schema.get(key), Mapping)
    )
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        within.extend(schema.get(key, ()))
    if schema.get("type") == "array" and "items" not in schema and "prefixItems" not in schema:
        return True
    return any(
        not isinstance(one, Mapping) or not _TYPING & one.keys() or has_untyped_property(one)
        for one in within
    )


class _Walk:
    """The state of one pass over one schema."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._nodes = 0

    def node(
        self, schema: object, where: str, level: int, inlined: tuple[str, ...]
    ) -> dict[str, object]:
        """Convert one node. `inlined` are the references inlined on the path from the root."""
        if not isinstance(schema, Mapping):
            msg = f"{where}: a JSON schema must be a dict, got {schema!r}"
            raise TypeError(msg)
        self._count(where, level)
        node = dict(schema)
        _drop_null_default(node)
        while "$ref" in node or (
            "allOf" in node and len(_list_of(node["allOf"], f"{where}/allOf")) == 1
        ):
            if "$ref" not in node:
                _merge_all_of(node, where)
                self._count(where, level)
            elif len(node) == 1:
                self._check_lone(node, where)
                return node
            else:
                inlined = self._follow(node["$ref"], where, inlined)
                target = self._target(node["$ref"], where)
                node = {**target, **_siblings(node, where, target)}
            _drop_null_default(node)
        _join_one_of(node, where)
        self._close(node, where)
        self._descend(node, where, level, inlined)
        return node

    def _count(self, where: str, level: int) -> None:
        self._nodes += 1
        if level > _MOST_LEVELS:
            msg = f"{where}: the schema is nested more than {_MOST_LEVELS} levels deep. Flatten it."
            raise UsageError(msg)
        if self._nodes > _MOST_NODES:
            msg = (
                f"{where}: the schema has more than {_MOST_NODES} nodes, references followed. "
                "Make it smaller."
            )
            raise UsageError(msg)

    def _close(self, node: dict[str, object], where: str) -> None:
        kind = node.get("type")
        is_map = kind is None and isinstance(node.get("additionalProperties"), Mapping)
        if (
            kind != "object"
            and not (isinstance(kind, list) and "object" in kind)
            and "properties" not in node
            and not is_map
        ):
            return
        if node.setdefault("additionalProperties", False) is not False:
            msg = (
                f"{where}: an object with additionalProperties (a dict of any keys, or "
                "extra='allow') cannot be strict. "
                "Name its properties, or turn strict off."
            )
            raise UsageError(msg)
        properties = node.get("properties", {})
        if not isinstance(properties, Mapping):
            msg = f"{where}/properties: must be a dict, got {properties!r}"
            raise TypeError(msg)
        node["properties"] = properties
        node["required"] = list(properties)

    def _descend(
        self, node: dict[str, Any], where: str, level: int, inlined: tuple[str, ...]
    ) -> None:
        for key in ("properties", "$defs", "definitions"):
            if key in node:
                if not isinstance(node[key], Mapping):
                    msg = f"{where}/{key}: must be a dict, got {node[key]!r}"
                    raise TypeError(msg)
                node[key] = {
                    name: self.node(one, f"{where}/{key}/{name}", level + 1, inlined)
                    for name, one in node[key].items()
                }
        items = node.get("items")
        if isinstance(items, Mapping):
            node["items"] = self.node(items, f"{where}/items", level + 1, inlined)
        for key in ("anyOf", "allOf"):
            if key in node:
                node[key] = [
                    self.node(one, f"{where}/{key}/{index}", level + 1, inlined)
                    for index, one in enumerate(_list_of(node[key], f"{where}/{key}"))
                ]

    def _check_lone(self, node: Mapping[str, object], where: str) -> None:
        """Check that a lone reference, which stays unchanged, resolves."""
        followed: tuple[str, ...] = ()
        while len(node) == 1 and "$ref" in node:
            followed = self._follow(node["$ref"], where, followed)
            node = self._target(node["$ref"], where)

    def _follow(self, reference: Any, where: str, followed: tuple[str, ...]) -> tuple[str, ...]:
        self._count(where, 0)
        if reference in followed:
            msg = (
                f"{where}: the reference {reference!r} is circular: "
                f"{' -> '.join([*followed, reference])}. Strict mode cannot inline it. Remove "
                "the cycle, or turn strict off."
            )
            raise UsageError(msg)
        return (*followed, reference)

    def _target(self, reference: object, where: str) -> dict[str, object]:
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            msg = (
                f"{where}: the reference {reference!r} must be local. Move its target into the "
                "schema, and refer to it as '#/$defs/Name'."
            )
            raise UsageError(msg)
        target: object = self._root
        for step in reference.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or key not in target:
                msg = (
                    f"{where}: the reference {reference!r} has no target: {key!r} does not "
                    "exist. Define it in the schema, or correct the reference."
                )
                raise UsageError(msg)
            target = target[key]
        if not isinstance(target, Mapping):
            msg = f"{where}: the reference {reference!r} must lead to a dict, got {target!r}."
            raise TypeError(msg)
        return dict(target)


def _siblings(
    node: Mapping[str, object], where: str, target: Mapping[str, object]
) -> dict[str, object]:
    """Return the keys next to a reference. They may annotate its target, but must not change it."""
    beside = {key: value for key, value in node.items() if key != "$ref"}
    allowed = (
        _ANNOTATIONS | {"$defs", "definitions"} | (_OF_THE_ROOT if where == "#" else frozenset())
    )
    if "type" in beside and _json_equal(beside["type"], target.get("type", beside["type"])):
        allowed |= {"type"}
    if other := sorted(beside.keys() - allowed):
        msg = (
            f"{where}: alongside the reference {node['$ref']!r} are {', '.join(other)}. Strict "
            "mode allows only annotations there, such as description. Remove the others."
        )
        raise UsageError(msg)
    return beside


def _merge_all_of(node: dict[str, Any], where: str) -> None:
    """Merge the one entry of `allOf` into its parent.

    A reference in it then belongs to the parent.
    """
    (entry,) = node.pop("allOf")
    if not isinstance(entry, Mapping):
        msg = f"{where}/allOf/0: a JSON schema must be a dict, got {entry!r}"
        raise TypeError(msg)
    for key, value in entry.items():
        if key not in node:
            node[key] = value
        elif key not in _ANNOTATIONS and not _json_equal(node[key], value):
            msg = (
                f"{where}: allOf has {key}={value!r}, but the schema around it has "
                f"{node[key]!r}. Specify {key} once."
            )
            raise UsageError(msg)


def _drop_null_default(node: dict[str, object]) -> None:
    if node.get("default", ...) is None:
        del node["default"]


def _join_one_of(node: dict[str, object], where: str) -> None:
    if "oneOf" in node:
        joined = [
            *_list_of(node.get("anyOf", []), f"{where}/anyOf"),
            *_list_of(node.pop("oneOf"), f"{where}/oneOf"),
        ]
        node["anyOf"] = joined
        node.pop("discriminator", None)  # part of oneOf, and unknown to strict mode


def _list_of(value: object, where: str) -> list[object]:
    if not isinstance(value, list | tuple):
        msg = f"{where}: must be a list, got {value!r}"
        raise TypeError(msg)
    return list(value)


def _json_equal(one: object, other: object) -> bool:
    """Return whether two values are equal as JSON: 1 equals 1.0, but not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_json_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_json_equal, one, other))
    return bool(one == other)
