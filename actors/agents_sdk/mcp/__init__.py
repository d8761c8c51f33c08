"""MCP servers, by the SDK's names.

Owns that these names can be imported: `servers`. It must never connect to a server.
"""

from .servers import MCPServer, MCPServerManager, MCPServerSse, MCPServerStdio, MCPServerStreamableHttp

__all__ = ["MCPServer", "MCPServerManager", "MCPServerSse", "MCPServerStdio", "MCPServerStreamableHttp"]
