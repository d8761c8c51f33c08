"""The Model Context Protocol, by its official SDK: connections to servers, and agents served as
tools.

    connection      one connection to a server, reopened after a loss; the source of its questions
    serving         an agent as a tool for other programs

The SDK is imported on first use. `offbook.actors.mcp` makes tools for agents.
"""
