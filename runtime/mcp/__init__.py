"""The Model Context Protocol, by its official SDK: connections to servers, and agents served as tools.

    connection      one connection to a server: opened, lost, opened again; who asks for what
    serving         an agent as a tool of others

It must never import the SDK before something of it is used, and never make a tool of an agent's: that is `understudy.actors.mcp`.
"""
