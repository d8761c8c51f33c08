"""Running an agent by the SDK's names.

Owns: `Runner`, and which runner it uses. It must never run anything itself: the runtime does.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import sys
import warnings
from types import ModuleType
from typing import Any, Final
from weakref import WeakSet, ref

from .play.live import LiveRun as _LiveRun
from .result import RunResult, RunResultStreaming
from .run_config import DEFAULT_MAX_TURNS as DEFAULT_MAX_TURNS
from .run_config import CallModelData as CallModelData
from .run_config import CallModelInputFilter as CallModelInputFilter
from .run_config import ModelInputData as ModelInputData
from .run_config import ReasoningItemIdPolicy as ReasoningItemIdPolicy
from .run_config import RunConfig as RunConfig
from .run_config import ToolErrorFormatter as ToolErrorFormatter
from .run_config import ToolErrorFormatterArgs as ToolErrorFormatterArgs
from .run_config import ToolExecutionConfig as ToolExecutionConfig
from .run_error_handlers import RunErrorData as RunErrorData
from .run_error_handlers import RunErrorHandler as RunErrorHandler
from .run_error_handlers import RunErrorHandlerInput as RunErrorHandlerInput
from .run_error_handlers import RunErrorHandlerResult as RunErrorHandlerResult
from .run_error_handlers import RunErrorHandlers as RunErrorHandlers
from .running import Given, begun, finished, result_of, streamed_result
from .running import set_default_store as set_default_store

__all__ = ["AgentRunner", "Runner", "get_default_agent_runner", "run", "set_default_agent_runner"]


class AgentRunner:
    """What `Runner` hands its calls to. A program may put one of its own in its place, by `set_default_agent_runner`."""

    async def run(self, starting_agent: Any, input: Any, **options: Any) -> RunResult:
        """Run to the end."""
        given = Given(starting_agent, input, options)
        live: _LiveRun = begun(given)
        return result_of(live, await finished(given, live))

    def run_sync(self, starting_agent: Any, input: Any, **options: Any) -> RunResult:
        """Run to the end, where no event loop is running: on this thread's own loop, which stays."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            msg = "AgentRunner.run_sync() cannot be called when an event loop is already running."
            raise RuntimeError(msg)
        loop = _loop_of_thread()
        task = loop.create_task(self.run(starting_agent, input, **options))
        try:
            return loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            raise
        finally:
            if not loop.is_closed():
                with contextlib.suppress(RuntimeError):
                    loop.run_until_complete(_settle(loop))

    def run_streamed(self, starting_agent: Any, input: Any, **options: Any) -> RunResultStreaming:
        """Begin to run; iterate over `stream_events()` of what is returned."""
        return streamed_result(Given(starting_agent, input, options))


async def _settle(loop: asyncio.AbstractEventLoop) -> None:
    """Let the generators end that a program has left. A loop that was told to end them warns of each new one: it is told so only where there are any."""
    for _ in range(3):  # a generator that nothing holds any more has its end scheduled, as a task
        await asyncio.sleep(0)
    if getattr(loop, "_asyncgens", True):
        await loop.shutdown_asyncgens()


def _loop_of_thread() -> asyncio.AbstractEventLoop:
    """This thread's own event loop. Sessions and locks that a program has made belong to it."""
    policy = asyncio.get_event_loop_policy()
    try:
        with warnings.catch_warnings():  # where there is none, one is made: newer Pythons want to say so
            warnings.simplefilter("ignore", DeprecationWarning)
            loop = policy.get_event_loop()
    except RuntimeError:
        loop = policy.new_event_loop()
        policy.set_event_loop(loop)
    if loop.is_closed():
        loop = policy.new_event_loop()
        policy.set_event_loop(loop)
    if loop not in _left_open:
        _left_open.add(loop)
        atexit.register(_close, ref(loop))
    return loop


def _close(left: ref[asyncio.AbstractEventLoop]) -> None:
    """The process ends: so do the connections that were opened on a loop which stays."""
    loop = left()
    if loop is not None and not loop.is_closed() and not loop.is_running():
        loop.run_until_complete(_end(loop))
        loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    await loop.shutdown_asyncgens()
    for _ in range(3):
        await asyncio.sleep(0)  # connections that were closed say so in the next turns


_left_open: Final[WeakSet[asyncio.AbstractEventLoop]] = WeakSet()


class _Default:
    def __init__(self) -> None:
        self.runner: Any = AgentRunner()


_default = _Default()


def set_default_agent_runner(runner: Any) -> None:
    """Have `Runner` use that one; None for the one that there was at first."""
    _default.runner = AgentRunner() if runner is None else runner


def get_default_agent_runner() -> Any:
    """What `Runner` uses."""
    return _default.runner


class Runner:
    """Runs agents."""

    @classmethod
    async def run(
        cls,
        starting_agent: Any,
        input: Any,
        *,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: Any = None,
        run_config: Any = None,
        error_handlers: Any = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Any = None,
        **options: Any,
    ) -> RunResult:
        """Run to the end. Raises the error that the run has failed with. `store=`, `durability=` and `run_id=` keep the run, as understudy's runner does."""
        found: RunResult = await _default.runner.run(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            error_handlers=error_handlers,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
            **options,
        )
        return found

    @classmethod
    def run_sync(
        cls,
        starting_agent: Any,
        input: Any,
        *,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: Any = None,
        run_config: Any = None,
        error_handlers: Any = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Any = None,
        **options: Any,
    ) -> RunResult:
        """The same, where no event loop is running."""
        found: RunResult = _default.runner.run_sync(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            error_handlers=error_handlers,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
            **options,
        )
        return found

    @classmethod
    def run_streamed(
        cls,
        starting_agent: Any,
        input: Any,
        context: Any = None,
        max_turns: int | None = DEFAULT_MAX_TURNS,
        hooks: Any = None,
        run_config: Any = None,
        previous_response_id: str | None = None,
        auto_previous_response_id: bool = False,
        conversation_id: str | None = None,
        session: Any = None,
        *,
        error_handlers: Any = None,
        **options: Any,
    ) -> RunResultStreaming:
        """The same, looked at while it goes on: iterate over `stream_events()` of what is returned."""
        found: RunResultStreaming = _default.runner.run_streamed(
            starting_agent,
            input,
            context=context,
            max_turns=max_turns,
            hooks=hooks,
            run_config=run_config,
            error_handlers=error_handlers,
            previous_response_id=previous_response_id,
            auto_previous_response_id=auto_previous_response_id,
            conversation_id=conversation_id,
            session=session,
            **options,
        )
        return found


async def run(agent: Any, text: Any, *, context: Any = None, **options: Any) -> RunResult:
    """Run an agent to the end, as `Runner.run` does."""
    return await Runner.run(agent, text, context=context, **options)


class _Module(ModuleType):
    """This module has the SDK's name, and is at the same time what programs call: `from understudy.actors.agents_sdk import run`."""

    def __call__(self, agent: Any, text: Any, **options: Any) -> Any:
        return run(agent, text, **options)


sys.modules[__name__].__class__ = _Module
