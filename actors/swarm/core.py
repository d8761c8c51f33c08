"""Swarm: agents that hand over to each other by the functions that they call.

Owns: what users of Swarm call, and may override: how the client is asked, and what becomes of what functions return. How a call of `run` is played is
`play.py`'s, and the rest of the runtime's.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, overload

from openai import OpenAI

from ...runtime.runner import Runner
from .calls import Calls
from .errands import Errands, wait_for
from .play import VARIABLES, Play
from .player import Entrance
from .types import Agent, AgentFunction, Response, Result
from .util import debug_print, function_to_json

__all__ = ["Swarm"]

_UNBOUNDED = float("inf")


class Swarm:
    """Runs agents, beginning with one, until nobody has a function to call any more.

    `client` is an OpenAI client, synchronous or not, or anything with `chat.completions.create(...)`.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = client or OpenAI()

    @cached_property
    def _runner(self) -> Runner:
        # A piece of a reply is taken before the next one is asked for, so there is nothing to be kept for the consumer.
        return Runner(Entrance(name="Swarm"), max_transfers=sys.maxsize, event_buffer=1)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_runner"}

    # --- running ---

    @overload
    def run(
        self,
        agent: Agent,
        messages: Sequence[Any],
        context_variables: Mapping[Any, Any] | None = None,
        model_override: str | None = None,
        stream: Literal[False] = False,
        debug: bool = False,
        max_turns: float = _UNBOUNDED,
        execute_tools: bool = True,
    ) -> Response: ...
