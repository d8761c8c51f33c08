"""The tools of the SDK: functions, and those that run at OpenAI or on this machine by an executor of the program's.

Owns their definitions, and the call of a function. Its files, each importing only from those above it:

    outputs         text, images and files that a tool returns; where a tool comes from
    failure         what the model is told of a call that failed
    function        `FunctionTool`, `tool_namespace`
    callables       which callables `function_tool` takes
    decorate        `function_tool`
    calling         one call of a function tool, within its time
    local_tools     tools that the program executes: shells, patches, computers, custom ones
    hosted_tools    tools that run at OpenAI
    shell_environments where a shell runs
    kinds           all kinds of tools, and the callables that they take

It must never decide whether a call may be made.
"""

from .calling import invoke_function_tool
from .decorate import function_tool
from .failure import (
    default_tool_error_function,
    default_tool_timeout_error_message,
    maybe_invoke_function_tool_failure_error_function,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from .function import FunctionTool, FunctionToolCustomDataContext, FunctionToolCustomDataExtractor, FunctionToolResult, ToolCaller, tool_namespace
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
from .kinds import (
    ApplyPatchToolCustomDataExtractor,
    ComputerToolCustomDataExtractor,
    CustomToolCustomDataExtractor,
    LocalShellExecutor,
    MCPToolApprovalFunction,
    MCPToolApprovalFunctionResult,
    ShellExecutor,
    Tool,
    ToolErrorFunction,
    ToolFunction,
)
from .local_tools import (
    ApplyPatchTool,
    ApplyPatchToolCustomDataContext,
    ComputerProvider,
    ComputerTool,
    ComputerToolCustomDataContext,
    ComputerToolSafetyCheckData,
    CustomTool,
    CustomToolCustomDataContext,
    LocalShellCommandRequest,
    LocalShellTool,
    ShellActionRequest,
    ShellCallData,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellResult,
    ShellTool,
    dispose_resolved_computers,
    resolve_computer,
)
from .outputs import (
    ToolOrigin,
    ToolOriginType,
    ToolOutputFileContent,
    ToolOutputFileContentDict,
    ToolOutputImage,
    ToolOutputImageDict,
    ToolOutputText,
    ToolOutputTextDict,
)
from .shell_environments import (
    ShellToolContainerAutoEnvironment,
    ShellToolContainerNetworkPolicy,
    ShellToolContainerNetworkPolicyAllowlist,
    ShellToolContainerNetworkPolicyDisabled,
    ShellToolContainerNetworkPolicyDomainSecret,
    ShellToolContainerReferenceEnvironment,
    ShellToolContainerSkill,
    ShellToolEnvironment,
    ShellToolHostedEnvironment,
    ShellToolInlineSkill,
    ShellToolInlineSkillSource,
    ShellToolLocalEnvironment,
    ShellToolLocalSkill,
    ShellToolSkillReference,
)

__all__ = [
    "ApplyPatchTool",
    "ApplyPatchToolCustomDataContext",
    "ApplyPatchToolCustomDataExtractor",
    "CodeInterpreterTool",
    "ComputerProvider",
    "ComputerTool",
    "ComputerToolCustomDataContext",
    "ComputerToolCustomDataExtractor",
    "ComputerToolSafetyCheckData",
    "CustomTool",
    "CustomToolCustomDataContext",
    "CustomToolCustomDataExtractor",
    "FileSearchTool",
    "FunctionTool",
    "FunctionToolCustomDataContext",
    "FunctionToolCustomDataExtractor",
    "FunctionToolResult",
    "HostedMCPTool",
    "ImageGenerationTool",
    "LocalShellCommandRequest",
    "LocalShellExecutor",
    "LocalShellTool",
    "MCPToolApprovalFunction",
    "MCPToolApprovalFunctionResult",
    "MCPToolApprovalRequest",
    "ProgrammaticToolCallingTool",
    "ShellActionRequest",
    "ShellCallData",
    "ShellCallOutcome",
    "ShellCommandOutput",
    "ShellCommandRequest",
    "ShellExecutor",
    "ShellResult",
    "ShellTool",
    "ShellToolContainerAutoEnvironment",
    "ShellToolContainerNetworkPolicy",
    "ShellToolContainerNetworkPolicyAllowlist",
    "ShellToolContainerNetworkPolicyDisabled",
    "ShellToolContainerNetworkPolicyDomainSecret",
    "ShellToolContainerReferenceEnvironment",
    "ShellToolContainerSkill",
    "ShellToolEnvironment",
    "ShellToolHostedEnvironment",
    "ShellToolInlineSkill",
    "ShellToolInlineSkillSource",
    "ShellToolLocalEnvironment",
    "ShellToolLocalSkill",
    "ShellToolSkillReference",
    "Tool",
    "ToolCaller",
    "ToolErrorFunction",
    "ToolFunction",
    "ToolOrigin",
    "ToolOriginType",
    "ToolOutputFileContent",
    "ToolOutputFileContentDict",
    "ToolOutputImage",
    "ToolOutputImageDict",
    "ToolOutputText",
    "ToolOutputTextDict",
    "ToolSearchTool",
    "WebSearchTool",
    "default_tool_error_function",
    "default_tool_timeout_error_message",
    "dispose_resolved_computers",
    "function_tool",
    "invoke_function_tool",
    "maybe_invoke_function_tool_failure_error_function",
    "resolve_computer",
    "resolve_function_tool_failure_error_function",
    "set_function_tool_failure_error_function",
    "tool_namespace",
]
