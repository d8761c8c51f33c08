"""Strict JSON schemas by the SDK's rules, where they differ from understudy's.

Owns: which keywords may stand beside a reference, resources within a schema (`$id`), roots, and open objects. Like the SDK's, it changes the schema that it is
given. It must never accept what strict mode cannot express.
"""

from __future__ import annotations

import copy
from typing import Any, Final
from urllib.parse import unquote

from .exceptions import UserError

__all__ = ["copy_json_schema", "ensure_strict_json_schema"]

_MOST_NODES: Final = 100_000
_MOST_LEVELS: Final = 100
_BESIDE: Final = frozenset(
    (
        "$anchor", "$comment", "$defs", "$schema", "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated",
        "description", "examples", "readOnly", "title", "writeOnly",
    )
)  # fmt: skip
_OPEN: Final = (
    "additionalProperties should not be set for object types: a strict schema cannot allow properties that it does not name. Name them, or do without a strict "
    "schema for this function or output type."
)
_UNDECLARED: Final = "JSON schema contains an object that permits undeclared properties: it cannot be made strict without changing what it accepts."
_UNVALIDATED: Final = "JSON schema contains a reference whose target was not validated for strict mode."
_RESOURCE: Final = "JSON schema contains a reference owned by or crossing a nested `$id` resource: it cannot be resolved against the root of the document."
_DEEP: Final = "JSON schema is too deeply nested to process safely. Simplify or flatten the schema."
_LARGE: Final = "JSON schema is too large to convert to a strict schema: its references lead to one another too often."


