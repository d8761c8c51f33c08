"""A realtime server on this machine, for tests, examples and benchmarks.

Owns, each importing only from those above it:

    script         replies, faults, and speech that it understands
    conversation   one connection, strictly
    server         the websocket, and what was seen

It must never be needed by a session: it stands where OpenAI's server stands.
"""

from .script import Call, Fault, Gate, Reply, Say, Write, silence, speech
from .server import LocalRealtimeServer

__all__ = ["Call", "Fault", "Gate", "LocalRealtimeServer", "Reply", "Say", "Write", "silence", "speech"]
