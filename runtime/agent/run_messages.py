"""What the actors of a run send to one another.

Owns: these messages. Commands are imperative (`Perform`, `Cast`), reports are in the past tense (`Emitted`, `AgentEnded`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from ..data.agent_input import AgentInput
from ..data.chat import MessageDelta
from ..data.events import AgentEvent, whole
from ..data.outcome import Outcome
from ..data.run_path import Path
from .history import Lane
from .tree import Node

if TYPE_CHECKING:
    from .invocation import CastKey, Dialogue, Invocation

__all__ = [
    "LOST",
    "AgentEnded",
    "Book",
    "CancelCast",
    "CancelChildren",
    "CancelMode",
    "CancelRun",
    "Cast",
    "CastReply",
    "Crashed",
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
    """To an agent actor: begin, or go on from where the invocation stands."""

    __slots__ = ()


class CastReply(Protocol):
    """Where the outcome of a cast goes: a future, or something that is as good as one."""

    def done(self) -> bool: ...
    def set_result(self, outcome: Outcome, /) -> object: ...
    def cancel(self) -> object: ...


class TellsLast:
    """The events of one play of an agent of this package, which tells which of them is the last: behind that, it has nothing to do."""

    __slots__ = ("is_last",)

    is_last: bool
    """Whether the event that was returned last is the last one."""

    async def next_event(self) -> AgentEvent | None:
        """The next event, which may be `unstamped`; None: there is none. Between two of them, nothing is under way."""
        raise NotImplementedError

    # For an agent of the user's that hands on the events of one of this package.

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        event = await self.next_event()
        if event is None:
            raise StopAsyncIteration
        return whole(event)

    async def aclose(self) -> None:
        """There is nothing to close."""


class Book(Protocol):
    """What a run writes down, to its agents: what is asked of it without a message, where nothing has to be waited for and its supervisor is idle."""

    def note(self, invocation: Invocation, event: AgentEvent) -> AgentEvent | None:
        """Record and show an event here and now. Returns None, having done nothing, if there is anything to wait for: then it comes by a message."""
        ...

    def show_delta(self, invocation: Invocation, delta: MessageDelta) -> bool:
        """Show a piece of a message here and now. Returns False, having done nothing, if there is anything to wait for: then it comes as any event does."""
        ...


class Cast:
    """To the supervisor: let an agent play, and give `reply` its outcome. The message itself is answered at once.

    If the caster has cast in that slot before, the agent goes on from where it stands; or its outcome is known already.
    """

    __slots__ = ("base", "cast_key", "dialogue", "given", "lane", "loop", "node", "one_at_a_time", "parent", "reply", "tool")

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
        dialogue: Dialogue | None = None,
        tool: Any = None,
        one_at_a_time: bool = False,
    ) -> None:
        self.parent = parent
        self.node = node
        self.reply = reply
        self.cast_key = cast_key
        self.base = base  # the run path that the agent's name is added to
        self.lane = lane
        self.given = given
        self.loop = loop  # the iteration, if the caster is a loop
        self.dialogue = dialogue  # a conversation of its own, if it is called as a tool
        self.tool = tool  # the address step of the tool call, if it is
        self.one_at_a_time = one_at_a_time  # whether the caster is done with all that it has cast before


class Emitted:
    """To the supervisor: an event of an agent. The reply is the event as it was recorded and shown."""

    __slots__ = ("event", "invocation", "is_last")

    def __init__(self, invocation: Invocation, event: AgentEvent, is_last: bool = False) -> None:  # noqa: FBT001, FBT002 -- for speed
        self.invocation = invocation
        self.event = event
        self.is_last = is_last  # whether the agent does nothing behind it but report its end: then it may be recorded and shown with that


class EmittedNoWait(Emitted):
    """The same, from a sender that does not wait for the reply. `shown` is called when it has been shown, or dropped."""

    __slots__ = ("shown",)

    def __init__(self, invocation: Invocation, event: AgentEvent, shown: Callable[[], object]) -> None:
        super().__init__(invocation, event)
        self.shown = shown


class AgentEnded:
    """To the supervisor: an agent has come to its end. With `transfer`, it wants to hand over."""

    __slots__ = ("invocation", "outcome", "transfer")

    def __init__(self, invocation: Invocation, outcome: Outcome, transfer: str | None = None) -> None:
        self.invocation = invocation
        self.outcome = outcome
        self.transfer = transfer


class Crashed:
    """To the supervisor: an agent's actor is no more, and had not reported its end. Without an error, it was stopped."""

    __slots__ = ("error", "invocation")

    def __init__(self, invocation: Invocation, error: BaseException | None) -> None:
        self.invocation = invocation
        self.error = error


class JoinLanes:
    """To the supervisor: all in the lanes of an agent's children has ended; put them behind the lane that they came from."""

    __slots__ = ("parent",)

    def __init__(self, parent: Invocation) -> None:
        self.parent = parent


class StateChanged:
    """To the supervisor: an agent's state has changed in a way that must not be lost. Answered when it is recorded."""

    __slots__ = ("invocation", "step")

    def __init__(self, invocation: Invocation, step: str | None = None) -> None:
        self.invocation = invocation
        self.step = step  # of `context.step`, if that is it


class ReachedSafePoint:
    """To the supervisor: an agent has come to a safe point, and goes no further."""

    __slots__ = ("invocation",)

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation


class Open:
    """To the supervisor: find out from where the run starts, and let it begin."""

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
        self.timeout = timeout  # after which it is immediate
        self.unfinished = unfinished  # whether another process is to find the run and to continue it
        self.lost = lost  # whether another process may have it already: nothing of it may be written any more
        self.begins_first = begins_first  # whether a run that has not begun begins first, so that its message is recorded


LOST: Final = CancelRun(
    "its lease was lost, because this process was stopped, or the store could not be reached, for too long: another process may continue it",
    unfinished=True,
    lost=True,
)


class CancelCast:
    """To the supervisor: the agent that waited for the future `reply` of a cast does so no longer. End what is under way there, and then set `gone`."""

    __slots__ = ("gone", "reply")

    def __init__(self, reply: object, gone: Any) -> None:
        self.reply = reply
        self.gone = gone


class CancelChildren:
    """To the supervisor: end all that is under way below an agent, which is at its own work."""

    __slots__ = ("parent",)

    def __init__(self, parent: Invocation) -> None:
        self.parent = parent
