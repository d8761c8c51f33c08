"""What a tool is given beside its arguments.

Owns: `ToolContext`, the one door from a tool to the run that it works for. It must never let a tool reach another call's state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from ...runtime.agent.context import AgentContext
from ...runtime.agent.options import tool_options
from ...runtime.agent.run_context import RunContext
from ...runtime.agent.session_values import SessionValues
from ...runtime.data.chat import ToolCall
from ...runtime.data.events import Action, AgentEvent, CustomAction, Interrupted
from ...runtime.data.interrupt import AddressStep, Answer, InterruptContext
from ...runtime.errors import UsageError

__all__ = ["ToolContext", "ToolInterrupted"]

P = ParamSpec("P")
T = TypeVar("T")

# Events that one call may have emitted which are not shown yet: a tool that emits without end must not fill the memory.
_MOST_WAITING: Final = 1_000

# Seconds after which a thread that waits to emit looks whether the run is still there.
_LOOK_AGAIN: Final = 0.5


class ToolInterrupted(BaseException):
    """The call waits for something from outside. The agent that makes it shows for what."""

    def __init__(self, contexts: tuple[InterruptContext, ...] | Callable[[], InterruptContext]) -> None:
        super().__init__("the call waits for something from outside")
        self._contexts = contexts

    @property
    def contexts(self) -> tuple[InterruptContext, ...]:
        """For what. Those of a call in a thread are noted here, on the loop: other threads must not note theirs at the same time."""
        if callable(self._contexts):
            self._contexts = (self._contexts(),)
        return self._contexts


class ToolContext:
    """One call of a tool, as the tool sees it. A parameter that is annotated with it receives it, and is not in the schema."""

    __slots__ = ("_action", "_agent", "_answers", "_asked", "_call", "_casts", "_over", "_room", "interrupt_state", "is_resume", "is_resume_target")

    def __init__(self, agent: AgentContext, call: ToolCall, answer: Answer | None = None) -> None:
        self._agent = agent
        self._call = call
        self._action: Action | None = None
        self._over = False  # whether the call has ended
        self._room: threading.Semaphore | None = None  # for events that are not shown yet
        # What it was told at its interrupts so far, in their order: whether it was an approval, and the data.
        self._answers: tuple[tuple[bool, Any], ...] = () if answer is None else (*answer.pending.earlier, (answer.pending.approval, answer.data))
        self._asked = 0  # how many of them it has come to
        self._casts = 0  # how many agents it has let play
        self.interrupt_state: Any = None if answer is None else answer.pending.state
        """What was given to `interrupt(state=...)` when it was interrupted last."""
        self.is_resume = answer is not None
        """Whether the call was interrupted before."""
        self.is_resume_target = answer is not None and answer.is_target
        """Whether it is this call that the run was resumed for."""

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self._agent.run.session

    @property
    def run(self) -> RunContext:
        return self._agent.run

    @property
    def run_id(self) -> str:
        return self._agent.run_id

    @property
    def agent_name(self) -> str:
        return self._agent.agent_name

    @property
    def run_path(self) -> tuple[str, ...]:
        return self._agent.run_path

    @property
    def tool_name(self) -> str:
        return self._call.name

    @property
    def call_id(self) -> str:
        return self._call.id

    @property
    def arguments(self) -> str:
        """What the model has given, as JSON."""
        return self._call.arguments

    @property
    def idempotency_key(self) -> str:
        """The same whenever this call is made again because it may not have come to its end: give it to whatever must not happen twice."""
        return f"{self._agent.run_id}:{self._agent.invocation_id}:{self._call.id}"

    @property
    def options(self) -> Mapping[str, Any]:
        """The `ToolOptions` that were given to this run for this tool."""
        return tool_options(self._agent.run.options, self._agent.agent_name, self._call.name)

    @property
    def agent_context(self) -> AgentContext:
        """The context of the agent that calls."""
        return self._agent

    @property
    def address_step(self) -> AddressStep:
        return AddressStep("tool", self._call.name, self._call.id)

    def interrupt(self, info: Any = None, *, state: Any = None) -> Any:
        """Interrupt the run here. When it is resumed, the tool is called again, and this returns the data given for it.

        A tool may ask several times: each call of this is answered in its turn.
        """
        return self._wait(info, state, approval=False)

    def approval(self, info: Any) -> Any:
        """The answer to whether the call may be made; if there is none yet, the run is interrupted here."""
        return self._wait(info, None, approval=True)

    def _wait(self, info: Any, state: Any, *, approval: bool) -> Any:
        answers = self._answers
        while self._asked < len(answers):
            was_approval, data = answers[self._asked]
            self._asked += 1
            if was_approval is approval:
                return data
        agent = self._agent
        note = partial(agent.interrupted, info, state, self.address_step, approval=approval, earlier=answers)
        if agent.is_own_thread():
            raise ToolInterrupted((note(),))
        if agent.run.keeps:  # what cannot be kept is said here, where it was given
            agent._check_kept("interrupt(info=...)", info)
            agent._check_kept("interrupt(state=...)", state)
        raise ToolInterrupted(note)

    @property
    def was_approved(self) -> bool:
        """Whether somebody was asked already if the call may be made."""
        return any(approval for approval, _ in self._answers)

    def next_slot(self) -> str:
        """What tells an agent that this call lets play from the others that it has."""
        self._casts += 1
        return f"{self._call.id}#{self._casts}"

    def send_action(self, action: Action) -> None:
        """Attach an action to this call's own event: `Exit()`, `BreakLoop()`, `TransferToAgent(...)`, `CustomAction(...)`. The last one counts."""
        if not isinstance(action, Action) or isinstance(action, Interrupted):
            msg = f"tool {self._call.name}: send_action({action!r}): give Exit(), BreakLoop(), TransferToAgent(...) or CustomAction(...)."
            raise UsageError(msg)
        self._action = action

    def emit(self, event: AgentEvent) -> None:
        """Have an event shown now, before this call's own. From any thread. When the consumer is slow, a thread waits here; in a coroutine it is an error."""
        if not isinstance(event, AgentEvent):
            msg = f"tool {self._call.name}: emit({event!r}): give an AgentEvent."
            raise UsageError(msg)
        if event.message is not None or event.error is not None or not isinstance(event.action, CustomAction | None):
            msg = f"tool {self._call.name}: emit() takes events with custom_output, a delta or a CustomAction; all else is the agent's to make."
            raise UsageError(msg)
        if self._over:
            return  # from a thread that nobody waits for any more
        if self._room is None:
            self._room = threading.Semaphore(_MOST_WAITING)
        room = self._room
        if self._agent.is_own_thread():
            if not room.acquire(blocking=False):
                msg = f"tool {self._call.name}: {_MOST_WAITING} of its events wait to be shown. Await something between them, so that they can be."
                raise UsageError(msg)
        else:
            while self._agent.is_alive() and not room.acquire(timeout=_LOOK_AGAIN):
                pass
        self._agent.emit_soon(event, room.release)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in one of the system's worker threads, with this call's context variables."""
        return await self._agent.run_blocking(function, *args, **kwargs)

    # --- for the agent ---

    @property
    def action(self) -> Action | None:
        return self._action

    def end(self) -> None:
        """The call has ended: nothing of it is shown any more."""
        self._over = True

    def forget_action(self) -> None:
        """The attempt failed: what it wanted done is not done, and what it asked is asked again."""
        self._action = None
        self._asked = 0
