"""What callbacks of the SDK are given of a run.

Owns the context of a run and of a call of a tool, and what was decided about calls. Its files, each importing only from those above it:

    decisions       which calls were approved or rejected, and which have been made
    wrapper         `RunContextWrapper`, `AgentHookContext`

It must never run anything.
"""

from .wrapper import AgentHookContext, RunContextWrapper, TContext

__all__ = ["AgentHookContext", "RunContextWrapper", "TContext"]
