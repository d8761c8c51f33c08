"""One invocation of an agent, as data: all that its actor starts from, and all that is known of it afterwards.

Owns: where the invocation stands (in the tree, in the history, in a chain of transfers), and its own small state. Starting, going on after a failure and
resuming differ in nothing but what is in here. It is written by the run supervisor, but for `state`, which is the agent's own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .chat import Message, new_id
from .definition import AgentInput, Node
from .history import Lane
from .interrupt import Address, AddressStep
from .outcome import Outcome

if TYPE_CHECKING:
    from .cell import Cell

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

    __slots__ = ("address", "broke", "future", "loop", "parent", "scope")

    def __init__(self, parent: Invocation | None, scope: Scope, address: Address, loop: int | None, future: asyncio.Future[Outcome] | None) -> None:
        self.parent = parent
        self.scope = scope
        self.address = address
        self.loop = loop  # the iteration of the nearest loop around it; None outside of any
        self.future = future  # of the outcome; None for the root of the run
        self.broke = False  # whether one of them has broken that loop


class Invocation:
    """One agent at work, once."""

    __slots__ = (
        "address",
        "broke",
        "cancelled",
        "cell",
        "ended",
        "given",
        "handed_over_by",
        "id",
        "lane",
        "last_message",
        "messages",
        "node",
        "notes",
        "outcome",
        "playing",
        "run_path",
        "saved",
        "seat",
        "since",
        "state",
        "steps",
        "transfer",
    )

    def __init__(self, node: Node, run_path: tuple[str, ...], lane: Lane, seat: Seat, given: AgentInput | None, handed_over_by: Node | None) -> None:
        self.id = new_id()
        self.node = node
        self.run_path = run_path
        self.lane = lane
        self.since = len(lane.entries)  # what the lane held when it began: its input is made from that
        self.seat = seat
        self.address: Address = (*seat.address, AddressStep("agent", node.name))
        self.given = given  # the input that it was given outright, if any
        self.handed_over_by = handed_over_by
        self.state: dict[str, Any] | None = None  # made when somebody looks
        self.saved: dict[str, Any] | None = None  # the state as of the last recorded step, where it may be started again
        self.notes: dict[str, Any] | None = None  # what the agents of this package note for themselves: the state is the user's
        self.steps: dict[str, Any] | None = None  # results of `context.step`
        self.messages: list[Message] = []  # what it has said so far, oldest first
        self.last_message: Message | None = None
        # What its recorded events say of its end.
        self.outcome: Outcome | None = None  # it has exited, failed or was interrupted
        self.transfer: str | None = None  # to whom it wants to hand over
        self.broke = False  # whether it has broken the loop around it
        self.cell: Cell | None = None  # its actor's, while it has not ended
        self.playing = 0  # how many seats it has filled that are not empty yet
        self.cancelled = False  # whether the supervisor has ended it
        self.ended: tuple[Outcome, str | None] | None = None  # what it has reported, while others that it has cast are still at work
