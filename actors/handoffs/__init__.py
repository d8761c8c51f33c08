"""One agent involves another: transfers, handoffs, agents as tools.

Owns the tools by which a model involves another agent, and what that agent is given. Its files, each importing only from those above it:

    transfer        the tool `transfer_to_agent`, its instruction, `DeterministicTransfer`; the exit tool
    agent_tool      an agent as a tool
    items           the conversation as an input filter is given it
    filters         ready-made input filters
    handoff         a tool of its own for each specialist
    rules           what one agent's handoffs have in common
    step            from a handoff's call to the agent that takes over, and what is recorded of it
    call            a handoff that comes back

It must never start an agent itself: the run's supervisor does.
"""
