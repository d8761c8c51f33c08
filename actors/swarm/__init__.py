"""Swarm's API on this runtime: for programs that were written for OpenAI Swarm 0.1.0, with only their imports changed.

    caller_thread   the thread that waits for a run does what blocks
    util            schemas of functions, pieces of a message joined, what `debug=True` prints
    types           Agent, Response, Result; what models send, by OpenAI's types
    function_calls  the functions that one reply calls, one after the other
    call_state      one call of `Swarm.run`: what is said in it, and how it ends
    turn            one reply of one agent, and the functions that it calls
    agents          a Swarm agent as an agent of this package, and how the next one follows
    core            Swarm
    repl            a conversation in the terminal

Importing it imports openai. It must never be imported by `understudy.actors` itself.
"""

from .core import Swarm
from .repl import run_demo_loop
from .types import Agent, Response, Result

__all__ = ["Agent", "Response", "Result", "Swarm", "run_demo_loop"]
