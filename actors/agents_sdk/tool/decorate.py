"""`function_tool`: a Python function as a tool.

Owns: how the arguments of a call become those of the function, and what becomes of what it returns or raises. A plain `def` runs in a thread. It must never
show the model an exception that the tool keeps to itself.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from ..exceptions import ModelBehaviorError, UserError
from ..function_schema import FuncSchema, function_schema
from ..logger import hides_tool_data, logger
from ..strict_schema import copy_json_schema, ensure_strict_json_schema
from ..tool_context import ToolContext
from .callables import as_function
from .failure import UNSET, maybe_invoke_function_tool_failure_error_function, note_handled_error, set_function_tool_failure_error_function
from .function import FunctionTool, ToolCaller, is_object_schema
from .outputs import ToolOrigin

__all__ = ["Invoker", "function_tool", "parsed_arguments", "validated", "wrapped_tool"]


class Invoker:
    """Calls the function of one tool. What it raises becomes what the tool's error function says, if it has one."""

    takes_any_context = True

    def __init__(self, call: Callable[[ToolContext[Any], str], Awaitable[Any]], *, is_sync: bool = False, original: Any = None) -> None:
        self._call = call
        self.is_sync = is_sync
        self.original = original
        self.tool: FunctionTool | None = None

    def bound_to(self, tool: FunctionTool) -> Invoker:
        """The same for that tool: a copy of a tool has an error function of its own."""
        twin = Invoker(self._call, is_sync=self.is_sync, original=self.original)
        twin.tool = tool
        return twin

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await self._call(context, arguments)
        except Exception as error:
            assert self.tool is not None
            said = await maybe_invoke_function_tool_failure_error_function(function_tool=self.tool, context=context, error=error)
            if said is None:
                raise
            note_handled_error(self.tool, error, context)
            return said


def parsed_arguments(tool_name: str, text: str) -> dict[str, Any]:
    """The arguments of a call. Raises `ModelBehaviorError`, if they are no JSON object."""
    problem: Exception | None = None
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        problem = error
    if problem is not None:
        msg = f"Invalid JSON input for tool {tool_name}"
        if hides_tool_data():
            raise ModelBehaviorError(msg)
        msg = f"{msg}: {text}"
        raise ModelBehaviorError(msg) from problem
    if not isinstance(found, dict):
        msg = f"Invalid JSON input for tool {tool_name}: expected a JSON object"
        raise ModelBehaviorError(msg)
    logger.debug("Invoking tool %s", tool_name)
    return found


def validated(tool_name: str, check: Callable[[], Any]) -> Any:
    """What the check returns. Raises `ModelBehaviorError`, if it finds the arguments invalid."""
    problem: ValidationError | None = None
    try:
        return check()
    except ValidationError as error:
        problem = error
    msg = f"Invalid JSON input for tool {tool_name}"
    if hides_tool_data():
        raise ModelBehaviorError(msg)
    msg = f"{msg}: {problem}"
    raise ModelBehaviorError(msg) from problem


def function_tool(
    func: Callable[..., Any] | None = None,
    *,
    name_override: str | None = None,
    description_override: str | None = None,
    docstring_style: Literal["google", "numpy", "sphinx"] | None = None,
    use_docstring_info: bool = True,
    failure_error_function: Any = UNSET,
    strict_mode: bool = True,
    is_enabled: Any = True,
    needs_approval: Any = False,
    tool_input_guardrails: list[Any] | None = None,
    tool_output_guardrails: list[Any] | None = None,
    timeout: float | None = None,
    timeout_behavior: Literal["error_as_result", "raise_exception"] = "error_as_result",
    timeout_error_function: Any = None,
    defer_loading: bool = False,
    custom_data_extractor: Any = None,
    allowed_callers: list[ToolCaller] | None = None,
    output_type: Any | None = None,
    output_json_schema: dict[str, Any] | None = None,
) -> Any:
    """A Python function as a tool: its signature becomes the schema, its docstring the descriptions. With or without parentheses."""

    def decorate(given: Any) -> FunctionTool:
        function, of_class = as_function(given, docstring_style, name_override, use_docstring=use_docstring_info)
        description = description_override or (of_class if use_docstring_info else None)
        schema = function_schema(function, docstring_style, name_override, description, use_docstring_info, strict_mode)
        output_schema, adapter = _output_of(schema.return_annotation, allowed_callers, output_type, output_json_schema)
        invoke, is_sync = _call_of(function, schema, adapter)
        return wrapped_tool(
            Invoker(invoke, is_sync=is_sync, original=given),
            failure_error_function,
            name=schema.name,
            description=schema.description or "",
            params_json_schema=schema.params_json_schema,
            strict_json_schema=strict_mode,
            is_enabled=is_enabled,
            needs_approval=needs_approval,
            tool_input_guardrails=tool_input_guardrails,
            tool_output_guardrails=tool_output_guardrails,
            timeout_seconds=timeout,
            timeout_behavior=timeout_behavior,
            timeout_error_function=timeout_error_function,
            defer_loading=defer_loading,
            custom_data_extractor=custom_data_extractor,
            allowed_callers=allowed_callers,
            output_json_schema=output_schema,
            output_type_adapter=adapter,
        )

    return decorate(func) if callable(func) else decorate


