"""`ToolContext`, the object that a tool receives besides its arguments.

It is the user's view of one call. Internal operations are in `ToolCallState`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ...runtime.agent.options import tool_options
from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.events import Action, AgentEvent
from ...runtime.data.interrupt import Due
from ...runtime.data.run_path import names_of
from .attempt import Attempt
from .tool_call_state import ToolCallState

if TYPE_CHECKING:
    from ...runtime.agent.tree import Definition

__all__ = ["ToolContext", "attempt_of", "call_state_of"]

P = ParamSpec("P")
T = TypeVar("T")


class ToolContext:
    """One call of a tool, as the tool sees it.

    A parameter annotated with it receives it, and is not in the schema.
    """

    __slots__ = ("_attempt", "_call_state")

    def __init__(self, call_state: ToolCallState) -> None:
        self._call_state = call_state
        self._attempt = Attempt()

    # --- the call and its run ---

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self._call_state.runtime.run.session

    @property
    def run(self) -> RunContext:
        """The run, as hooks and callbacks see it.

        `run.context` is the object passed to `Runner.run(context=...)`.
        """
        return self._call_state.runtime.run

    @property
    def run_id(self) -> str:
        return self._call_state.runtime.run.run_id

    @property
    def agent_name(self) -> str:
        """The name of the agent that makes the call."""
        return self._call_state.runtime.agent_name

    @property
    def run_path(self) -> tuple[str, ...]:
        """The names of the agents on the path to this call, ending with the calling agent."""
        return names_of(self._call_state.runtime.invocation.run_path)

    @property
    def tool_name(self) -> str:
        return self._call_state.call.name

    @property
    def call_id(self) -> str:
        return self._call_state.call.id

    @property
    def arguments(self) -> str:
        """The arguments as the model sent them: JSON text."""
        return self._call_state.call.arguments

    @property
    def idempotency_key(self) -> str:
        """A key that is the same whenever this call is made again.

        That includes a repetition after a crash or after a restore from a backup. Pass the key to
        operations that must not happen twice.

        It is computed from the run's id, the agent's place in the run, the tool, the arguments as
        the model sent them, and the number of equal calls before it.
        """
        return self._call_state.idempotency_key

    @property
    def fence(self) -> int:
        """The run's fencing token, which grows each time a process takes the run.

        A service that has seen a larger token refuses requests with this one. 0 means that no other
        process can take the run.
        """
        lease = self._call_state.runtime.run.lease
        return 0 if lease is None else lease.fence

    @property
    def options(self) -> Mapping[str, Any]:
        """The `ToolOptions` of this run for this tool."""
        call_state = self._call_state
        return tool_options(
            call_state.runtime.options, call_state.runtime.agent_name, call_state.call.name
        )

    # --- interrupts ---

    @property
    def interrupt_state(self) -> Any:
        """The value of `interrupt(state=...)` at the last interrupt of the call."""
        answer = self._call_state.answer
        return None if answer is None else answer.pending.state

    @property
    def is_resume(self) -> bool:
        """Whether the call was interrupted before."""
        return self._call_state.answer is not None

    @property
    def is_resume_target(self) -> bool:
        """Whether the run was resumed for this very call."""
        answer = self._call_state.answer
        return answer is not None and answer.is_target

    def interrupt(
        self,
        info: object = None,
        *,
        state: object = None,
        deadline: timedelta | datetime | None = None,
        default: object = None,
    ) -> Any:
        """Interrupt the run here.

        When the run is resumed, the tool is called again, and this method returns the answer. If
        nobody answers until `deadline`, a process that is `attending` resumes it with `default`.

        A tool may ask several questions: each call of this method returns its own answer.
        """
        return self._call_state.interrupt(info, state, Due.of("interrupt()", deadline, default))

    async def sleep(self, duration: timedelta) -> None:
        """Pause the run for that long. It uses no memory, and outlives its process.

        A process that is `attending` resumes it; then the tool is called again, and this method
        returns at once. An answer to the interrupt wakes it earlier.
        """
        call_state = self._call_state
        until = await call_state.runtime.sleeps_until(call_state.next_sleep(), duration)
        if datetime.now(UTC) < until:
            call_state.interrupt(f"sleeps until {until.isoformat()}", None, Due(until, None))

    # --- cancellation ---

    @property
    def cancelled(self) -> threading.Event:
        """An event that is set when nothing waits for this call any longer.

        The reason may be that its `timeout` expired, or that its run was cancelled or has ended.

        A thread cannot be ended from outside. A function that may take long must poll
        `context.cancelled.is_set()`, or wait with `context.cancelled.wait(seconds)` instead of
        `time.sleep`, and return. Each attempt of a tool with `retries` has its own event.
        """
        return self._attempt.cancelled

    # --- operations ---

    def send_action(self, action: Action) -> None:
        """Attach an action to this call's own event. The last one counts.

        The actions are `Exit()`, `BreakLoop()`, `TransferToAgent(...)` and `CustomAction(...)`.
        """
        self._call_state.send_action(action)

    def emit(self, event: AgentEvent) -> None:
        """Have an event shown now, before this call's own event.

        Any thread may call this. If the consumer is slow, a thread waits here; a coroutine gets an
        error.
        """
        self._call_state.emit(event)

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this call; return the recorded result if it is repeated.

        This applies after an interrupt, a retry or the end of the process. `name` identifies the
        step within the call. With `durability="step"` the result is in the journal when this
        returns.
        """
        call_state = self._call_state
        return await call_state.runtime.step(
            f"{call_state.call.name} {call_state.call.id}: {name}", make
        )

    async def start(self, agent: Definition, text: str) -> str:
        """Start an agent in the background, once for this call. Returns the id of the task.

        The agent works as a run of its own, whose end is posted to the session of this run; see
        `Session.task`.
        """
        return await self._call_state.start_task(agent, text)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in a worker thread, with this call's context variables."""
        call_state = self._call_state
        return await self._attempt.in_thread(
            call_state.runtime, call_state.call.name, partial(function, *args, **kwargs)
        )


def call_state_of(context: ToolContext) -> ToolCallState:
    """Return the `ToolCallState` of a context. For this package only."""
    return context._call_state


def attempt_of(context: ToolContext) -> Attempt:
    """Return the attempt that the context belongs to. For this package only."""
    return context._attempt
