"""Tools and handoffs, as the Responses API is told of them.

Owns: this translation. It must never call a tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..computer import AsyncComputer, Computer
from ..exceptions import UserError
from ..model_settings import MCPToolChoice
from ..tool import (
    ApplyPatchTool,
    CodeInterpreterTool,
    ComputerTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    ToolSearchTool,
    WebSearchTool,
)
from ..tool_names import namespace_of

__all__ = ["tool_choice_param", "tool_params"]

_MOST_RESULTS = 50
_PLAIN_CHOICES = ("auto", "none", "required")
_HOSTED_CHOICES = ("programmatic_tool_calling", "file_search", "web_search", "web_search_preview", "image_generation", "code_interpreter", "mcp")


def tool_choice_param(choice: Any, tools: Sequence[Any], model: str | None) -> Any:
    """What the API is told of which tool is to be called; None for nothing."""
    if choice is None or choice in _PLAIN_CHOICES:
        return choice
    if isinstance(choice, MCPToolChoice):
        return {"server_label": choice.server_label, "type": "mcp", "name": choice.name}
    if choice in _HOSTED_CHOICES:
        return {"type": choice}
    if choice in ("computer", "computer_use", "computer_use_preview") and any(isinstance(tool, ComputerTool) for tool in tools):
        return {"type": "computer_use_preview" if _is_preview(model, choice) else "computer"}
    return {"type": "computer_use_preview"} if choice == "computer_use_preview" else {"type": "function", "name": choice}


def _is_preview(model: str | None, choice: Any) -> bool:
    if model is not None:
        return model.startswith("computer-use-preview")
    return choice not in ("computer", "computer_use")


def tool_params(tools: Sequence[Any], handoffs: Sequence[Any], *, model: str | None, choice: Any) -> tuple[list[Any], list[str]]:
    """The tools, and what the API is asked to include in its response."""
    found: list[Any] = []
    includes: list[str] = []
    namespaces: dict[str, dict[str, Any]] = {}
    if sum(isinstance(tool, ComputerTool) for tool in tools) > 1:
        msg = "You can only provide one computer tool."
        raise UserError(msg)
    for tool in tools:
        namespace = namespace_of(tool) if isinstance(tool, FunctionTool) else None
        if namespace is not None:
            entry = namespaces.get(namespace)
            if entry is None:
                entry = namespaces[namespace] = {"type": "namespace", "name": namespace, "description": tool.namespace_description or "", "tools": []}
                found.append(entry)
            entry["tools"].append(_function(tool))
            continue
        found.append(_param(tool, preview=_is_preview(model, choice)))
        if isinstance(tool, FileSearchTool) and tool.include_search_results:
            includes.append("file_search_call.results")
    found += [
        {
            "type": "function",
            "name": one.tool_name,
            "parameters": one.input_json_schema,
            "strict": one.strict_json_schema,
            "description": one.tool_description,
        }
        for one in handoffs
    ]
    return found, includes


def _function(tool: FunctionTool) -> dict[str, Any]:
    param: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "parameters": tool.params_json_schema,
        "strict": tool.strict_json_schema,
        "description": tool.description,
    }
    if tool.defer_loading:
        param["defer_loading"] = True
    if tool.allowed_callers is not None:
        param["allowed_callers"] = tool.allowed_callers
    if tool.output_json_schema is not None:
        param["output_schema"] = tool.output_json_schema
    return param


def _param(tool: Any, *, preview: bool) -> Any:
    match tool:
        case FunctionTool():
            return _function(tool)
        case WebSearchTool():
            param: dict[str, Any] = {
                "type": "web_search",
                "filters": None if tool.filters is None else tool.filters.model_dump(),
                "user_location": tool.user_location,
                "search_context_size": tool.search_context_size,
            }
            if tool.external_web_access is not None:
                param["external_web_access"] = tool.external_web_access
            return param
        case FileSearchTool():
            return _file_search(tool)
        case ComputerTool():
            return _computer(tool) if preview else {"type": "computer"}
        case CustomTool() | HostedMCPTool() | ImageGenerationTool() | CodeInterpreterTool():
            return tool.tool_config
        case ApplyPatchTool():
            callers = {} if tool.allowed_callers is None else {"allowed_callers": tool.allowed_callers}
            return {"type": "apply_patch", **callers}
        case ShellTool():
            callers = {} if tool.allowed_callers is None else {"allowed_callers": tool.allowed_callers}
            return {"type": "shell", "environment": {"type": "local", **dict(tool.environment or {})}, **callers}
        case LocalShellTool():
            return {"type": "local_shell"}
        case ToolSearchTool():
            named = {name: getattr(tool, name) for name in ("description", "execution", "parameters")}
            return {"type": "tool_search", **{name: value for name, value in named.items() if value is not None}}
        case ProgrammaticToolCallingTool():
            return {"type": "programmatic_tool_calling"}
    msg = f"Unknown tool type: {type(tool)}"
    raise UserError(msg)


def _file_search(tool: FileSearchTool) -> dict[str, Any]:
    param: dict[str, Any] = {"type": "file_search", "vector_store_ids": tool.vector_store_ids}
    most: Any = tool.max_num_results
    if most is not None:
        if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= _MOST_RESULTS:
            msg = "FileSearchTool max_num_results must be zero, an integer between 1 and 50, or None."
            raise UserError(msg)
        if most:
            param["max_num_results"] = most
    if tool.ranking_options:
        param["ranking_options"] = tool.ranking_options
    if tool.filters:
        param["filters"] = tool.filters
    return param


def _computer(tool: ComputerTool[Any]) -> dict[str, Any]:
    computer = tool.computer
    if not isinstance(computer, Computer | AsyncComputer):
        msg = "Computer tool is not initialized for serialization. Call resolve_computer(tool=..., run_context=...) first."
        raise UserError(msg)
    environment, dimensions = computer.environment, computer.dimensions
    if environment is None or dimensions is None:
        msg = "Preview computer tool payloads require `environment` and `dimensions` on the Computer/AsyncComputer implementation."
        raise UserError(msg)
    return {"type": "computer_use_preview", "environment": environment, "display_width": dimensions[0], "display_height": dimensions[1]}
