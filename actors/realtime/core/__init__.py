"""One session at work: an actor, its state in parts, and what works beside it.

Owns, each importing only from those above it (for their types, the parts know `session_core`, which puts them together):

    settings        what holds in a connection, and the difference between two
    event_queue     what waits for the consumer
    outbox          what waits to be written
    conversation    what was said
    playback        what was heard of it
    responses       one response at a time
    tool_door       what a tool can reach
    tool_player     one call of a tool
    sending         its output, on its way
    calls           all calls
    interruption    ending what is said
    guards          guardrails
    handing         handing over
    replay          what a new connection is told
    link            connections
    recorded        a session as the store has it
    record          what is written to the store
    watching        hooks and spans
    inbound         what follows from what the model says
    session_actor   the mailbox
    core_base       the state, and the ways to the consumer
    noting          with what is noted
    inputs          with what is put in
    life            with its beginning and its end
    session_core    all of it
    sdk_model       models in the style of the Agents SDK

A part must never wait: whatever takes time is a child of the session, and reports.
"""
