"""What the SDK has beside its core.

Owns what programs import from `agents.extensions`:

    handoff_filters what the next agent is given after a handoff
    handoff_prompt  what agents are told of handoffs
    visualization   agents as a graph
    memory, models, experimental, sandbox, tool_output_trimmer: what is missing; a name that is imported from them is an error that says where to read on

It must never be needed by the rest.
"""
