"""One agent involves another: transfers, handoffs, agents as tools.

The run's supervisor, not this package, starts the other agent. Each module imports only from those
listed above it:

    transfer          the tool `transfer_to_agent`, its instruction, `DeterministicTransfer`; the
                      exit tool
    agent_tool        an agent as a tool
    background        an agent as a tool that works in the background
    items             the conversation as an input filter receives it
    filters           ready-made input filters
    handoff           a separate tool for each specialist
    step              from a handoff's call to the agent that takes over, and the record of it
    call              a handoff that returns
"""
