"""The messages that the runtime itself sends.

Owns: how an actor's life can end, the notice of it that watchers get, and the requests that travel in the control lane.
Only `Stopped`, `Failed` and `Terminated` are for users.
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
    """The actor was stopped, by whomever."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The actor failed, and its supervisor did not keep it. The error comes without its traceback, which is in the log: it would keep the instance."""

    error: BaseException


Ending: TypeAlias = Stopped | Failed


@dataclass(frozen=True, slots=True)
class Terminated:
    """What a watcher is told, once, after everything that the watched actor itself has sent it."""

    ref: ActorRef[Any]
    reason: Ending


class Control:
    """The base of what travels in the control lane."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StopRequest(Control):
    """Stop: before the queued work in the control lane, after it as the last envelope of the work lane."""


@dataclass(frozen=True, slots=True)
class WaitRequest(Control):
    """Do nothing but reply when the actor has ended."""


@dataclass(frozen=True, slots=True)
class CancelRequest(Control):
    """Cancel the handler that is under way."""


@dataclass(frozen=True, slots=True)
class ChildEscalated(Control):
    """A child failed, and its failure is to be this actor's."""

    error: BaseException
    during: str


@dataclass(frozen=True, slots=True)
class Look(Control):
    """Something has come up that the thread of a thread actor is to see to."""


@dataclass(frozen=True, slots=True)
class ChildFailed:
    """A child has failed: its parent is to decide what becomes of it."""

    child: Cell
    error: BaseException
    during: str
