"""Which callables `function_tool` takes: functions, methods, and objects with a plain `__call__`.

Owns: the refusal of all others, and a function in the place of an object. It must never guess a signature.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

import typing_extensions

from ..exceptions import UserError
from ..function_schema import generate_func_documentation
from ..run_context import RunContextWrapper
from ..tool_context import ToolContext

__all__ = ["as_function"]

_WRAP: Final = "Use an explicit wrapper function."
_MOST: Final = 64
_ALIASES: Final = (typing_extensions.TypeAliasType, getattr(typing, "TypeAliasType", typing_extensions.TypeAliasType))
_GENERIC: Final = (TypeVar, ParamSpec, typing_extensions.TypeVar, *_ALIASES)


def _refuse(what: str) -> NoReturn:
    msg = f"{what} {_WRAP[0].lower()}{_WRAP[1:]}" if what.endswith(":") else f"{what} {_WRAP}"
    raise UserError(msg)


def as_function(func: Any, style: Any, name: str | None, *, use_docstring: bool) -> tuple[Callable[..., Any], str | None]:
    """The function to read and call, and what the class of an object says of it."""
    if isinstance(func, functools.partial):
        _refuse("Unsupported callable object: function_tool does not infer functools.partial contracts.")
    if inspect.isroutine(func) or inspect.isclass(func):
        if inspect.isbuiltin(func) and not hasattr(func, "__signature__"):
            _refuse("Unsupported callable object: built-in callables have no signature to read.")
        return func, None
    owner, method = _plain_call(func)
    signature = inspect.signature(method)
    try:
        hints = get_type_hints(method, {**getattr(method, "__globals__", {})}, {**vars(owner), owner.__name__: owner}, include_extras=True)
    except (NameError, TypeError) as error:
        msg = f"Unsupported callable object annotations: use an explicit wrapper function with annotations resolvable from its module. {error}"
        raise UserError(msg) from error
    _check_annotations(signature, hints)
    adapter: Any = _adapter(method)
    adapter.__name__ = type(func).__name__ if name else _checked_name(type(func).__name__)
    adapter.__annotations__ = {key: hint for key, hint in hints.items() if key == "return" or key in signature.parameters}
    adapter.__signature__ = signature
    own, of_class = method.__doc__, inspect.getdoc(type(func))
    adapter.__doc__ = (inspect.cleandoc(own) if own else of_class) if use_docstring else None
    described = generate_func_documentation(type(func), style).description if use_docstring and own and of_class else None
    return adapter, described


def _plain_call(func: Any) -> tuple[type, Any]:
    own = getattr(func, "__dict__", {})
    missing = object()
    wraps = any(inspect.getattr_static(func, name, missing) is not missing for name in ("__wrapped__", "__signature__"))
    if wraps or "__annotations__" in own or "__annotate__" in own:
        _refuse("Unsupported callable wrapper: function_tool only infers plain callable instances.")
    owner = next((one for one in type(func).__mro__ if "__call__" in vars(one)), None)
    if owner is None:
        _refuse("Unsupported callable object: no inspectable __call__ method was found.")
    found = vars(owner)["__call__"]
    if getattr(owner, "__type_params__", ()) or getattr(owner, "__parameters__", ()):
        _refuse("Unsupported generic callable object:")
    if not isinstance(found, FunctionType) or hasattr(found, "__wrapped__") or hasattr(found, "__signature__"):
        _refuse("Unsupported callable object: function_tool supports instances with a plain __call__ method.")
    return owner, found.__get__(func, type(func))


def _check_annotations(signature: inspect.Signature, hints: dict[str, Any]) -> None:
    said = [hints.get(name, parameter.annotation) for name, parameter in signature.parameters.items()]
    if any(_is_open(one) for one in (*said, hints.get("return", signature.return_annotation))):
        _refuse("Unsupported generic or aliased callable object annotations:")
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        annotation = hints.get(name, parameter.annotation)
        while get_origin(annotation) is typing.Annotated:
            annotation = get_args(annotation)[0]
        if (get_origin(annotation) or annotation) in (RunContextWrapper, ToolContext):
            if index or parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                _refuse("Unsupported callable object context parameter: RunContextWrapper or ToolContext must be the first positional parameter.")


def _is_open(annotation: Any) -> bool:
    if isinstance(annotation, _GENERIC) or isinstance(get_origin(annotation), _GENERIC) or annotation is typing.Self or annotation is typing_extensions.Self:
        return True
    return any(_is_open(one) for one in get_args(annotation))


def _checked_name(name: str) -> str:
    if 1 <= len(name) <= _MOST and all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name):
        return name
    msg = (
        f"Cannot derive a function tool name from callable class {name!r}. Generated names must contain only ASCII letters, digits, underscores, or hyphens "
        "and be at most 64 characters. Pass name_override to function_tool()."
    )
    raise UserError(msg)


def _adapter(method: Any) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await method(*args, **kwargs)

        return call_async

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call
