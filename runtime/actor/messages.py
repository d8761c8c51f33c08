"""The runtime's own messages, as plain values.

They are the two endings of an actor, the notice of its end for watchers, and the requests in the
control lane. Only `Stopped`, `Failed` and `Terminated` are public.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef

__all__ = [
    "CancelRequest",
    "ChildEscalated",
    "ChildFailed",
    "Control",
    "Ending",
    "Failed",
    "Look",
    "StopRequest",
    "Stopped",
    "Terminated",
    "WaitRequest",
]


@dataclass(frozen=True, slots=True)
class Stopped:
    """The actor was stopped, by itself or by another one."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The actor failed, and its supervisor ended it.

    The error has no traceback, which would keep the instance alive; the log has it.
    """

    error: BaseException


Ending: TypeAlias = Stopped | Failed


@dataclass(frozen=True, slots=True)
class Terminated:
    """Sent to a watcher once, after everything that the watched actor has sent to it."""

    ref: ActorRef[Any]
    reason: Ending


class Control:
    """The base of all messages in the control lane."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StopRequest(Control):
    """Stop the actor.

    In the control lane: before the queued work. As the last envelope of the work lane: after it.
    """


@dataclass(frozen=True, slots=True)
class WaitRequest(Control):
    """Reply when the actor has ended, and do nothing else."""


@dataclass(frozen=True, slots=True)
class CancelRequest(Control):
    """Cancel the current handler."""


@dataclass(frozen=True, slots=True)
class ChildEscalated(Control):
    """A child failed, and this actor must fail with it."""

    error: BaseException
    during: str


@dataclass(frozen=True, slots=True)
class Look(Control):
    """The thread of a thread actor must decide about a failed child."""


@dataclass(frozen=True, slots=True)
class ChildFailed:
    """A child has failed, and its parent must decide what happens to it."""

    child: Cell
    error: BaseException
    during: str
