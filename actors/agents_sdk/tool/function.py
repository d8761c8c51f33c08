"""A function that the model may call.

Owns: `FunctionTool`, and what its fields have to be. It must never call the function.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..exceptions import UserError
from ..strict_schema import copy_json_schema, ensure_strict_json_schema
from ..tool_names import check_namespace, namespace_of, qualified
from .outputs import ToolOrigin, ToolOriginType

if TYPE_CHECKING:
    from ..agent import AgentBase
    from ..items import RunItem, ToolApprovalItem
    from ..run_context import RunContextWrapper
    from ..tool_context import ToolContext
    from ..tool_guardrails import ToolInputGuardrail, ToolOutputGuardrail

__all__ = [
    "FunctionTool",
    "FunctionToolCustomDataContext",
    "FunctionToolCustomDataExtractor",
    "FunctionToolResult",
    "ToolCaller",
    "checked_callers",
    "is_object_schema",
    "origin_of",
    "tool_namespace",
]

ToolCaller: TypeAlias = Literal["direct", "programmatic"]

_BEHAVIORS: Final = ("error_as_result", "raise_exception")


@dataclass(frozen=True)
class FunctionToolCustomDataContext:
    """What an extractor of custom data is given."""

    tool_context: ToolContext[Any]
    tool: FunctionTool
    output: Any
    raw_item: Any


FunctionToolCustomDataExtractor: TypeAlias = Callable[[FunctionToolCustomDataContext], Any]


@dataclass
class FunctionToolResult:
    """What has become of one call."""

    tool: FunctionTool
    output: Any
    run_item: RunItem | None
    """None, if the call has to wait for an approval within it."""
    interruptions: list[ToolApprovalItem] = field(default_factory=list)
    agent_run_result: Any = None


class _Wrapped:
    """`tool.__wrapped__`: the callable that `function_tool` was given."""

    def __get__(self, tool: FunctionTool | None, owner: type | None = None) -> Any:
        found = None if tool is None else getattr(tool.on_invoke_tool, "original", None)
        if found is None:
            msg = "FunctionTool has no wrapped Python callable"
            raise AttributeError(msg)
        return found

    def __set__(self, tool: FunctionTool, value: object) -> None:
        msg = "FunctionTool.__wrapped__ is read-only"
        raise AttributeError(msg)


@dataclass
class FunctionTool:
    """A function that the model may call. `function_tool` makes one of a Python function."""

    name: str
    description: str
    params_json_schema: dict[str, Any]
    on_invoke_tool: Callable[[ToolContext[Any], str], Awaitable[Any]]
    """Called with the context of the call and the arguments as JSON."""
    strict_json_schema: bool = True
    is_enabled: bool | Callable[[RunContextWrapper[Any], AgentBase[Any]], Any] = True
    tool_input_guardrails: list[ToolInputGuardrail[Any]] | None = None
    tool_output_guardrails: list[ToolOutputGuardrail[Any]] | None = None
    needs_approval: bool | Callable[[RunContextWrapper[Any], dict[str, Any], str], Any] = False
    timeout_seconds: float | None = None
    timeout_behavior: Literal["error_as_result", "raise_exception"] = "error_as_result"
    timeout_error_function: Callable[[RunContextWrapper[Any], Exception], Any] | None = None
    defer_loading: bool = False
    custom_data_extractor: FunctionToolCustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)
    output_json_schema: dict[str, Any] | None = field(default=None, kw_only=True)
    output_type_adapter: Any = field(default=None, kw_only=True, repr=False)
    _failure_error_function: Any = field(default=None, kw_only=True, repr=False)
    _use_default_failure_error_function: bool = field(default=True, kw_only=True, repr=False)
    is_agent_tool: bool = field(default=False, kw_only=True, repr=False)
    default_identity: tuple[str, str] | None = field(default=None, kw_only=True, repr=False)
    of_agent: Any = field(default=None, kw_only=True, repr=False)
    namespace: str | None = field(default=None, kw_only=True, repr=False)
    namespace_description: str | None = field(default=None, kw_only=True, repr=False)
    mcp_title: str | None = field(default=None, kw_only=True, repr=False)
    origin: ToolOrigin | None = field(default=None, kw_only=True, repr=False)
    shows_origin: bool = field(default=True, kw_only=True, repr=False)

    __wrapped__ = _Wrapped()

    @property
    def qualified_name(self) -> str:
        """The name with its namespace."""
        return qualified(self.name, namespace_of(self)) or self.name

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.qualified_name)
        if self.output_json_schema is not None:
            self.output_json_schema = _output_schema(self.output_json_schema)
        bind = getattr(self.on_invoke_tool, "bound_to", None)
        if callable(bind):
            self.on_invoke_tool = bind(self)
        if self.strict_json_schema:
            self.params_json_schema = ensure_strict_json_schema(copy_json_schema(self.params_json_schema))
        self._check_timeout()

    def __copy__(self) -> FunctionTool:
        # Not by the constructor: a subclass may have one of its own.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        invoke = twin.__dict__.get("on_invoke_tool")
        if inspect.ismethod(invoke) and invoke.__self__ is self:
            twin.on_invoke_tool = invoke.__func__.__get__(twin, type(twin))
        FunctionTool.__post_init__(twin)
        return twin

    def _check_timeout(self) -> None:
        seconds = self.timeout_seconds
        if seconds is not None:
            if isinstance(seconds, bool) or not isinstance(seconds, int | float):
                msg = "FunctionTool timeout_seconds must be a positive number in seconds or None."
                raise TypeError(msg)
            if not math.isfinite(seconds):
                msg = "FunctionTool timeout_seconds must be a finite number."
                raise ValueError(msg)
            if seconds <= 0:
                msg = "FunctionTool timeout_seconds must be greater than 0."
                raise ValueError(msg)
            if getattr(self.on_invoke_tool, "is_sync", False):
                msg = "FunctionTool timeout_seconds is only supported for async @function_tool handlers."
                raise ValueError(msg)
            self.timeout_seconds = float(seconds)
        if self.timeout_behavior not in _BEHAVIORS:
            msg = f"FunctionTool timeout_behavior must be one of: {', '.join(_BEHAVIORS)}"
            raise ValueError(msg)
        if self.timeout_error_function is not None and not callable(self.timeout_error_function):
            msg = "FunctionTool timeout_error_function must be callable or None."
            raise TypeError(msg)


def origin_of(tool: FunctionTool) -> ToolOrigin | None:
    """Where the tool comes from, as its items say it."""
    if not tool.shows_origin:
        return None
    return tool.origin or ToolOrigin(ToolOriginType.FUNCTION)


def checked_callers(callers: Any, tool_name: str) -> list[ToolCaller] | None:
    """Who may call a tool, checked."""
    if callers is None:
        return None
    if not isinstance(callers, list) or not callers:
        msg = f"Tool `{tool_name}` allowed_callers must be a non-empty list containing 'direct', 'programmatic', or both."
        raise UserError(msg)
    checked: list[ToolCaller] = []
    for caller in callers:
        if caller not in ("direct", "programmatic"):
            msg = f"Tool `{tool_name}` allowed_callers contains unsupported caller {caller!r}. Expected 'direct' or 'programmatic'."
            raise UserError(msg)
        if caller in checked:
            msg = f"Tool `{tool_name}` allowed_callers contains duplicate caller {caller!r}."
            raise UserError(msg)
        checked.append(caller)
    return checked


def is_object_schema(schema: Any) -> bool:
    """Whether a JSON schema is one of an object, references followed."""
    current, seen = schema, set()
    while isinstance(current, dict):
        if current.get("type") == "object":
            return True
        reference = current.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/") or reference in seen:
            return False
        seen.add(reference)
        current = schema
        for step in reference[2:].split("/"):
            current = current.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(current, dict) else None
    return False


def _output_schema(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or not is_object_schema(schema):
        msg = "Function tool output_json_schema must define a JSON object schema."
        raise UserError(msg)
    try:
        return ensure_strict_json_schema(copy_json_schema(schema))
    except Exception as error:
        msg = "Function tool output_json_schema must define a strict JSON object schema."
        raise UserError(msg) from error


def tool_namespace(*, name: str, description: str | None, tools: list[FunctionTool]) -> list[FunctionTool]:
    """Copies of the tools, in a namespace."""
    if not isinstance(name, str) or not name.strip():
        msg = "tool_namespace() requires a non-empty namespace name."
        raise UserError(msg)
    if not isinstance(description, str) or not description.strip():
        msg = "tool_namespace() requires a non-empty description."
        raise UserError(msg)
    if any(not isinstance(tool, FunctionTool) for tool in tools):
        msg = "tool_namespace() only supports FunctionTool instances."
        raise UserError(msg)
    found = []
    for tool in tools:
        check_namespace(tool.name, name.strip())
        twin = copy.copy(tool)
        twin.namespace, twin.namespace_description = name.strip(), description.strip()
        found.append(twin)
    return found
