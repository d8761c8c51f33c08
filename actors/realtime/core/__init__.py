"""A running session: an actor, its state in parts, and its child tasks.

Each module imports only from those listed above it. For their types, the parts refer to
`session_core`, which assembles them.

    responses         one response at a time
    tool_door         the part of a session that a tool can reach
    tool_player       one call of a tool
    call              the state of a call
    sending           sends the output of a call
    calls             all calls
    interruption      interrupts a response
    guards            guardrails
    handing           handoffs
    link              connections
    record            records in the store
    watching          hooks and spans
    inbound           handlers of the model's events
    session_actor     the mailbox
    core_base         the state, and output to the consumer
    noting            adds the records of changes
    inputs            adds the program's inputs
    life              adds the start and the end
    session_core      all of it
    sdk_model         models in the style of the Agents SDK

A part never waits. Slow work runs in a child task of the session, which reports back.
"""
