"""Reads a function's signature for the model that calls it.

It also does the cheap half of the check that the signature has a schema. Plain types are left to
`function_schema.py`, when the tool is first used. This module does not import pydantic, so a
program with a hundred tools starts as fast as one without.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union
from uuid import UUID

from ...runtime.errors import UsageError
from .tool_context import ToolContext

__all__ = ["Docstring", "Parameter", "Signature", "read_docstring", "read_signature"]


@dataclass(frozen=True, slots=True)
class Docstring:
    """The descriptions of a function and of its arguments."""

    description: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docstring:
    """Return the description and the arguments.

    Other sections (Returns, Raises, ...) are for readers of the code.
    """
    if not text or not text.strip():
        return Docstring()
    # Imported here: it takes longer to import than the whole package, and many tools are never
    # shown to a model.
    from docstring_parser import ParseError, parse  # noqa: PLC0415

    clean = inspect.cleandoc(text)
    try:
        read = parse(clean)
    except ParseError:
        return Docstring(clean)
    paragraphs = [
        part.strip()
        for part in (read.short_description, read.long_description)
        if part and part.strip()
    ]
    arguments: dict[str, str] = {}
    for one in read.params:
        kind = one.args[0] if one.args else ""
        if one.description and kind not in {"attribute", "attributes"}:
            # NumPy documents several at once: "x, y : int". Google writes *args with its star.
            for name in one.arg_name.split(","):
                arguments.setdefault(name.strip().lstrip("*\\"), " ".join(one.description.split()))
    separator = "\n\n" if read.blank_after_short_description else "\n"
    return Docstring(separator.join(paragraphs), arguments)


_PLAIN: Final = frozenset(
    (
        str,
        int,
        float,
        bool,
        type(None),
        bytes,
        list,
        dict,
        set,
        frozenset,
        tuple,
        date,
        datetime,
        time,
        timedelta,
        Decimal,
        UUID,
        Path,
        Any,
    )
)
_GENERIC: Final = frozenset((list, dict, set, frozenset, tuple, Union, types.UnionType))
_SAYS_CONTEXT: Final = re.compile(r"(?<!\w)ToolContext(?!\w)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the model fills in."""

    name: str
    annotation: object
    default: Any
    by_position: bool = False
    is_rest: bool = False

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty and not self.is_rest


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a function.

    `positional` contains the names that can be passed by position, including contexts. It is empty
    if all parameters can be passed by name.
    """

    name: str
    parameters: tuple[Parameter, ...]
    contexts: tuple[str, ...]
    positional: tuple[str, ...]
    is_plain: bool
    untyped: tuple[str, ...] = ()
    """The names of parameters without an annotation."""


def read_signature(
    function: Callable[..., object], name: str, local_names: Mapping[str, object]
) -> Signature:
    """Read the signature of a function.

    `local_names` are the names in the scope of its definition, for string annotations.
    """
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError) as error:
        msg = (
            f"tool {name}: {function!r} must have a readable signature ({error}). Wrap it in "
            "your own function."
        )
        raise UsageError(msg) from error
    bound = function.keywords if isinstance(function, partial) else {}
    parameters: list[Parameter] = []
    contexts: list[str] = []
    positional: list[str] = []
    for key, one in found.parameters.items():
        if key in bound:
            continue
        _check(one, name, function, first=not (parameters or contexts))
        annotation = one.annotation
        if annotation is inspect.Parameter.empty and key == "context":
            msg = (
                f"tool {name}: parameter context has no annotation, so the model would fill it "
                "in. Annotate it as ToolContext, or rename it."
            )
            raise UsageError(msg)
        if annotation is not inspect.Parameter.empty and type(annotation) is not type:
            annotation = _resolved(
                annotation, function, local_names, f"tool {name}: parameter {key}"
            )
        by_position = one.kind is one.POSITIONAL_ONLY
        if by_position or one.kind is one.POSITIONAL_OR_KEYWORD:
            positional.append(key)
        if _is_context(annotation):
            if one.kind is one.VAR_POSITIONAL:
                msg = (
                    f"tool {name}: parameter *{key} must be a single ToolContext. Write it "
                    "without the star."
                )
                raise UsageError(msg)
            contexts.append(key)
        else:
            parameters.append(
                Parameter(
                    key,
                    Any if annotation is one.empty else annotation,
                    one.default,
                    by_position,
                    one.kind is one.VAR_POSITIONAL,
                )
            )
    if not any(one.by_position or one.is_rest for one in parameters) and not any(
        found.parameters[key].kind is inspect.Parameter.POSITIONAL_ONLY for key in contexts
    ):
        positional = []
    untyped = tuple(
        one.name
        for one in parameters
        if found.parameters[one.name].annotation is inspect.Parameter.empty
    )
    return Signature(
        name,
        tuple(parameters),
        tuple(contexts),
        tuple(positional),
        all(_is_plain(one.annotation) for one in parameters),
        untyped,
    )


def _check(one: inspect.Parameter, name: str, function: Any, *, first: bool) -> None:
    if one.kind is one.VAR_KEYWORD:
        msg = (
            f"tool {name}: parameter **{one.name} has no argument names to tell the model. "
            "Name each argument, or take one dict."
        )
        raise UsageError(msg)
    if (
        one.annotation is one.empty
        and first
        and one.name in {"self", "cls"}
        and "." in getattr(function, "__qualname__", "")
    ):
        msg = (
            f"tool {name}: {function.__qualname__} must be a bound method, got one without its "
            f"object. Make the tool of the bound method: tool(thing.{function.__name__})."
        )
        raise UsageError(msg)


def _resolved(
    annotation: Any, function: Any, local_names: Mapping[str, object], where: str
) -> object:
    """Resolve the names in an annotation.

    They are looked up in the function's module, its closure and the defining scope.
    """
    if not _has_names(annotation):
        return annotation
    inner = inspect.unwrap(function.func if isinstance(function, partial) else function)
    if not inspect.isroutine(inner):
        inner = type(inner).__call__
    inner = inspect.unwrap(getattr(inner, "__func__", inner))
    names = dict(local_names)
    for key, cell in zip(
        getattr(getattr(inner, "__code__", None), "co_freevars", ()),
        getattr(inner, "__closure__", None) or (),
        strict=False,
    ):
        try:
            names[key] = cell.cell_contents
        except ValueError:  # not bound yet; if it is needed, the error is reported below
            continue
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(
            holder, getattr(inner, "__globals__", {}), names, include_extras=True
        )["it"]
    except Exception as error:
        if (
            isinstance(annotation, str)
            and isinstance(error, NameError)
            and _SAYS_CONTEXT.search(annotation)
        ):
            return ToolContext  # imported for the type checker alone
        msg = (
            f"{where}: the annotation {annotation!r} cannot be resolved ({error}). Define the "
            "types it names before the tool."
        )
        raise UsageError(msg) from error


def _has_names(annotation: object) -> bool:
    """Return whether the annotation contains a string or forward reference to resolve.

    The strings in `Literal` and `Annotated` do not count.
    """
    if isinstance(annotation, str | typing.ForwardRef):
        return True
    origin = typing.get_origin(annotation)
    if origin is None or origin is Literal:
        return False
    if origin is Annotated:
        return _has_names(typing.get_args(annotation)[0])
    return any(_has_names(one) for one in typing.get_args(annotation))


def _is_context(annotation: object) -> bool:
    if isinstance(annotation, type):
        return (
            issubclass(annotation, ToolContext)
            if not isinstance(annotation, types.GenericAlias)
            else False
        )
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _is_context(typing.get_args(annotation)[0])
    return origin in (Union, types.UnionType) and any(
        _is_context(one) for one in typing.get_args(annotation)
    )


def _is_plain(annotation: object, within: tuple[object, ...] = ()) -> bool:
    """Return whether a type is certain to have a schema.

    For any other type, the schema is built at once, as a check.
    """
    try:
        if annotation in _PLAIN:
            return True
    except TypeError:  # not hashable: Literal[[]], or Annotated with a list
        return False
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return all(
            isinstance(one, str | int | bool | Enum | None) for one in typing.get_args(annotation)
        )
    if origin is Annotated:
        inner, *rest = typing.get_args(annotation)
        return all(isinstance(one, str) for one in rest) and _is_plain(inner, within)
    if origin is not None:
        return origin in _GENERIC and all(
            one is ... or _is_plain(one, within) for one in typing.get_args(annotation)
        )
    if not isinstance(annotation, type) or annotation in within:
        return isinstance(annotation, type)
    if issubclass(annotation, Enum):
        return annotation.__members__.keys() != set()
    if is_dataclass(annotation):
        return all(_is_plain(one.type, (*within, annotation)) for one in fields(annotation))
    return bool(getattr(annotation, "__pydantic_complete__", False))
