"""The functions that one reply calls, one after the other.

Each call produces a message for the model, and may change the agent and the context variables.
These changes are only collected in the response. The caller awaits the result of an `async def`
function.
"""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Awaitable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Final

from .call_state import VARIABLES
from .types import AgentFunction, FunctionCall, Response, Variables
from .util import debug_print

if TYPE_CHECKING:
    from .core import Swarm

__all__ = ["Calls"]

_NOTHING: Final = object()


class Calls:
    """One round of calls. Call `advance` until it returns None; `response` is the result."""

    __slots__ = ("_call", "_calls", "_debug", "_functions", "_swarm", "_variables", "response")

    def __init__(
        self,
        swarm: Swarm,
        tool_calls: Sequence[FunctionCall],
        functions: Sequence[AgentFunction],
        context_variables: Variables,
        debug: bool,  # noqa: FBT001 -- Swarm's signature
    ) -> None:
        self._swarm = swarm
        self._calls = deque(tool_calls)
        self._functions = {function.__name__: function for function in functions}
        self._variables = context_variables
        self._debug = debug
        self._call: FunctionCall  # the latest call
        self.response = Response()

    def advance(self, awaited: object = _NOTHING) -> Awaitable[object] | None:
        """Make the calls, up to the first one that returns an awaitable, and return the awaitable.

        Call `advance` again with its result.
        """
        if awaited is not _NOTHING:
            self._note(awaited)
        while self._calls:
            self._call = self._calls.popleft()
            name = self._call.function.name
            function = self._functions.get(name)
            if function is None:
                debug_print(self._debug, f"Tool {name} not found in function map.")
                self._tell(f"Error: Tool {name} not found.")
                continue
            arguments = json.loads(self._call.function.arguments)
            debug_print(self._debug, f"Processing tool call: {name} with arguments {arguments}")
            if _takes_variables(function):
                arguments[VARIABLES] = self._variables
            returned = function(**arguments)
            if inspect.isawaitable(returned):
                return returned
            self._note(returned)
        return None

    def _note(self, returned: object) -> None:
        result = self._swarm.handle_function_result(returned, self._debug)
        self._tell(result.value)
        self.response.context_variables.update(result.context_variables)
        if result.agent:
            self.response.agent = result.agent

    def _tell(self, content: str) -> None:
        call = self._call
        self.response.messages.append(
            {
                "role": "tool",
                "tool_call_id": call.id,
                "tool_name": call.function.name,
                "content": content,
            }
        )


def _takes_variables(function: AgentFunction) -> bool:
    """Return whether a function has a parameter for the context variables.

    It may be in its signature, or in its own code if the signature is that of a wrapped function.
    """
    code = getattr(function, "__code__", None)
    if (
        isinstance(code, CodeType)
        and VARIABLES in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    ):
        return True
    return VARIABLES in inspect.signature(function).parameters
