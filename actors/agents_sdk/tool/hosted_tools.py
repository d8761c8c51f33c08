"""Tools that run at OpenAI.

Owns: their settings. It must never run one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .function import checked_callers

if TYPE_CHECKING:
    from ..run_context import RunContextWrapper

__all__ = [
    "CodeInterpreterTool",
    "FileSearchTool",
    "HostedMCPTool",
    "ImageGenerationTool",
    "MCPToolApprovalRequest",
    "ProgrammaticToolCallingTool",
    "ToolSearchTool",
    "WebSearchTool",
]


@dataclass
class FileSearchTool:
    """Searches in files that are kept at OpenAI."""

    vector_store_ids: list[str]
    max_num_results: int | None = None
    include_search_results: bool = False
    ranking_options: Any | None = None
    filters: Any | None = None

    @property
    def name(self) -> str:
        return "file_search"


@dataclass
class WebSearchTool:
    """Searches the web."""

    user_location: Any | None = None
    filters: Any | None = None
    search_context_size: Literal["low", "medium", "high"] = "medium"
    external_web_access: bool | None = None

    @property
    def name(self) -> str:
        return "web_search"


@dataclass
class MCPToolApprovalRequest:
    """A hosted MCP server's tool is about to be called."""

    ctx_wrapper: RunContextWrapper[Any]
    data: Any


@dataclass
class HostedMCPTool:
    """The tools of an MCP server that OpenAI calls."""

    tool_config: Any
    on_approval_request: Callable[[MCPToolApprovalRequest], Any] | None = None

    def __post_init__(self) -> None:
        self.tool_config = _checked(self.tool_config, f"hosted MCP server `{self.tool_config.get('server_label', 'unknown')}`")

    @property
    def name(self) -> str:
        return "hosted_mcp"


@dataclass
class CodeInterpreterTool:
    """Runs programs that the model writes."""

    tool_config: Any

    def __post_init__(self) -> None:
        self.tool_config = _checked(self.tool_config, "code_interpreter")

    @property
    def name(self) -> str:
        return "code_interpreter"


@dataclass
class ImageGenerationTool:
    """Makes images."""

    tool_config: Any

    @property
    def name(self) -> str:
        return "image_generation"


@dataclass
class ToolSearchTool:
    """Finds tools that the model was not shown."""

    description: str | None = None
    execution: Literal["server", "client"] | None = None
    parameters: object | None = None

    @property
    def name(self) -> str:
        return "tool_search"


@dataclass
class ProgrammaticToolCallingTool:
    """Runs programs that call the other tools."""

    @property
    def name(self) -> str:
        return "programmatic_tool_calling"


def _checked(config: Any, name: str) -> dict[str, Any]:
    found = dict(config)
    if found.get("allowed_callers") is not None:
        found["allowed_callers"] = checked_callers(found["allowed_callers"], name)
    return found
