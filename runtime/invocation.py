"""One invocation of an agent, as data: all that its actor starts from, and all that is known of it afterwards.

Owns: where the invocation stands (in the tree, in the history, in a chain of transfers), and its own small state. Starting, going on after a failure and
resuming differ in nothing but what is in here. It is written by the run supervisor, but for `state`, which is the agent's own.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from .chat import Message, new_id
from .definition import AgentInput, Node
from .errors import ActorDeadError
from .history import Lane
from .interrupt import Address, AddressStep
from .messages import Failed
from .outcome import Outcome
from .protocol import CastReply, Crashed

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef

__all__ = ["Invocation", "Scope", "Seat"]


class Scope:
    """A conversation: the run's own, or that of an agent which is called as a tool. Exits, transfers and breaks stay inside."""

    __slots__ = ("input", "last_message", "recorded", "shown")

    def __init__(self, given: AgentInput, *, shown: bool, recorded: bool) -> None:
        self.input = given
        self.last_message: Message | None = None  # the last that was said in it, by whomever
        self.shown = shown  # whether the consumer sees what happens in it
        self.recorded = recorded  # whether it is the run's own


class Seat:
    """The place of one agent, which those take over to whom it hands over: whoever cast the first hears of the last."""

    __slots__ = ("broke", "future", "loop", "names", "parent", "scope", "tool")

    def __init__(self, parent: Invocation | None, scope: Scope, tool: AddressStep | None, loop: int | None, future: CastReply | None) -> None:
        self.parent = parent
        self.scope = scope
        self.tool = tool  # the call that it belongs to, if the agent is called as a tool
        self.loop = loop  # the iteration of the nearest loop around it; None outside of any
        self.future = future  # where the outcome goes; None for the root of the run
        self.names: tuple[str, ...] = ()  # of those who have had it, the last one last
        self.broke = False  # whether one of them has broken that loop

    @property
    def address(self) -> Address:
        """Where it stands in the tree."""
        above = () if self.parent is None else self.parent.address
        return above if self.tool is None else (*above, self.tool)


class Invocation:
    """One agent at work, once. What most invocations never have stands in the class: it is set when it comes to be."""

    cell: Cell | None = None
    """Its actor's, while it has not ended."""
    supervisor: ActorRef[Any] | None = None
    """Who hears of that end."""
    state: dict[str, Any] | None = None
    """The agent's own; made when somebody looks."""
    saved: dict[str, Any] | None = None
    """The state as of the last recorded step, where it may be started again."""
    notes: dict[str, Any] | None = None
    """What the agents of this package note for themselves: the state is the user's."""
    steps: dict[str, Any] | None = None
    """Results of `context.step`."""
    last_message: Message | None = None

    # What its recorded events say of its end.
    outcome: Outcome | None = None
    """It has exited, failed or was interrupted."""
    transfer: str | None = None
    """To whom it wants to hand over."""
    broke: bool = False
    """Whether it has broken the loop around it."""

    playing: int = 0
    """How many seats it has filled that are not empty yet."""
    cancelled: bool = False
    """Whether the supervisor has ended it."""
    ended: tuple[Outcome, str | None] | None = None
    """What it has reported, while others that it has cast are still at work."""

    def __init__(self, node: Node, run_path: tuple[str, ...], lane: Lane, seat: Seat, given: AgentInput | None, handed_over_by: Node | None) -> None:
        self.id = new_id()
        self.node = node
        self.run_path = run_path
        self.lane = lane
        self.since = len(lane.entries)  # what the lane held when it began: its input is made from that
        self.seat = seat
        seat.names = self.names = (*seat.names, node.name)
        self.given = given  # the input that it was given outright, if any
        self.handed_over_by = handed_over_by
        self.messages: list[Message] = []  # what it has said so far, oldest first

    def settle(self, _value: Any = None) -> None:
        """Its actor has ended, as the very last: called by it, in place of a future's. The supervisor is told, in case that it was not yet."""
        cell, supervisor, self.supervisor = self.cell, self.supervisor, None
        if cell is not None and supervisor is not None:
            ending = cell.ending
            with contextlib.suppress(ActorDeadError):
                supervisor.tell(Crashed(self, ending.error if isinstance(ending, Failed) else None))

    @property
    def address(self) -> Address:
        """Where it stands in the tree, behind those who have handed over to it."""
        return (*self.seat.address, *(AddressStep("agent", name) for name in self.names))
