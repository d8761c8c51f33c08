"""A running session: an actor, its state in parts, and its child tasks.

Each module imports only from those listed above it. For their types, the parts refer to
`session_core`, which assembles them.

    responses         one response at a time
    realtime_call         the part of a session that a tool can reach
    tool_player       one call of a tool
    call              the state of a call
    calls             all calls
    interruption      interrupts a response
    guards            guardrails
    handoffs          handoffs
    link              connections
    record            records in the store
    watching          hooks and spans
    inbound           handlers of the model's events
    session_actor     the mailbox
    notes             the changes that records contain
    inputs            the program's messages, events and audio
    lifecycle         the start, the pauses and the end
    session_core      the state, and all parts of one session
    sdk_model         models in the style of the Agents SDK

A part never waits. Slow work runs in a child task of the session, which reports back.
"""
