"""Converts between a model's JSON text and a function's parameters: JSON schema and validation.

It contains all code for tools that needs pydantic; `tool.py` imports it when a tool is first used.
It stores nothing of a single call, so runs can share it.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import typing_extensions
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import (
    PydanticSerializationError,
    SchemaError,
    from_json,
    to_json,
    to_jsonable_python,
)

from ...runtime.errors import UsageError
from .signature import Docstring, Parameter, Signature

__all__ = [
    "FunctionArguments",
    "SchemaArguments",
    "TypeArguments",
    "explain",
    "fitted",
    "schema_of",
]

_MOST_ERRORS: Final = 10
_MOST_SHOWN: Final = 80
_SCALARS: Final[Mapping[str, type]] = MappingProxyType(
    {"integer": int, "number": float, "boolean": bool}
)
_NOT_A_SCHEMA: Final = (
    PydanticUserError,
    PydanticInvalidForJsonSchema,
    SchemaError,
    NameError,
    TypeError,
    RecursionError,
)


class _Untitled(GenerateJsonSchema):
    """Generates schemas without property titles and without defaults that are not JSON.

    A title repeats the name and costs tokens.
    """

    def emit_warning(self, kind: object, detail: str) -> None:
        """Omit a default that is not JSON from the schema, without a warning.

        Only the function uses it.
        """

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def schema_of(kind: Any, where: str) -> tuple[TypeAdapter[object], dict[str, Any]]:
    """Return the validator of that type and its JSON schema. `where` prefixes the error."""
    try:
        adapter: TypeAdapter[Any] = kind if isinstance(kind, TypeAdapter) else TypeAdapter(kind)
        return adapter, adapter.json_schema(schema_generator=_Untitled)
    except _NOT_A_SCHEMA as error:
        shown = kind.__qualname__ if isinstance(kind, type) else repr(kind)
        first = str(error).strip().splitlines()[0]
        msg = (
            f"{where}: {shown} cannot be described to a model ({first}). Take plain data (str, "
            "int, list, a pydantic model), and build the other type inside the tool."
        )
        raise UsageError(msg) from error


class FunctionArguments:
    """The arguments of a function, as a dict of validated values.

    Arguments that the model omitted are left to the function's own defaults.
    """

    def __init__(self, signature: Signature, docstring: Docstring) -> None:
        self._signature = signature
        fields: dict[str, object] = {}
        defaults: dict[str, Any] = {}
        for one in signature.parameters:
            fields[one.name] = (
                typing_extensions.Required[_field(one)]
                if one.required
                else typing_extensions.NotRequired[_field(one)]
            )
            if isinstance(one.default, FieldInfo) and not one.default.is_required():
                defaults[one.name] = one.default
            elif isinstance(one.default, FieldInfo):
                fields[one.name] = typing_extensions.Required[_field(one)]
        self._made: dict[str, FieldInfo] = defaults
        make: Any = typing_extensions.TypedDict  # hides a dynamic TypedDict from the type checker
        shape = make(signature.name, fields)
        shape.__pydantic_config__ = ConfigDict(extra="forbid")
        try:
            adapter, self.schema = schema_of(shape, f"tool {signature.name}")
        except UsageError as error:
            self._blame(error)
            raise
        self.schema.pop("title", None)
        self._validate = adapter.validator.validate_json
        self._describe(docstring)

    def parse(self, text: str) -> dict[str, Any]:
        """Return the values by parameter name. Raise pydantic's `ValidationError`."""
        values: dict[str, object] = self._validate(text or "{}")
        for name, made in self._made.items():
            if name not in values:
                values[name] = made.get_default(call_default_factory=True, validated_data=values)
        return values

    def complete(self, values: dict[str, Any]) -> dict[str, Any]:
        """Add the defaults of the signature, for code that judges a call."""
        for one in self._signature.parameters:
            if one.name not in values and (
                one.is_rest or not (one.required or isinstance(one.default, FieldInfo))
            ):
                values[one.name] = [] if one.is_rest else one.default
        return values

    def ordered(self, values: dict[str, Any]) -> tuple[list[object], dict[str, object]]:
        """Split the values into positional and keyword arguments.

        Parameters that accept positions only are passed by position. A gap is filled with the
        default in the signature.
        """
        by_name = {one.name: one for one in self._signature.parameters}
        rest = next(
            (values.pop(one.name, ()) for one in self._signature.parameters if one.is_rest), ()
        )
        names = self._signature.positional
        if not rest:
            # Up to the last one that must be passed by position. A context counts as one, because
            # it may come before it.
            needed = [
                index
                for index, name in enumerate(names)
                if name in values and (name not in by_name or by_name[name].by_position)
            ]
            names = names[: needed[-1] + 1] if needed else ()
        args = [values.pop(name) if name in values else by_name[name].default for name in names]
        return [*args, *rest], values

    def _blame(self, error: UsageError) -> None:
        """Raise an error that names the parameter, if a single one is to blame."""
        for one in self._signature.parameters:
            try:
                schema_of(
                    _modern(one.annotation), f"tool {self._signature.name}: parameter {one.name}"
                )
            except UsageError as found:
                raise found from error

    def _describe(self, docstring: Docstring) -> None:
        properties = self.schema.setdefault("properties", {})
        for one in self._signature.parameters:
            node = properties.get(_alias(one) or one.name)
            if node is None:
                continue
            if text := _text_beside(one.annotation) or docstring.arguments.get(one.name):
                node.setdefault("description", text)
            default = one.default.default if one.name in self._made else one.default
            if not one.required and not one.is_rest and not isinstance(default, FieldInfo):
                try:
                    node.setdefault("default", to_jsonable_python(default))
                except (PydanticSerializationError, ValueError):
                    continue  # only the function uses this default


