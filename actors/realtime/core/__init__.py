"""One session at work: an actor, its state in parts, and what works beside it.

Owns, each importing only from those above it (for their types, the parts know `session_core`, which puts them together):

    responses       one response at a time
    tool_door       what a tool can reach
    tool_player     one call of a tool
    call            what is known of a call
    sending         its output, on its way
    calls           all calls
    interruption    ending what is said
    guards          guardrails
    handing         handing over
    link            connections
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
