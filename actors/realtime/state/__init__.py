"""What a session holds, as plain values: none of it waits, and none knows the session.

Owns, each importing only from those above it:

    settings       what holds in a connection, and the difference between two
    event_queue    what waits for the consumer
    outbox         what waits to be written
    conversation   what was said
    playback       what was heard of it
    replay         what a new connection is told
    recorded       a session as the store has it

It must never send anything, nor write to a store.
"""
