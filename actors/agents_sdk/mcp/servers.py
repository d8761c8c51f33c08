"""The names of MCP servers.

Owns that they say what there is not when they are used. It must never connect to a server.
"""

from __future__ import annotations

from ..missing import refuse

__all__ = ["MCPServer", "MCPServerManager", "MCPServerSse", "MCPServerStdio", "MCPServerStreamableHttp"]


class MCPServer:
    """Refused: agents have no MCP servers here; hosted MCP tools run at OpenAI and work."""

    def __init__(self, *_args: object, **_options: object) -> None:
        refuse(type(self).__name__, "use HostedMCPTool, or functions as tools")


class MCPServerStdio(MCPServer):
    """Refused, as above."""


class MCPServerSse(MCPServer):
    """Refused, as above."""


class MCPServerStreamableHttp(MCPServer):
    """Refused, as above."""


class MCPServerManager(MCPServer):
    """Refused, as above."""
