"""`ToolCallState`, a tool call's access to its run, for internal use.

It performs the operations of `ToolContext`, which is the user's view. A tool cannot reach the state
of another call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...runtime.agent.agent_runtime import AgentRuntime
from ...runtime.codec.kept_values import stored_form
from ...runtime.data.chat import ToolCall
from ...runtime.data.events import Action, AgentEvent, CustomAction, Interrupted
from ...runtime.data.interrupt import AddressStep, Answer, Due, InterruptContext
from ...runtime.errors import CheckpointError, ToolError, UsageError
from .call_key import key_of

if TYPE_CHECKING:
    from ...runtime.agent.tree import Definition

__all__ = ["ToolCallState", "ToolInterrupted"]

# The limit of events that one call has emitted and that are not shown yet. It bounds the memory of
# a tool that emits endlessly.
_MOST_WAITING: Final = 1_000

# Seconds after which a thread that waits to emit checks whether the run still exists.
_LOOK_AGAIN: Final = 0.5


def _told(answer: Answer) -> tuple[bool, object, bytes | None]:
    pending = answer.pending
    return pending.approval, answer.data, _form_of(pending.context.info)


def _form_of(info: object) -> bytes | None:
    """Return a digest that identifies a question.

    None: the question cannot be stored, so it was never answered.
    """
    from hashlib import blake2b  # noqa: PLC0415 -- rarely needed

    try:
        return blake2b(stored_form(info), digest_size=16).digest()
    except CheckpointError:
        return None


class ToolInterrupted(BaseException):
    """The call waits for an answer from outside. Its agent shows the question."""

    def __init__(
        self, contexts: tuple[InterruptContext, ...] | Callable[[], InterruptContext]
    ) -> None:
        super().__init__("the call waits for something from outside")
        self._contexts = contexts

    @property
    def contexts(self) -> tuple[InterruptContext, ...]:
        """The interrupts that the call waits for.

        The interrupt of a call in a thread is noted here, on the event loop, because threads must
        not note theirs concurrently.
        """
        if callable(self._contexts):
            self._contexts = (self._contexts(),)
        return self._contexts


class ToolCallState:
    """One call of a tool, from the side of the agent that makes it. For this package only."""

    __slots__ = (
        "_answers",
        "_casts",
        "_over",
        "_room",
        "_sleeps",
        "_tasks",
        "_used",
        "action",
        "answer",
        "call",
        "problem",
        "runtime",
    )

    def __init__(self, runtime: AgentRuntime, call: ToolCall, answer: Answer | None) -> None:
        self.runtime = runtime
        self.call = call
        self.answer = answer  # answer to the interrupt of this call, if it is resumed
        self.action: Action | None = None  # for the call's own event
        self.problem: Exception | None = None  # the error returned to the model instead of a result
        self._over = False  # whether the call has ended
        self._room: threading.Semaphore | None = None  # for events that are not shown yet
        # The answers to its interrupts so far, in order: whether it was an approval, the data, and
        # a digest of the question.
        self._answers: tuple[tuple[Any, ...], ...] = (
            () if answer is None else (*answer.pending.earlier, _told(answer))
        )
        self._used: set[int] = set()  # the answers that this attempt has read
        self._casts = 0  # the number of agents it has called
        self._sleeps = 0
        self._tasks = 0

    @property
    def address_step(self) -> AddressStep:
        return AddressStep("tool", self.call.name, self.call.id)

    @property
    def idempotency_key(self) -> str:
        """The key of the call. It is the same whenever the call is made again."""
        return key_of(self.runtime.run.run_id, self.runtime.invocation, self.call)

    @property
    def was_approved(self) -> bool:
        """Whether an approval of the call has been requested already."""
        return any(told[0] for told in self._answers)

    def interrupt(self, info: Any, state: Any, due: Due | None = None) -> Any:
        """Return the next answer to an interrupt, or interrupt the run if there is none."""
        return self._wait(info, state, due, approval=False)

    def approval(self, info: object, due: Due | None = None) -> object:
        """Return the answer to the approval request, or interrupt the run if there is none."""
        return self._wait(info, None, due, approval=True)

    async def start_task(self, agent: Definition, text: str, seconds: float = 0.0) -> str:
        """Start an agent in the background, once for this call. Returns the id of the task.

        `seconds`: for how long the call waits for the result itself.
        """
        tasks, session_id = self.runtime.tasks_for(agent)
        self._tasks += 1
        key = f"{self.idempotency_key} task {self._tasks}"
        try:
            return await tasks.start(agent, text, key, session_id, self.runtime.run.run_id, seconds)
        except UsageError as error:  # such as too many tasks: the model can stop one
            raise ToolError(str(error), agent=self.runtime.agent_name) from error

    def next_sleep(self) -> str:
        """Return the name of the next sleep of this call."""
        self._sleeps += 1
        return f"{self.call.name} {self.call.id}: sleep {self._sleeps}"

    def _wait(self, info: object, state: object, due: Due | None, *, approval: bool) -> object:
        runtime, answers = self.runtime, self._answers
        asked = _form_of(info) if answers else None
        for number, (was_approval, data, *shown) in enumerate(answers):
            # The tool may ask a different question now: an answer is valid only for the question it
            # was given to.
            if (
                number not in self._used
                and was_approval is approval
                and asked is not None
                and shown == [asked]
            ):
                self._used.add(number)
                return data
        note = partial(
            runtime.note_interrupt,
            info,
            state,
            self.address_step,
            approval=approval,
            earlier=answers,
            due=due,
        )
        if runtime.is_own_thread():
            raise ToolInterrupted((note(),))
        # A value that cannot be stored is the tool's error: raise it inside the tool.
        if runtime.run.keeps:
            runtime.check_storable("interrupt(info=...)", info)
            runtime.check_storable("interrupt(state=...)", state)
        raise ToolInterrupted(note)

    def next_cast_key(self) -> str:
        """Return the key of the next agent that this call runs, unique in the invocation."""
        self._casts += 1
        return f"{self.call.id}#{self._casts}"

    def send_action(self, action: Action) -> None:
        """Attach an action to this call's own event. The last one counts."""
        if not isinstance(action, Action) or isinstance(action, Interrupted):
            msg = (
                f"tool {self.call.name}: send_action(): action must be Exit(), BreakLoop(), "
                f"TransferToAgent(...) or CustomAction(...), got {action!r}."
            )
            raise UsageError(msg)
        self.action = action

    def emit(self, event: AgentEvent) -> None:
        """Have an event shown now, before this call's own event. Any thread may call this."""
        if not isinstance(event, AgentEvent):
            msg = f"tool {self.call.name}: emit(): event must be an AgentEvent, got {event!r}."
            raise UsageError(msg)
        if (
            event.message is not None
            or event.error is not None
            or not isinstance(event.action, CustomAction | None)
        ):
            msg = (
                f"tool {self.call.name}: emit(): event must have only custom_output, a delta or a "
                "CustomAction. The agent itself emits all other events."
            )
            raise UsageError(msg)
        if self._over:
            return  # from a thread that outlives its call
        if self._room is None:
            self._room = threading.Semaphore(_MOST_WAITING)
        room = self._room
        if self.runtime.is_own_thread():
            if not room.acquire(blocking=False):
                msg = (
                    f"tool {self.call.name}: {_MOST_WAITING} of its events wait to be shown, "
                    "which is the limit. Await something between two calls of emit()."
                )
                raise UsageError(msg)
        else:
            while self.runtime.is_alive() and not room.acquire(timeout=_LOOK_AGAIN):
                pass
        self.runtime.emit_soon(event, room.release)

    def end(self) -> None:
        """Mark the call as ended: none of its events is shown any longer."""
        self._over = True

    def forget_action(self) -> None:
        """Discard the action of a failed attempt.

        The next attempt reads the answers from the first.
        """
        self.action = None
        self._used.clear()