class TypeArguments:
    """Arguments that form one value of a pydantic type: a model, a dataclass, a TypedDict."""

    def __init__(self, kind: object, name: str) -> None:
        adapter, self.schema = schema_of(kind, f"tool {name}: parameters")
        if self.schema.get("type") != "object" and "$ref" not in self.schema:
            msg = (
                f"tool {name}: parameters must describe an object, got {kind!r}. Pass a "
                "pydantic model, a dataclass or a TypedDict."
            )
            raise UsageError(msg)
        self._validate = adapter.validator.validate_json

    def parse(self, text: str) -> object:
        return self._validate(text or "{}")

    def complete(self, values: object) -> object:
        return values  # a type adds its own defaults


class SchemaArguments:
    """Arguments that are described by a JSON schema alone.

    Required arguments must be present. Others are refused if the schema forbids them. The callee
    checks the rest.
    """

    def __init__(self, schema: Mapping[str, Any], name: str) -> None:
        if schema and schema.get("type", "object") != "object":
            msg = (
                f"tool {name}: parameters must be the schema of an object, got {schema!r}. "
                "Add 'type': 'object' to it."
            )
            raise UsageError(msg)
        self.schema = {"type": "object", "properties": {}, **schema}
        self._required = tuple(schema.get("required", ()))
        self._known = frozenset(self.schema["properties"])
        self._closed = schema.get("additionalProperties") is False or not schema

    def parse(self, text: str) -> dict[str, object]:
        try:
            values = from_json(text or "{}")
        except ValueError as error:
            msg = f"must be a JSON object, and is not valid JSON ({error})"
            raise ValueError(msg) from error
        if not isinstance(values, dict):
            msg = f"must be a JSON object (got {_shown(values)})"
            raise ValueError(msg)  # noqa: TRY004 -- like the other invalid arguments
        problems = [f"{key}: field required" for key in self._required if key not in values]
        if self._closed and (extra := [key for key in values if key not in self._known]):
            problems.append(_unexpected(extra, self.schema))
        if problems:
            raise ValueError("; ".join(problems))
        return values

    def complete(self, values: dict[str, Any]) -> object:
        """Convert the values to the schema's types, and add its defaults.

        `"5"` becomes 5 for an integer, and `"false"` becomes False for a boolean.
        """
        return fitted(values, self.schema, defaults=True)


def fitted(value: Any, schema: object, *, defaults: bool = False) -> Any:
    """Convert strings to the numbers and booleans of the schema. Leave other values unchanged."""
    if not isinstance(schema, Mapping):
        return value
    kind = schema.get("type")
    if isinstance(value, dict) and isinstance(known := schema.get("properties"), Mapping):
        found = {key: fitted(one, known.get(key), defaults=defaults) for key, one in value.items()}
        if defaults:
            found |= {
                key: one["default"]
                for key, one in known.items()
                if key not in found and isinstance(one, Mapping) and "default" in one
            }
        return found
    if isinstance(value, list):
        return [fitted(one, schema.get("items"), defaults=defaults) for one in value]
    if isinstance(value, str) and isinstance(kind, str) and kind in _SCALARS:
        try:
            return TypeAdapter(_SCALARS[kind]).validate_python(value)
        except ValidationError:
            return value
    return value


