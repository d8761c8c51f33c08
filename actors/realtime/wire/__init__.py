"""OpenAI's realtime protocol.

Owns, each importing only from those above it:

    decode   messages of the server, as what they mean
    encode   what a session wants, as messages
    socket   the websocket that carries them

It must never know a session's state.
"""
