"""What is left of a run, or is known of it while it goes on.

Owns the results. Its files, each importing only from those above it:

    base            `RunResultBase`, `RunResult`
    streaming       `RunResultStreaming`

It must never run anything.
"""

from .base import AgentToolInvocation, RunResult, RunResultBase, ToInputListMode
from .streaming import RunResultStreaming

__all__ = ["AgentToolInvocation", "RunResult", "RunResultBase", "RunResultStreaming", "ToInputListMode"]
