"""A realtime server on this machine, for tests, examples and benchmarks.

It replaces OpenAI's server, and sessions do not depend on it. Each module imports only from those
listed above it:

    script            replies, faults, and speech that the server understands
    conversation      one connection, with strict checks
    server            the websocket, and the log of messages
"""

from .script import Call, Fault, Gate, Reply, Say, Write, silence, speech
from .server import LocalRealtimeServer

__all__ = [
    "Call",
    "Fault",
    "Gate",
    "LocalRealtimeServer",
    "Reply",
    "Say",
    "Write",
    "silence",
    "speech",
]
