"""All kinds of tools, and the callables that they take.

Owns: these types. It must never make a tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NotRequired, TypeAlias

from typing_extensions import TypedDict

from .function import FunctionTool
from .hosted_tools import (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    MCPToolApprovalRequest,
    ProgrammaticToolCallingTool,
    ToolSearchTool,
    WebSearchTool,
)
from .local_tools import (
    ApplyPatchTool,
    ApplyPatchToolCustomDataContext,
    ComputerTool,
    ComputerToolCustomDataContext,
    CustomTool,
    CustomToolCustomDataContext,
    LocalShellCommandRequest,
    LocalShellTool,
    ShellCommandRequest,
    ShellTool,
)

__all__ = [
    "ApplyPatchToolCustomDataExtractor",
    "ComputerToolCustomDataExtractor",
    "CustomToolCustomDataExtractor",
    "LocalShellExecutor",
    "MCPToolApprovalFunction",
    "MCPToolApprovalFunctionResult",
    "ShellExecutor",
    "Tool",
    "ToolErrorFunction",
    "ToolFunction",
]

Tool: TypeAlias = (
    FunctionTool
    | FileSearchTool
    | WebSearchTool
    | ComputerTool[Any]
    | HostedMCPTool
    | ShellTool
    | ApplyPatchTool
    | LocalShellTool
    | ImageGenerationTool
    | CodeInterpreterTool
    | CustomTool
    | ToolSearchTool
    | ProgrammaticToolCallingTool
)
ToolErrorFunction: TypeAlias = Callable[[Any, Exception], Any]
ToolFunction: TypeAlias = Callable[..., Any]
ApplyPatchToolCustomDataExtractor: TypeAlias = Callable[[ApplyPatchToolCustomDataContext], Any]
ComputerToolCustomDataExtractor: TypeAlias = Callable[[ComputerToolCustomDataContext], Any]
CustomToolCustomDataExtractor: TypeAlias = Callable[[CustomToolCustomDataContext], Any]
LocalShellExecutor: TypeAlias = Callable[[LocalShellCommandRequest], Any]
ShellExecutor: TypeAlias = Callable[[ShellCommandRequest], Any]


class MCPToolApprovalFunctionResult(TypedDict):
    """What a program says of a call of a hosted MCP server's tool."""

    approve: bool
    reason: NotRequired[str]


MCPToolApprovalFunction: TypeAlias = Callable[[MCPToolApprovalRequest], Any]
