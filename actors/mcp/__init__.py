"""Tools of MCP servers.

    content           converts a server's result to a tool's result
    mcp_tool          one tool of a server: its call, progress, questions
    mcp_tools         an agent's tools from a server, and the system that owns the connection

The MCP SDK is not imported before a server is connected to.
"""

from .mcp_tools import McpTools

__all__ = ["McpTools"]
