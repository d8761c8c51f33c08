"""One call of `Swarm.run`: its conversation, the agent that is active, and how it ends.

Owns: the state of the call, and its run, from the beginning to the response. An error reaches the caller as it was raised, whatever it is. It must never
ask a model or call a function itself: that is for the agents' actors.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

from ...runtime.agent.context import AgentContext
from ...runtime.data.run_result import RunResult
from ...runtime.errors import AgentError, text_of
from ...runtime.runner import Runner
from .caller_thread import CallerThread
from .types import Agent, InitialVariables, Piece, Response

if TYPE_CHECKING:
    from .core import Swarm

__all__ = ["SWARM_CALL", "VARIABLES", "SwarmCall"]

T = TypeVar("T")

VARIABLES: Final = "context_variables"
"""The context variables are the session value of that name."""

SWARM_CALL: Final = "swarm_call"
"""The option of the run under which its actors find their `SwarmCall`."""


class SwarmCall:
    """One call, from the beginning to the response."""

    __slots__ = (
        "_begin",
        "_caller_thread",
        "_failure",
        "_result",
        "_variables",
        "agent",
        "debug",
        "execute_tools",
        "has_own_calls",
        "history",
        "max_turns",
        "model",
        "streaming",
        "swarm",
    )

    def __init__(
        self,
        swarm: Swarm,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables,
        model_override: str | None,
        debug: bool,  # noqa: FBT001 -- Swarm's
        max_turns: float,
        execute_tools: bool,  # noqa: FBT001
        *,
        streaming: bool,
        has_own_calls: bool,
        caller_thread: CallerThread[Piece] | None = None,
    ) -> None:
        self.swarm = swarm
        self.agent = agent  # the active one
        self.history: list[Any] = [*copy.deepcopy(messages)]  # the caller's messages, then those of this call as `MessageDict`
        self.model = model_override
        self.streaming = streaming
        self.debug = debug
        self.max_turns = max_turns
        self.execute_tools = execute_tools
        self.has_own_calls = has_own_calls  # a subclass overrides `handle_tool_calls`, which blocks until all calls have ended
        self._begin = len(self.history)
        self._variables = {} if context_variables is None else copy.deepcopy(context_variables)
        self._caller_thread = caller_thread  # None: what blocks is called in worker threads
        self._failure: BaseException | None = None
        self._result: RunResult  # once the run has ended

    @property
    def has_turns(self) -> bool:
        """Whether there may be another reply."""
        return len(self.history) - self._begin < self.max_turns

    # --- for the actors ---

    async def do(self, context: AgentContext, function: Callable[..., T], *args: object) -> T:
        """Call a function that may block: in the thread that waits for the run, or in a worker thread if no thread waits."""
        outcome: T | _Raised
        if self._caller_thread is None:
            outcome = await context.run_blocking(_attempt, function, args)
        else:
            outcome = await self._caller_thread.do(context.session, _attempt, function, args)
        if isinstance(outcome, _Raised):
            self.fail(outcome.error)
        return outcome

    async def checked(self, value: Awaitable[T] | T) -> T:
        """The value, which is awaited first if it can be."""
        if not isinstance(value, Awaitable):
            return value
        try:
            result: T = await value
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 -- it is raised where the run was called
            self.fail(error)
        return result

    def fail(self, error: BaseException) -> NoReturn:
        """Let the run fail with that. The caller gets it as it is, even if it is none that an agent can fail with."""
        self._failure = error
        if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
            raise error
        msg = f"{type(error).__name__}: {text_of(error)}"
        raise AgentError(msg) from error

    # --- for the caller ---

    async def pieces(self, runner: Runner) -> AsyncGenerator[Piece]:
        """Run to the end; if this call is streaming, yield the pieces of the replies."""
        run = runner.run((), session_values={VARIABLES: self._variables}, options={SWARM_CALL: self}, streaming=self.streaming)
        try:
            if self.streaming:
                async for event in run:
                    if event.delta is not None:
                        yield event.custom_output
            self._result = await run
        finally:
            await run.aclose()

    async def run(self, runner: Runner) -> Response:
        """Run to the end."""
        async with aclosing(self.pieces(runner)) as pieces:
            async for _piece in pieces:
                pass
        return self.response()

    async def stream(self, runner: Runner) -> AsyncGenerator[Piece]:
        """Run to the end, and yield the pieces, and the response after them."""
        async with aclosing(self.pieces(runner)) as pieces:
            async for piece in pieces:
                yield piece
        yield {"response": self.response()}

    def response(self) -> Response:
        """The response of the run, which has ended. Raises the error that it failed with."""
        error = self._failure or self._result.error
        if error is not None:
            try:
                raise error
            finally:
                del error, self._failure, self._result  # its traceback leads here
        return Response(messages=self.history[self._begin :], agent=self.agent, context_variables=self._result.session_values[VARIABLES])


class _Raised(NamedTuple):
    """An error in place of a result: some errors do not get through a future as they are."""

    error: BaseException


def _attempt(function: Callable[..., T], args: tuple[object, ...]) -> T | _Raised:
    """What a function returns, or raises."""
    try:
        return function(*args)
    except BaseException as error:  # noqa: BLE001 -- `SwarmCall.do` decides
        return _Raised(error)
