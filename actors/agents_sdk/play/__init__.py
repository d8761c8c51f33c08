"""How an agent of the SDK plays in a run of understudy's.

Owns the turns: a model's call, what it asks for, and what follows. A run, its actors, its record and its store are the runtime's. Its files, each importing
only from those above it:

    steps           what a reply asks for, and what follows from a turn
    live            one run of the SDK while it goes on
    driven          work that is done in the context of another task
    shown           items as events
    hooks           the calling of hooks
    recording       what the runtime records of a turn, and what is done once
    sessions        what a session is given and keeps
    conversation    what the provider keeps of a conversation, so that it is not sent again
    guardrails      guardrails at work
    model_call      one call of a model
    calls/          what a reply asks for, and the calls that are made for it
    blocked         what is kept of a final output that a guardrail has refused
    restoring       a run that goes on in another process
    ending          a final output
    turn            one turn
    opening         how a run begins and ends
    player          an agent's turns, one after the other

It must never start a run.
"""

from .player import play

__all__ = ["play"]
