"""Tools of MCP servers.

    content         what a server answers, as what a tool returns
    mcp_tool        one tool of a server: its call, progress, questions
    mcp_tools       all that an agent is given of a server, and in which system the connection lives

It must never import the SDK before a server is connected to.
"""

from .mcp_tools import McpTools

__all__ = ["McpTools"]
