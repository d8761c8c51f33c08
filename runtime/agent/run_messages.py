"""The messages between the actors of a run.

Commands are imperative (`Perform`, `Cast`), reports are in the past tense (`Emitted`,
`AgentEnded`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from ..data.agent_input import AgentInput
from ..data.chat import MessageDelta
from ..data.events import AgentEvent
from ..data.outcome import Outcome
from ..data.run_path import Path
from .history import Lane
from .tree import Node

if TYPE_CHECKING:
    from .invocation import CastKey, Conversation, Invocation

__all__ = [
    "LOST",
    "AgentEnded",
    "CancelCast",
    "CancelChildren",
    "CancelMode",
    "CancelRun",
    "Cast",
    "CastReply",
    "Crashed",
    "DeltaDisplay",
    "Emitted",
    "EmittedNoWait",
    "JoinLanes",
    "Open",
    "Perform",
    "ReachedSafePoint",
    "StateChanged",
    "TellsLast",
]

CancelMode: TypeAlias = Literal["immediate", "after_model", "after_tools"]


class Perform:
    """To an agent actor: start, or continue from the invocation's current state."""

    __slots__ = ()


class CastReply(Protocol):
    """The receiver of an agent call's outcome: a future, or an equivalent."""

    def done(self) -> bool: ...
    def set_result(self, outcome: Outcome, /) -> object: ...
    def cancel(self) -> object: ...


class TellsLast:
    """An event stream of this library's own agents that knows which event is the last.

    After the last event the agent does nothing more.
    """

    __slots__ = ("is_last",)

    is_last: bool
    """True if the event returned last is the final one."""

    async def next_event(self) -> AgentEvent | None:
        """Return the next event, or None at the end.

        Nothing runs between two calls.
        """
        raise NotImplementedError

    # For a custom agent that forwards the events of one of these agents.

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Do nothing, because there is nothing to close."""


class DeltaDisplay(Protocol):
    """Shows deltas directly: they are not recorded, and the whole message comes later."""

    def show_delta(self, invocation: Invocation, delta: MessageDelta) -> bool:
        """Show a delta immediately.

        Returns False, without any effect, if something must be awaited: then it is sent like any
        event.
        """
        ...


class Cast:
    """To the supervisor: run an agent, and pass its outcome to `reply`.

    The message itself is answered at once. If the caller has used this key before, the agent
    continues from its current state, or its outcome is already known.
    """

    __slots__ = (
        "base",
        "cast_key",
        "conversation",
        "given",
        "lane",
        "loop",
        "node",
        "one_at_a_time",
        "parent",
        "reply",
        "tool",
    )

    def __init__(
        self,
        parent: Invocation,
        node: Node,
        reply: CastReply,
        *,
        cast_key: CastKey,
        base: Path,
        lane: Lane,
        given: AgentInput | None = None,
        loop: int | None = None,
        conversation: Conversation | None = None,
        tool: Any = None,
        one_at_a_time: bool = False,
    ) -> None:
        self.parent = parent
        self.node = node
        self.reply = reply
        self.cast_key = cast_key
        self.base = base  # run path that the agent's name is added to
        self.lane = lane
        self.given = given
        self.loop = loop  # iteration, if the caller is a loop
        self.conversation = conversation  # separate conversation, if the agent is called as a tool
        self.tool = tool  # address step of that tool call
        # True if the caller no longer needs its earlier agent calls.
        self.one_at_a_time = one_at_a_time


class Emitted:
    """To the supervisor: an event of an agent.

    The reply is the event as recorded and shown.
    """

    __slots__ = ("event", "invocation", "is_last")

    def __init__(self, invocation: Invocation, event: AgentEvent, *, is_last: bool = False) -> None:
        self.invocation = invocation
        self.event = event
        # True if the agent only reports its end afterwards: then one step records both.
        self.is_last = is_last


class EmittedNoWait(Emitted):
    """An event whose sender does not wait for the reply.

    `shown` is called when the event has been shown or dropped.
    """

    __slots__ = ("shown",)

    def __init__(
        self, invocation: Invocation, event: AgentEvent, shown: Callable[[], object]
    ) -> None:
        super().__init__(invocation, event)
        self.shown = shown


class AgentEnded:
    """To the supervisor: an agent has ended. With `transfer`, another agent takes over."""

    __slots__ = ("invocation", "outcome", "transfer")

    def __init__(
        self, invocation: Invocation, outcome: Outcome, *, transfer: str | None = None
    ) -> None:
        self.invocation = invocation
        self.outcome = outcome
        self.transfer = transfer


class Crashed:
    """To the supervisor: an agent's actor has ended without a report.

    Without an error, it was stopped.
    """

    __slots__ = ("error", "invocation")

    def __init__(self, invocation: Invocation, error: BaseException | None) -> None:
        self.invocation = invocation
        self.error = error


class JoinLanes:
    """To the supervisor: append the lanes of an agent's ended children to their parent lane."""

    __slots__ = ("parent",)

    def __init__(self, parent: Invocation) -> None:
        self.parent = parent


class StateChanged:
    """To the supervisor: an agent's state has changed and must be stored.

    Answered when the change is recorded.
    """

    __slots__ = ("invocation", "step", "with_next_event")

    def __init__(
        self, invocation: Invocation, step: str | None = None, *, with_next_event: bool = False
    ) -> None:
        self.invocation = invocation
        self.step = step  # of `context.step`, if that caused the change
        # True if an event follows at once: then one commit writes both.
        self.with_next_event = with_next_event


class ReachedSafePoint:
    """To the supervisor: an agent has reached a safe point and waits there."""

    __slots__ = ("invocation",)

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation


class Open:
    """To the supervisor: find out where the run starts from, and start it."""

    __slots__ = ()


class CancelRun:
    """To the supervisor: end the run, now or at the next safe point."""

    __slots__ = ("begins_first", "lost", "mode", "reason", "timeout", "unfinished")

    def __init__(
        self,
        reason: str,
        mode: CancelMode = "immediate",
        timeout: float | None = None,
        *,
        unfinished: bool = False,
        lost: bool = False,
        begins_first: bool = False,
    ) -> None:
        self.reason = reason
        self.mode = mode
        self.timeout = timeout  # after this time the mode is immediate
        self.unfinished = unfinished  # True if another process must find and continue the run
        # True if another process may have claimed the run, so that nothing more may be written.
        self.lost = lost
        # True if a run that has not started starts first, so that its input is recorded.
        self.begins_first = begins_first


LOST: Final = CancelRun(
    "its lease expired, because this process was paused or the store was unreachable for too "
    "long. Another process may continue it",
    unfinished=True,
    lost=True,
)


class CancelCast:
    """To the supervisor: the caller no longer waits for `reply`.

    End everything that runs in that agent call, then set `gone`.
    """

    __slots__ = ("gone", "reply")

    def __init__(self, reply: object, gone: Any) -> None:
        self.reply = reply
        self.gone = gone


class CancelChildren:
    """To the supervisor: end everything that runs below an agent, which itself continues."""

    __slots__ = ("parent",)

    def __init__(self, parent: Invocation) -> None:
        self.parent = parent
