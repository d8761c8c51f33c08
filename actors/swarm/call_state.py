"""One call of `Swarm.run`: what has been said in it, who is active, and how it ends.

Owns: the state of the call, and its run, from the beginning to the response. What is wrong reaches the caller as it was raised, whatever it is. It must
never ask a model or call a function itself: that is for the agents' actors.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...runtime.agent.context import AgentContext
from ...runtime.errors import AgentError, text_of
from ...runtime.runner import Runner
from .caller_thread import CallerThread
from .types import Agent, Response

if TYPE_CHECKING:
    from .core import Swarm

__all__ = ["PLAY", "VARIABLES", "SwarmCall"]

T = TypeVar("T")

VARIABLES: Final = "context_variables"
"""The context variables are the session value of that name."""

PLAY: Final = "play"
"""Under which name the actors of the run find what belongs to it."""


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
        messages: Sequence[Any],
        context_variables: Mapping[Any, Any] | None,
        model_override: str | None,
        debug: bool,  # noqa: FBT001 -- Swarm's
        max_turns: float,
        execute_tools: bool,  # noqa: FBT001
        *,
        streaming: bool,
        caller_thread: CallerThread | None = None,
    ) -> None:
        self.swarm = swarm
        self.agent = agent  # who is active
        self.history: list[Any] = [*copy.deepcopy(messages)]
        self.model = model_override
        self.streaming = streaming
        self.debug = debug
        self.max_turns = max_turns
        self.execute_tools = execute_tools
        self._begin = len(self.history)
        self._variables: Any = {} if context_variables is None else copy.deepcopy(context_variables)
        self._caller_thread = caller_thread  # None: what blocks is done in worker threads
        self._failure: BaseException | None = None
        self._result: Any = None

    @property
    def has_turns(self) -> bool:
        """Whether there may be another reply."""
        return len(self.history) - self._begin < self.max_turns

    # --- for the actors ---

    async def do(self, context: AgentContext, function: Callable[..., T], *args: Any) -> T:
        """Call what may block: in the thread of whoever waits for the run; or, if nobody does, in a worker thread."""
        value: Any
        if self._caller_thread is None:
            value, error = await context.run_blocking(_attempt, function, args)
        else:
            value, error = await self._caller_thread.do(context.session, _attempt, function, args)
        if error is not None:
            self.fail(error)
        result: T = value
        return result

    async def checked(self, value: Any) -> Any:
        """The value, which is awaited first if it can be."""
        if not hasattr(value, "__await__"):
            return value
        try:
            return await value
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 -- it is raised where the run was called
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Let the run fail with that. The caller gets it as it is, also what an agent cannot fail with."""
        self._failure = error
        if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
            raise error
        msg = f"{type(error).__name__}: {text_of(error)}"
        raise AgentError(msg) from error

    # --- for the caller ---

    async def pieces(self, runner: Runner) -> AsyncGenerator[dict[str, Any]]:
        """SwarmCall it; if it is streaming, show the pieces of what is said."""
        run = runner.run((), session_values={VARIABLES: self._variables}, options={PLAY: self}, streaming=self.streaming)
        try:
            if self.streaming:
                async for event in run:
                    if event.delta is not None:
                        yield event.custom_output
            self._result = await run
        finally:
            await run.aclose()

    async def played(self, runner: Runner) -> Response:
        """SwarmCall it to the end."""
        async with aclosing(self.pieces(runner)) as pieces:
            async for _piece in pieces:
                pass
        return self.response()

    async def shown(self, runner: Runner) -> AsyncGenerator[dict[str, Any]]:
        """SwarmCall it, and show the pieces, and the response behind them."""
        async with aclosing(self.pieces(runner)) as pieces:
            async for piece in pieces:
                yield piece
        yield {"response": self.response()}

    def response(self) -> Response:
        """What has come of it. Raises what it failed with."""
        error = self._failure or self._result.error
        if error is not None:
            try:
                raise error
            finally:
                del error, self._failure, self._result  # its traceback leads here
        return Response(messages=self.history[self._begin :], agent=self.agent, context_variables=self._result.session_values[VARIABLES])


def _attempt(function: Callable[..., T], args: tuple[Any, ...]) -> tuple[T | None, BaseException | None]:
    """What a function has returned, or raised: some of what may be raised does not get through a future as it is."""
    try:
        return function(*args), None
    except BaseException as error:  # noqa: BLE001 -- whoever gets it decides
        return None, error
