"""What a tool is given beside its arguments.

Owns: `ToolContext`, a user's view of one call. It must never show what only this package uses: that is `CallDoor`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ParamSpec, TypeVar

from ...runtime.agent.options import tool_options
from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.events import Action, AgentEvent
from ...runtime.data.run_path import names_of
from .attempt import Attempt
from .call_door import CallDoor

__all__ = ["ToolContext", "attempt_of", "call_door_of"]

P = ParamSpec("P")
T = TypeVar("T")


class ToolContext:
    """One call of a tool, as the tool sees it. A parameter that is annotated with it receives it, and is not in the schema."""

    __slots__ = ("_attempt", "_door")

    def __init__(self, door: CallDoor) -> None:
        self._door = door
        self._attempt = Attempt()

    # --- what it belongs to ---

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self._door.agent.run.session

    @property
    def run(self) -> RunContext:
        """The run, as hooks and callbacks see it: `run.context` is the object that was given to `Runner.run(context=...)`."""
        return self._door.agent.run

    @property
    def run_id(self) -> str:
        return self._door.agent.run.run_id

    @property
    def agent_name(self) -> str:
        """The name of the agent that makes the call."""
        return self._door.agent.agent_name

    @property
    def run_path(self) -> tuple[str, ...]:
        """The names of the agents that led here, the one that makes the call last."""
        return names_of(self._door.agent.invocation.run_path)

    @property
    def tool_name(self) -> str:
        return self._door.call.name

    @property
    def call_id(self) -> str:
        return self._door.call.id

    @property
    def arguments(self) -> str:
        """The arguments as the model sent them: JSON text."""
        return self._door.call.arguments

    @property
    def idempotency_key(self) -> str:
        """The same whenever this call is repeated because it may not have ended: pass it to whatever must not happen twice."""
        door = self._door
        return f"{door.agent.run.run_id}:{door.agent.invocation.id}:{door.call.id}"

    @property
    def fence(self) -> int:
        """A number that grows each time a process takes the run: a service that has seen a larger one refuses this one's requests. 0: no other process can."""
        lease = self._door.agent.run.lease
        return 0 if lease is None else lease.fence

    @property
    def options(self) -> Mapping[str, Any]:
        """The `ToolOptions` that were given to this run for this tool."""
        door = self._door
        return tool_options(door.agent.options, door.agent.agent_name, door.call.name)

    # --- interrupts ---

    @property
    def interrupt_state(self) -> Any:
        """The value of `interrupt(state=...)` when the call was interrupted last."""
        answer = self._door.answer
        return None if answer is None else answer.pending.state

    @property
    def is_resume(self) -> bool:
        """Whether the call was interrupted before."""
        return self._door.answer is not None

    @property
    def is_resume_target(self) -> bool:
        """Whether the run was resumed for this very call."""
        answer = self._door.answer
        return answer is not None and answer.is_target

    def interrupt(self, info: object = None, *, state: object = None) -> Any:
        """Interrupt the run here. When it is resumed, the tool is called again, and this returns the data given for it.

        A tool may ask several times: each call of this is answered in its turn.
        """
        return self._door.interrupt(info, state)

    # --- its end ---

    @property
    def cancelled(self) -> threading.Event:
        """Set when nothing waits for this call any more: its `timeout` is over, or its run was cancelled or has ended.

        A thread cannot be ended from outside. A function that may take long looks at `context.cancelled.is_set()` now and then, or waits with
        `context.cancelled.wait(seconds)` in place of `time.sleep`, and returns. Each attempt of a tool with `retries` has an event of its own.
        """
        return self._attempt.cancelled

    # --- what it can do ---

    def send_action(self, action: Action) -> None:
        """Attach an action to this call's own event: `Exit()`, `BreakLoop()`, `TransferToAgent(...)`, `CustomAction(...)`. The last one counts."""
        self._door.send_action(action)

    def emit(self, event: AgentEvent) -> None:
        """Have an event shown now, before this call's own. From any thread. When the consumer is slow, a thread waits here; in a coroutine it is an error."""
        self._door.emit(event)

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this call: when the tool is called again, the result of the first time is returned.

        That is so whether it was interrupted, is retried, or its process has ended. `name` tells the step from others of the call. With `durability="step"` its
        result is in the journal when this returns.
        """
        door = self._door
        return await door.agent.step(f"{door.call.name} {door.call.id}: {name}", make)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in one of the system's worker threads, with this call's context variables."""
        door = self._door
        return await self._attempt.in_thread(door.agent, door.call.name, partial(function, *args, **kwargs))


def call_door_of(context: ToolContext) -> CallDoor:
    """The door behind a context. For this package only."""
    return context._door


def attempt_of(context: ToolContext) -> Attempt:
    """The attempt that the context belongs to. For this package only."""
    return context._attempt