def explain(error: ValueError, schema: Mapping[str, object]) -> str:
    """Describe the problem with the arguments in one line that a model can act on."""
    if not isinstance(error, ValidationError):
        return " ".join(str(error).split())
    found = error.errors(include_url=False, include_context=False)
    problems = [
        _problem(one) for one in found if one["type"] != "extra_forbidden" or len(one["loc"]) > 1
    ]
    if extra := [
        str(one["loc"][-1])
        for one in found
        if one["type"] == "extra_forbidden" and len(one["loc"]) == 1
    ]:
        problems.append(_unexpected(extra, schema))
    more = len(problems) - _MOST_ERRORS
    if more > 0:
        problems[_MOST_ERRORS:] = [f"and {more} more"]
    return " ".join("; ".join(problems).split())


def _problem(error: Any) -> str:
    kind, where = error["type"], ".".join(map(str, error["loc"]))
    message = error["msg"][:1].lower() + error["msg"][1:]
    if kind == "json_invalid":
        return (
            "must be a JSON object, and is not valid JSON "
            f"({message.removeprefix('invalid JSON: ')})"
        )
    if kind == "missing":
        return f"{where}: field required"
    if kind == "extra_forbidden":
        return f"{where}: unknown field"
    if not where and kind in {"dict_type", "model_type", "dataclass_type"}:
        return f"must be a JSON object (got {_shown(error['input'])})"
    if kind.endswith("_parsing"):
        message = message.split(", unable to")[0]
    return (
        f"{where}: {message} (got {_shown(error['input'])})"
        if where
        else f"{message} (got {_shown(error['input'])})"
    )


def _unexpected(extra: list[str], schema: Mapping[str, Any]) -> str:
    known = ", ".join(schema.get("properties", {})) or "none"
    return f"unknown argument: {', '.join(extra)} (known: {known})"


def _shown(value: object) -> str:
    text = to_json(value, fallback=repr).decode()
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."


def _field(one: Parameter) -> object:
    annotation: object = _modern(one.annotation)
    if isinstance(one.default, FieldInfo):
        annotation = Annotated[annotation, one.default]
    return types.GenericAlias(list, (annotation,)) if one.is_rest else annotation


def _modern(annotation: Any) -> object:
    """Return the same type, with each TypedDict of `typing` rebuilt by `typing_extensions`.

    Before Python 3.12, pydantic accepts only those of `typing_extensions`.
    """
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        make: Any = typing_extensions.TypedDict
        hints = typing.get_type_hints(annotation, include_extras=True)
        known = annotation.__required_keys__
        fields = {
            key: (typing_extensions.Required if key in known else typing_extensions.NotRequired)[
                _modern(hint)
            ]
            for key, hint in hints.items()
        }
        made = make(annotation.__name__, fields)
        made.__doc__ = annotation.__doc__
        return made
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {list, set, frozenset, tuple, dict}:
        return types.GenericAlias(origin, tuple(_modern(one) for one in args))
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_modern(one) for one in args)]  # noqa: UP007 -- built from a runtime tuple
    return Annotated[(_modern(args[0]), *args[1:])] if origin is Annotated else annotation


def _alias(one: Parameter) -> str | None:
    beside = (
        [*typing.get_args(one.annotation)[1:], one.default]
        if typing.get_origin(one.annotation) is Annotated
        else [one.default]
    )
    found = [item.validation_alias or item.alias for item in beside if isinstance(item, FieldInfo)]
    return next((alias for alias in found if isinstance(alias, str)), None)


def _text_beside(annotation: object) -> str | None:
    """Return the text in `Annotated[str, "text"]` or in `Annotated[str, Doc("text")]`."""
    if typing.get_origin(annotation) is not Annotated:
        return None
    beside = typing.get_args(annotation)[1:]
    texts: list[str | None] = [
        item if isinstance(item, str) else getattr(item, "documentation", None) for item in beside
    ]
    return next((text for text in texts if isinstance(text, str)), None)
