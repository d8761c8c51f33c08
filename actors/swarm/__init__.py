"""Swarm's API on this runtime: for programs that were written for OpenAI Swarm 0.1.0, with only their imports changed.

    types       Agent, Response, Result; what models send, by OpenAI's types
    util        schemas of functions, pieces of a message joined, what `debug=True` prints
    errands     what blocks is done by the thread that waits for the run
    play        one call of `Swarm.run`: what is said in it, and how it ends
    calls       the functions that one reply calls, one after the other
    turn        one reply of one agent, and the functions that it calls
    player      the actor of one agent, and how it hands over to the next one
    core        Swarm
    repl        a conversation in the terminal

Importing it imports openai; `understudy.actors` by itself imports neither.
"""

from .core import Swarm
from .repl import run_demo_loop
from .types import Agent, Response, Result

__all__ = ["Agent", "Response", "Result", "Swarm", "run_demo_loop"]
