"""Swarm's API on this runtime, for programs that were written for OpenAI Swarm 0.1.0.

Such a program changes only its imports. Each module imports only from those listed above it:

    types             Agent, Response, Result; OpenAI's types under Swarm's names
    util              the schema of a function, the joining of a message's deltas, the output of
                      `debug=True`
    caller_thread     makes blocking calls in the thread that waits for the run
    call_state        one call of `Swarm.run`: its conversation, its context variables, the active
                      agent, its outcome
    function_calls    the functions that one reply calls, one after the other
    turn              one reply of one agent, and the functions that it calls
    agents            one of Swarm's agents as an agent of this package, and its transfer to the
                      next one
    core              Swarm
    repl              a conversation in the terminal

Importing it imports openai, so `offbook.actors` itself does not import it.
"""

from .core import Swarm
from .repl import run_demo_loop
from .types import Agent, Response, Result

__all__ = ["Agent", "Response", "Result", "Swarm", "run_demo_loop"]
