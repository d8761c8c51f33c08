"""What a Python function takes, as a model is told.

Owns: the reading of signatures and docstrings, and the making of calls from validated arguments. It must never call the function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from .docstrings import DocstringStyle, FuncDocumentation, read_docstring
from .exceptions import UserError
from .run_context import RunContextWrapper
from .strict_schema import ensure_strict_json_schema
from .tool_context import ToolContext

__all__ = ["FuncSchema", "function_schema", "generate_func_documentation"]

_EMPTY = inspect.Parameter.empty


@dataclass
class FuncSchema:
    """A function, as a model is told of it."""

    name: str
    description: str | None
    params_pydantic_model: type[BaseModel]
    params_json_schema: dict[str, Any]
    signature: inspect.Signature
    takes_context: bool = False
    strict_json_schema: bool = True
    return_annotation: Any = _EMPTY

    def to_call_args(self, data: BaseModel) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call, but for the context."""
        args: list[Any] = []
        named: dict[str, Any] = {}
        star = False
        for index, (name, parameter) in enumerate(self.signature.parameters.items()):
            if self.takes_context and index == 0:
                continue
            value = getattr(data, name, None)
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(value or ())
                star = True
            elif parameter.kind is parameter.VAR_KEYWORD:
                named.update(value or {})
            elif parameter.kind is parameter.KEYWORD_ONLY or star:
                named[name] = value
            else:
                args.append(value)
        return args, named


def generate_func_documentation(func: Callable[..., Any], style: DocstringStyle | None = None) -> FuncDocumentation:
    """What the docstring of a function says of it and of its parameters."""
    return read_docstring(func.__name__, inspect.getdoc(func), style)


def function_schema(
    func: Callable[..., Any],
    docstring_style: DocstringStyle | None = None,
    name_override: str | None = None,
    description_override: str | None = None,
    use_docstring_info: bool = True,
    strict_json_schema: bool = True,
) -> FuncSchema:
    """The schema of a function. A first parameter that is annotated `RunContextWrapper` or `ToolContext` is given the context, and is not in it."""
    said = generate_func_documentation(func, docstring_style) if use_docstring_info else None
    described = dict(said.param_descriptions or {}) if said is not None else {}
    hints = get_type_hints(func, include_extras=True)
    signature = inspect.signature(func)
    takes_context, fields = False, {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        annotation, metadata = _without_extras(hints.get(name, parameter.annotation))
        if (get_origin(annotation) or annotation) in (RunContextWrapper, ToolContext):
            if index:
                msg = f"RunContextWrapper/ToolContext param found at non-first position in function {func.__name__}"
                raise UserError(msg)
            takes_context = True
            continue
        text = next((one for one in metadata if isinstance(one, str)), None)
        fields[name] = _field(parameter, annotation, metadata, described.get(name, text))
    name = name_override or func.__name__
    model = create_model(f"{name}_args", __base__=BaseModel, **fields)
    schema = model.model_json_schema()
    return FuncSchema(
        name=name,
        description=description_override or (said.description if said is not None else None),
        params_pydantic_model=model,
        params_json_schema=ensure_strict_json_schema(schema) if strict_json_schema else schema,
        signature=signature,
        takes_context=takes_context,
        strict_json_schema=strict_json_schema,
        return_annotation=hints.get("return", signature.return_annotation),
    )


def _without_extras(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    metadata: tuple[Any, ...] = ()
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = (*metadata, *more)
    return annotation, metadata


def _field(parameter: inspect.Parameter, annotation: Any, metadata: tuple[Any, ...], description: str | None) -> Any:
    if annotation is _EMPTY:
        annotation = Any
    if parameter.kind is parameter.VAR_POSITIONAL:
        args = get_args(annotation)
        if get_origin(annotation) is tuple:
            annotation = args[0] if len(args) == 2 and args[1] is Ellipsis else Any  # noqa: PLR2004 -- tuple[int, ...]
        return list[annotation], Field(default_factory=list, description=description)
    if parameter.kind is parameter.VAR_KEYWORD:
        args = get_args(annotation)
        if get_origin(annotation) is dict:
            kinds = args if len(args) == 2 else (str, Any)  # noqa: PLR2004 -- a key and a value
        else:
            kinds = (str, annotation)
        return dict[kinds[0], kinds[1]], Field(default_factory=dict, description=description)  # type: ignore[valid-type]  # made at run time
    default = parameter.default
    annotated = next((one for one in metadata if isinstance(one, FieldInfo)), None)
    if annotated is not None:
        merged = FieldInfo.merge_field_infos(annotated, description=description or annotated.description)
        if isinstance(default, FieldInfo):
            merged = FieldInfo.merge_field_infos(merged, default)
        elif default is not _EMPTY:
            merged = FieldInfo.merge_field_infos(merged, default=default)
        return annotation, merged
    if isinstance(default, FieldInfo):
        return annotation, FieldInfo.merge_field_infos(default, description=description or default.description)
    return annotation, Field(description=description) if default is _EMPTY else Field(default=default, description=description)
