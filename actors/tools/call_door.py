"""A tool call's door to its run, as this package uses it.

Owns: `CallDoor`, which carries out what a tool asks of its context, and what the agent that makes the call keeps of it. It must never let a tool reach another
call's state, and a user never holds one: the user's view is `ToolContext`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ...runtime.agent.door import AgentDoor
from ...runtime.data.chat import ToolCall
from ...runtime.data.events import Action, AgentEvent, CustomAction, Interrupted
from ...runtime.data.interrupt import AddressStep, Answer, InterruptContext
from ...runtime.errors import UsageError

__all__ = ["CallDoor", "ToolInterrupted"]

# Events that one call may have emitted which are not shown yet: a tool that emits without end must not fill the memory.
_MOST_WAITING: Final = 1_000

# Seconds after which a thread that waits to emit checks whether the run is still there.
_LOOK_AGAIN: Final = 0.5


class ToolInterrupted(BaseException):
    """The call waits for an answer from outside. The agent that makes it shows for what."""

    def __init__(self, contexts: tuple[InterruptContext, ...] | Callable[[], InterruptContext]) -> None:
        super().__init__("the call waits for something from outside")
        self._contexts = contexts

    @property
    def contexts(self) -> tuple[InterruptContext, ...]:
        """What the call waits for. That of a call in a thread is noted here, on the loop: other threads must not note theirs at the same time."""
        if callable(self._contexts):
            self._contexts = (self._contexts(),)
        return self._contexts


class CallDoor:
    """One call of a tool, from the side of the agent that makes it. For this package only."""

    __slots__ = ("_answers", "_asked", "_casts", "_over", "_room", "action", "agent", "answer", "call", "problem")

    def __init__(self, agent: AgentDoor, call: ToolCall, answer: Answer | None) -> None:
        self.agent = agent
        self.call = call
        self.answer = answer  # to the interrupt of this call, if it is resumed
        self.action: Action | None = None  # for the call's own event
        self.problem: Exception | None = None  # what the model is told of, in place of a result
        self._over = False  # whether the call has ended
        self._room: threading.Semaphore | None = None  # for events that are not shown yet
        # The answers to its interrupts so far, in their order: whether it was an approval, and the data.
        self._answers: tuple[tuple[bool, object], ...] = () if answer is None else (*answer.pending.earlier, (answer.pending.approval, answer.data))
        self._asked = 0  # how many of them this attempt has read
        self._casts = 0  # how many agents it has let play

    @property
    def address_step(self) -> AddressStep:
        return AddressStep("tool", self.call.name, self.call.id)

    @property
    def was_approved(self) -> bool:
        """Whether an approval of the call was asked for already."""
        return any(approval for approval, _ in self._answers)

    def interrupt(self, info: Any, state: Any) -> Any:
        """The next answer to an interrupt; without one, the run is interrupted here."""
        return self._wait(info, state, approval=False)

    def approval(self, info: object) -> object:
        """The answer to whether the call may be made; without one, the run is interrupted here."""
        return self._wait(info, None, approval=True)

    def _wait(self, info: object, state: object, *, approval: bool) -> object:
        answers = self._answers
        while self._asked < len(answers):
            was_approval, data = answers[self._asked]
            self._asked += 1
            if was_approval is approval:
                return data
        agent = self.agent
        note = partial(agent.note_interrupt, info, state, self.address_step, approval=approval, earlier=answers)
        if agent.is_own_thread():
            raise ToolInterrupted((note(),))
        if agent.run.keeps:  # what cannot be stored is an error of the tool: raise it here, in the tool
            agent.check_storable("interrupt(info=...)", info)
            agent.check_storable("interrupt(state=...)", state)
        raise ToolInterrupted(note)

    def next_cast_key(self) -> str:
        """The key of the next agent that this call lets play: no other of the invocation has it."""
        self._casts += 1
        return f"{self.call.id}#{self._casts}"

    def send_action(self, action: Action) -> None:
        """Attach an action to this call's own event. The last one counts."""
        if not isinstance(action, Action) or isinstance(action, Interrupted):
            msg = f"tool {self.call.name}: send_action({action!r}): give Exit(), BreakLoop(), TransferToAgent(...) or CustomAction(...)."
            raise UsageError(msg)
        self.action = action

    def emit(self, event: AgentEvent) -> None:
        """Have an event shown now, before this call's own. From any thread."""
        if not isinstance(event, AgentEvent):
            msg = f"tool {self.call.name}: emit({event!r}): give an AgentEvent."
            raise UsageError(msg)
        if event.message is not None or event.error is not None or not isinstance(event.action, CustomAction | None):
            msg = f"tool {self.call.name}: emit() takes events with custom_output, a delta or a CustomAction; all else is the agent's to make."
            raise UsageError(msg)
        if self._over:
            return  # from a thread that outlives its call
        if self._room is None:
            self._room = threading.Semaphore(_MOST_WAITING)
        room = self._room
        if self.agent.is_own_thread():
            if not room.acquire(blocking=False):
                msg = f"tool {self.call.name}: {_MOST_WAITING} of its events wait to be shown. Await something between them, so that they can be."
                raise UsageError(msg)
        else:
            while self.agent.is_alive() and not room.acquire(timeout=_LOOK_AGAIN):
                pass
        self.agent.emit_soon(event, room.release)

    def end(self) -> None:
        """The call has ended: nothing of it is shown any more."""
        self._over = True

    def forget_action(self) -> None:
        """The attempt failed: its action is void, and the next attempt reads the answers from the first."""
        self.action = None
        self._asked = 0