def wrapped_tool(invoker: Invoker, failure_error_function: Any, origin: ToolOrigin | None = None, **fields: Any) -> FunctionTool:
    """A tool that is called by that invoker."""
    tool = FunctionTool(on_invoke_tool=invoker, origin=origin, **fields)
    return set_function_tool_failure_error_function(tool, failure_error_function)


def _call_of(function: Callable[..., Any], schema: FuncSchema, adapter: TypeAdapter[Any] | None) -> tuple[Callable[[ToolContext[Any], str], Any], bool]:
    is_sync = not inspect.iscoroutinefunction(function)

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        name = context.tool_name
        given = parsed_arguments(name, text)
        data = validated(name, lambda: schema.params_pydantic_model(**given))
        args, named = schema.to_call_args(data)
        if schema.takes_context:
            args.insert(0, context)
        result = await asyncio.to_thread(function, *args, **named) if is_sync else await function(*args, **named)
        return result if adapter is None else _checked_output(name, result, adapter)

    return invoke, is_sync


def _checked_output(name: str, output: Any, adapter: TypeAdapter[Any]) -> Any:
    problem: ValidationError | None = None
    try:
        return adapter.validate_python(output)
    except ValidationError as error:
        problem = error
    msg = f"Function tool {name} returned an output that does not match its declared output type"
    if hides_tool_data():
        raise UserError(msg)
    msg = f"{msg}: {problem}"
    raise UserError(msg) from problem


def _output_of(
    annotation: Any, callers: list[ToolCaller] | None, output_type: Any, schema: dict[str, Any] | None
) -> tuple[dict[str, Any] | None, TypeAdapter[Any] | None]:
    """What a program that calls the tool is told of its output, and what checks it."""
    if output_type is not None and schema is not None:
        msg = "output_type and output_json_schema cannot both be provided."
        raise UserError(msg)
    if output_type is not None:
        return _typed_output(
            output_type,
            "Function tool output_type must define a strict JSON object schema. Use a Pydantic model, TypedDict, or dataclass, or provide output_json_schema "
            "directly.",
        )
    if schema is not None:
        return copy_json_schema(schema), None
    if callers is None or "programmatic" not in callers:
        return None, None
    plain = annotation
    while get_origin(plain) is Annotated:
        plain = get_args(plain)[0]
    if plain in (inspect.Signature.empty, Any, None, str, type(None)):
        return None, None
    return _typed_output(
        annotation,
        "A programmatic function tool return annotation must define a strict JSON object schema. Use a Pydantic model, TypedDict, or dataclass; annotate the "
        "return as str or Any for an untyped result; or provide output_type or output_json_schema.",
    )


def _typed_output(kind: Any, problem: str) -> tuple[dict[str, Any], TypeAdapter[Any]]:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(mode="serialization")
        if not is_object_schema(schema):
            raise UserError(problem)  # noqa: TRY301 -- as whatever else is wrong
        return ensure_strict_json_schema(copy_json_schema(schema)), adapter
    except Exception as error:
        raise UserError(problem) from error
