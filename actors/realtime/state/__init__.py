"""The state of a session, as plain values. Nothing here waits, sends, stores or knows the session.

Each module imports only from those listed above it:

    settings          the settings of a connection, and the difference between two
    event_queue       events that wait for the consumer
    outbox            messages that wait to be sent
    conversation      the items of the conversation
    playback          the part of the audio that was heard
    replay            the items for a new connection
    recorded          a session as recorded in the store
"""
