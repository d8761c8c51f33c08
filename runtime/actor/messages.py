"""The messages that the runtime itself sends.

Owns: the two ways in which an actor's life can end, the notice of it for watchers, and the requests in the control lane.
Only `Stopped`, `Failed` and `Terminated` are for users. It must never do anything: these are plain values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef

__all__ = ["CancelRequest", "ChildEscalated", "ChildFailed", "Control", "Ending", "Failed", "Look", "StopRequest", "Stopped", "Terminated", "WaitRequest"]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The actor was stopped, by itself or by another."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The actor failed, and its supervisor did not keep it. The error has lost its traceback, which would keep the instance alive; the log has it."""

    error: BaseException


Ending: TypeAlias = Stopped | Failed


@dataclass(frozen=True, slots=True)
class Terminated:
    """Sent to a watcher once, after everything that the watched actor itself has sent to it."""

    ref: ActorRef[Any]
    reason: Ending


class Control:
    """The base of all messages in the control lane."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StopRequest(Control):
    """Stop. In the control lane: before the queued work. As the last envelope of the work lane: after it."""


@dataclass(frozen=True, slots=True)
class WaitRequest(Control):
    """Do nothing but reply when the actor has ended."""


@dataclass(frozen=True, slots=True)
class CancelRequest(Control):
    """Cancel the current handler."""


@dataclass(frozen=True, slots=True)
class ChildEscalated(Control):
    """A child failed, and this actor has to fail with it."""

    error: BaseException
    during: str


@dataclass(frozen=True, slots=True)
class Look(Control):
    """The thread of a thread actor has to decide about a failed child."""


@dataclass(frozen=True, slots=True)
class ChildFailed:
    """A child has failed, and its parent has to decide what happens to it."""

    child: Cell
    error: BaseException
    during: str
