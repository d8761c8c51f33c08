"""One call of `Swarm.run`: its conversation, the active agent, and its outcome.

An error reaches the caller unchanged, whatever its type. Models and functions are called by the
agents' actors, not here.
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
"""The session key of the context variables."""

SWARM_CALL: Final = "swarm_call"
"""The run option that contains the `SwarmCall`."""


class SwarmCall:
    """One call, from its start to the response."""

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
        debug: bool,  # noqa: FBT001 -- Swarm's signature
        max_turns: float,
        execute_tools: bool,  # noqa: FBT001
        *,
        streaming: bool,
        has_own_calls: bool,
        caller_thread: CallerThread[Piece] | None = None,
    ) -> None:
        self.swarm = swarm
        self.agent = agent  # the active agent
        self.history: list[Any] = [
            *copy.deepcopy(messages)
        ]  # the caller's messages, then those of this call as `MessageDict`
        self.model = model_override
        self.streaming = streaming
        self.debug = debug
        self.max_turns = max_turns
        self.execute_tools = execute_tools
        # A subclass overrides `handle_tool_calls`, which blocks until all calls have ended.
        self.has_own_calls = has_own_calls
        self._begin = len(self.history)
        self._variables = {} if context_variables is None else copy.deepcopy(context_variables)
        self._caller_thread = caller_thread  # None: blocking calls run in worker threads
        self._failure: BaseException | None = None
        self._result: RunResult  # set when the run has ended

    @property
    def has_turns(self) -> bool:
        """Whether another reply is allowed."""
        return len(self.history) - self._begin < self.max_turns

    # --- for the actors ---

    async def do(self, context: AgentContext, function: Callable[..., T], *args: object) -> T:
        """Call a function that may block, in the thread that waits for the run.

        If no thread waits, a worker thread calls it.
        """
        outcome: T | _Raised
        if self._caller_thread is None:
            outcome = await context.run_blocking(_attempt, function, args)
        else:
            outcome = await self._caller_thread.do(context.session, _attempt, function, args)
        if isinstance(outcome, _Raised):
            self.fail(outcome.error)
        return outcome

    async def checked(self, value: Awaitable[T] | T) -> T:
        """Return the value, awaiting it first if it is awaitable."""
        if not isinstance(value, Awaitable):
            return value
        try:
            result: T = await value
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 -- raised again where the run was called
            self.fail(error)
        return result

    def fail(self, error: BaseException) -> NoReturn:
        """Fail the run with that error.

        The caller receives the error unchanged, even if an agent cannot fail with it.
        """
        self._failure = error
        if isinstance(error, Exception) and not isinstance(
            error, StopIteration | StopAsyncIteration
        ):
            raise error
        msg = f"{type(error).__name__}: {text_of(error)}"
        raise AgentError(msg) from error

    # --- for the caller ---

    async def pieces(self, runner: Runner) -> AsyncGenerator[Piece]:
        """Run to the end. If this call streams, yield the deltas of the replies."""
        run = runner.run(
            (),
            session_values={VARIABLES: self._variables},
            options={SWARM_CALL: self},
            streaming=self.streaming,
        )
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
        """Run to the end, and yield the deltas, and the response after them."""
        async with aclosing(self.pieces(runner)) as pieces:
            async for piece in pieces:
                yield piece
        yield {"response": self.response()}

    def response(self) -> Response:
        """Return the response of the run, which has ended. Raise the error that it failed with."""
        error = self._failure or self._result.error
        if error is not None:
            try:
                raise error
            finally:
                del error, self._failure, self._result  # its traceback refers to this frame
        return Response(
            messages=self.history[self._begin :],
            agent=self.agent,
            context_variables=self._result.session_values[VARIABLES],
        )


class _Raised(NamedTuple):
    """An error instead of a result. Some errors cannot pass through a future unchanged."""

    error: BaseException


def _attempt(function: Callable[..., T], args: tuple[object, ...]) -> T | _Raised:
    """Call a function. Return its result or its error."""
    try:
        return function(*args)
    except BaseException as error:  # noqa: BLE001 -- `SwarmCall.do` handles it
        return _Raised(error)
