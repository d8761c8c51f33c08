"""What the SDK has beside its core.

Owns what programs import from `agents.extensions`:

    handoff_filters what the next agent is given after a handoff
    handoff_prompt  what agents are told of handoffs
    visualization   agents as a graph

It must never be needed by the rest.
"""
