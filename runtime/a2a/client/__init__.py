"""Asking the agents of others.

    limits          how much, how many and how long
    bounded_http    HTTP whose answers are bounded, and whose addresses are those that were dialled
    pump            reads a stream in a task of its own
    refusals        what the SDK raises, as errors of ours
    interfaces      which of a card's doors is taken
    connection      one agent, on one event loop: the SDK's client behind our values
    client          `A2AClient`

It must never believe what comes: an answer too large, too long or about another task ends there. `client` and `limits` are importable without the SDK;
the others are imported when a client is used.
"""
