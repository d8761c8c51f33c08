"""OpenAI's realtime protocol.

Each module imports only from those listed above it, and none knows a session's state:

    decode            converts messages of the server to events
    encode            converts requests of a session to messages
    socket            the websocket that carries them
"""
