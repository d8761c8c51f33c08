"""What a reply asks for, and the calls that are made for it.

Owns the calls of one turn. Its files, each importing only from those above it:

    reading_programs programs at the provider, and what they call
    reading         what a reply asks for
    approvals       calls that wait for a decision
    function_call   one call of a function
    functions       all calls of functions of one reply
    shell_outputs   what shells have written
    computer_actions what a model does with a computer
    local_calls     calls of shells, editors, computers and custom tools
    mcp_requests    requests of hosted MCP servers' tools
    handing_over    a handoff

It must never decide what follows from a turn.
"""
