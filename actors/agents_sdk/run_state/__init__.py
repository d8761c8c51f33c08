"""Runs that go on later: their states, and how they are kept.

Owns `RunState` and its JSON, which is the SDK's. Its files, each importing only from those above it:

    versions        the versions of the JSON
    agents_by_name  the agents of a run, by names that tell them apart
    contexts        a program's own object, as it is kept
    state           `RunState`
    writing         the state as JSON
    reading         the state from JSON

It must never run anything.
"""

from .state import RunState
from .versions import CURRENT_SCHEMA_VERSION, SCHEMA_VERSION_SUMMARIES, SUPPORTED_SCHEMA_VERSIONS

__all__ = ["CURRENT_SCHEMA_VERSION", "SCHEMA_VERSION_SUMMARIES", "SUPPORTED_SCHEMA_VERSIONS", "RunState"]