def copy_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A deep copy, unless the schema is nested too deeply."""
    _check_levels(schema)
    return copy.deepcopy(schema)


def ensure_strict_json_schema(schema: dict[str, Any], *, _reject_open_objects: bool = False) -> dict[str, Any]:
    """Make the schema strict: every object closed, all of its properties required."""
    _check_levels(schema)
    if schema == {}:
        return {"additionalProperties": False, "type": "object", "properties": {}, "required": []}
    strict = _Walk(schema, closed=_reject_open_objects).node(schema, 1, inside=False)
    if isinstance(strict.get("anyOf"), list):
        msg = "The root of a strict JSON schema must not use `anyOf`."
        raise UserError(msg)
    kind = strict.get("type")
    if isinstance(kind, list) and "object" in kind:
        if kind != ["object"]:
            msg = f"The root of a strict JSON schema must be a non-nullable object, but its type is {kind}. Make the root a plain object, or do without strict."
            raise UserError(msg)
        strict["type"] = "object"
    return strict


def _check_levels(schema: object) -> None:
    stack: list[tuple[object, int]] = [(schema, 1)]
    while stack:
        value, level = stack.pop()
        if level > _MOST_LEVELS:
            raise UserError(_DEEP)
        within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        stack.extend((one, level + 1) for one in within if isinstance(one, dict | list))


class _Walk:
    """One pass over one schema."""

    def __init__(self, root: dict[str, Any], *, closed: bool) -> None:
        self._root = root
        self._closed = closed
        self._left = _MOST_NODES

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UserError(_LARGE)

    def node(self, schema: Any, level: int, *, inside: bool) -> dict[str, Any]:
        if level > _MOST_LEVELS:
            raise UserError(_DEEP)
        if not isinstance(schema, dict):
            msg = f"Expected {schema} to be a dictionary: a JSON schema is one."
            raise TypeError(msg)
        self._spend()
        inside = inside or (schema is not self._root and isinstance(schema.get("$id"), str))
        if "$ref" in schema:
            self._check_reference(schema, inside=inside)
        for key in ("$defs", "definitions"):
            if isinstance(schema.get(key), dict):
                for one in schema[key].values():
                    self.node(one, level + 1, inside=inside)
        self._close(schema)
        self._descend(schema, level, inside=inside)
        alone = schema.get("allOf")
        if isinstance(alone, list) and len(alone) == 1:
            merged = _merged(self._only(alone[0], level, inside=inside), {key: value for key, value in schema.items() if key != "allOf"})
            schema.clear()
            schema.update(merged)
            return self.node(schema, level + 1, inside=inside)
        if schema.get("default", ...) is None:
            del schema["default"]
        if schema.get("$ref") and len(schema) > 1:
            target = self._target(schema.pop("$ref"))
            schema.update({**target, **schema})
            return self.node(schema, level + 1, inside=inside)
        if self._closed and "$ref" in schema:
            raise UserError(_UNVALIDATED)
        return schema

    def _check_reference(self, schema: dict[str, Any], *, inside: bool) -> None:
        if inside:
            raise UserError(_RESOURCE)
        allowed = _BESIDE | {"$id"} if schema is self._root else _BESIDE
        if other := sorted(set(schema) - {"$ref"} - allowed):
            msg = f"JSON schema contains a `$ref` with incompatible sibling keyword(s) ({', '.join(other)}): these would change what it accepts."
            raise UserError(msg)

    def _close(self, schema: dict[str, Any]) -> None:
        kind, properties = schema.get("type"), schema.get("properties")
        if kind is None and isinstance(properties, dict):
            kind = schema["type"] = "object"
        elif kind is None and schema.get("additionalProperties", False) is not False:
            raise UserError(_OPEN)
        if kind == "object" or (isinstance(kind, list) and "object" in kind):
            if self._closed and not properties and schema.get("additionalProperties") is not False:
                raise UserError(_UNDECLARED)
            if schema.setdefault("additionalProperties", False) is not False:
                raise UserError(_OPEN)

    def _descend(self, schema: dict[str, Any], level: int, *, inside: bool) -> None:
        def strict(one: object) -> dict[str, Any]:
            return self.node(one, level + 1, inside=inside)

        properties = schema.get("properties")
        if isinstance(properties, dict):
            schema["required"] = list(properties)
            schema["properties"] = {name: strict(one) for name, one in properties.items()}
        if isinstance(schema.get("items"), dict):
            schema["items"] = strict(schema["items"])
        if isinstance(schema.get("anyOf"), list):
            schema["anyOf"] = [strict(one) for one in schema["anyOf"]]
        if isinstance(schema.get("oneOf"), list):
            before = schema.get("anyOf", [])
            schema["anyOf"] = [*(before if isinstance(before, list) else []), *map(strict, schema["oneOf"])]
            del schema["oneOf"]
        if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) != 1:
            schema["allOf"] = [strict(one) for one in schema["allOf"]]

    def _only(self, entry: Any, level: int, *, inside: bool) -> dict[str, Any]:
        """The one entry of an `allOf`. A reference is followed, with what stands beside it."""
        if not isinstance(entry, dict) or "$ref" not in entry or set(entry) - {"$ref"} - _BESIDE:
            return self.node(entry, level + 1, inside=inside)
        if inside:
            raise UserError(_RESOURCE)
        beside: dict[str, Any] = {}
        seen: set[str] = set()
        while "$ref" in entry and not set(entry) - {"$ref"} - _BESIDE:
            reference = entry["$ref"]
            if reference in seen:
                msg = "JSON schema contains a circular `$ref` chain."
                raise UserError(msg)
            seen.add(reference)
            beside = {**{key: value for key, value in entry.items() if key != "$ref"}, **beside}
            self._spend()
            entry = self._target(reference)
        return {**entry, **beside}

    def _target(self, reference: Any) -> dict[str, Any]:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            msg = f"Unexpected $ref format {reference!r}; Does not start with #/"
            raise ValueError(msg)
        target: Any = self._root
        for step in unquote(reference[2:]).split("/"):
            target = target[step.replace("~1", "/").replace("~0", "~")]
            if not isinstance(target, dict):
                msg = f"Expected `$ref: {reference}` to lead to a dictionary, and it leads to {target!r}"
                raise ValueError(msg)  # noqa: TRY004 -- the SDK's
            if isinstance(target.get("$id"), str):
                raise UserError(_RESOURCE)
        found: dict[str, Any] = target
        return found


def _merged(entry: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    merged, other = dict(entry), []
    for key, value in parent.items():
        empty = (key == "properties" and value == {}) or (key == "required" and value == [])
        if key not in merged or key in _BESIDE:
            merged[key] = value
        elif not empty and not _same(value, merged[key]):
            other.append(key)
    if other:
        msg = f"JSON schema contains a singleton `allOf` entry with incompatible parent keyword(s) ({', '.join(sorted(other))})."
        raise UserError(msg)
    return merged


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
