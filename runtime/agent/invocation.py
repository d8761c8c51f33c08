"""One invocation of an agent, as data: all that its actor starts from, and all that is known of it afterwards.

Owns: where the invocation stands (in the tree, in the history, in a chain of transfers), and its own small state. Starting, going on after a failure and
resuming differ in nothing but what is in here. It is written by the run supervisor, but for `state`, which is the agent's own.

Invocations and seats form a tree: a seat belongs to the invocation that has cast it, and holds the one that has it now. An invocation in a seat that has no
actor is dormant: it was interrupted, or comes from bytes. When its seat is cast again it goes on.
"""

from __future__ import annotations

import contextlib
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from ..actor.messages import Failed
from ..data.agent_input import AgentInput
from ..data.chat import Message, new_id
from ..data.interrupt import Address, AddressStep, Answer, InterruptContext, Pending
from ..data.outcome import Outcome
from ..errors import ActorDeadError, CheckpointError
from .history import Lane
from .run_messages import CastReply, Crashed
from .tree import INNER, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..actor.cell import Cell
    from ..actor.ref import ActorRef

__all__ = ["Assignment", "CastKey", "Dialogue", "Following", "Invocation", "walk"]

CastKey: TypeAlias = int | str
"""By what an invocation tells apart those that it casts: its position, or a name."""


class Following(NamedTuple):
    """Who takes over a seat, and what he is given."""

    node: Node
    given: AgentInput
    told_from: int | None
    told: tuple[tuple[Message, ...], int] | None = None


class Dialogue:
    """A conversation: the run's own, or that of an agent which is called as a tool. Exits, transfers and breaks stay inside."""

    __slots__ = ("input", "last_message", "recorded", "shown")

    def __init__(self, given: AgentInput, *, shown: bool, recorded: bool) -> None:
        self.input = given
        self.last_message: Message | None = None  # the last that was said in it, by whomever
        self.shown = shown  # whether the consumer sees what happens in it
        self.recorded = recorded  # whether it is the run's own


class Assignment:
    """The place of one agent, which those take over to whom it hands over: whoever cast the first hears of the last."""

    __slots__ = ("broke", "cast_key", "dialogue", "forgotten", "future", "holder", "loop", "names", "parent", "tool")

    def __init__(
        self, parent: Invocation | None, cast_key: CastKey, dialogue: Dialogue, tool: AddressStep | None, loop: int | None, future: CastReply | None
    ) -> None:
        self.parent = parent
        self.cast_key = cast_key
        self.holder: Invocation | None = None  # whose it is now
        self.forgotten = False  # whether its caster does not wait for it any more
        self.dialogue = dialogue
        self.tool = tool  # the call that it belongs to, if the agent is called as a tool
        self.loop = loop  # the iteration of the nearest loop around it; None outside of any
        self.future = future  # where the outcome goes; None for the root of the run
        self.names: tuple[str, ...] = ()  # of those who have had it, the last one last
        self.broke = False  # whether one of them has broken that loop

    @property
    def address(self) -> Address:
        """Where it stands in the tree."""
        parent = self.parent
        if parent is None:
            return ()
        if self.tool is not None:
            return (*parent.address, self.tool)
        # What somebody stands in front of has the same place, and the same name.
        return parent.address[:-1] if self.cast_key == INNER else parent.address


class Invocation:
    """One agent at work, once. What most invocations never have stands in the class: it is set when it comes to be."""

    cell: Cell | None = None
    """Its actor's, while it has not ended."""
    supervisor: ActorRef[Any] | None = None
    """Who hears of that end."""
    state: dict[str, Any] | None = None
    """The agent's own; made when somebody looks."""
    notes: dict[str, Any] | None = None
    """What the agents of this package note for themselves: the state is the user's."""
    saved: tuple[dict[str, Any] | None, dict[str, Any] | None] = (None, None)
    """State and notes as of its last step, where it may have to go on from there."""
    steps: dict[str, Any] | None = None
    """Results of `context.step`."""
    unnoted: tuple[str, ...] = ()
    """Those of them that may be in no record yet, by their names."""
    last_message: Message | None = None
    assignments: dict[CastKey, Assignment | Outcome] | None = None
    """Those that it has cast, and how those have ended that it may ask for again."""
    lanes: list[Lane] | None = None
    """Of its children, if each has its own."""
    pending: dict[str, Pending] | None = None
    """What it waits for from outside, by the ids of the contexts."""
    answers: dict[str | None, Answer] | None = None
    """What has come from outside: by the ids of tool calls, None for the agent itself."""
    resumed: bool = False
    """Whether it goes on after an interrupt, its own or that of somebody below."""
    restored: bool = False
    """Whether it comes from bytes."""
    tree_path: tuple[str, ...] = ()
    """Where its definition stands, as long as that is not known."""
    told_from: int | None = None
    """Where in its lane that begins which it is given as it was said, behind what it was given outright; None if there is nothing of the kind."""
    retold_from: int | None = None
    """Where in its lane that begins which it is given retold, behind all that, because somebody has transferred to it who was handed over to."""
    told: tuple[tuple[Message, ...], int] | None = None
    """What that comes to with what it was given, and how far in its lane: if whoever handed over knows it. It need not be kept."""
    following: Following | None = None
    """Who takes over, if that is not for the tree to say."""
    parked: bool = False
    """Whether it has come to a safe point, and waits there for the end of the run."""
    busy: int = 0
    """How many calls of models and tools are under way in it."""

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

    def __init__(
        self, node: Node, run_path: tuple[str, ...], lane: Lane, assignment: Assignment, given: AgentInput | None, handed_over_by: Node | None
    ) -> None:
        self.id = new_id()
        self.node = node
        assignment.holder = self
        self.run_path = run_path
        self.lane = lane
        self.since = len(lane.entries)  # what the lane held when it began: its input is made from that
        self.assignment = assignment
        assignment.names = self.names = (*assignment.names, node.name)
        self.given = given  # the input that it was given outright, if any
        self.handed_over_by = handed_over_by
        self.messages: list[Message] = []  # what it has said so far, oldest first

    @classmethod
    def restore(cls, invocation_id: str, name: str, tree_path: tuple[str, ...], run_path: tuple[str, ...], lane: Lane, assignment: Assignment) -> Invocation:
        """One that comes from bytes. Its node is looked up by its place before it goes on."""
        made = cls.__new__(cls)
        made.id = invocation_id
        made.node = cast("Node", None)
        made.tree_path = tree_path
        made.run_path = run_path
        made.lane = lane
        made.since = 0
        made.assignment = assignment
        assignment.holder = made
        assignment.names = made.names = (*assignment.names, name)
        made.given = None
        made.handed_over_by = None
        made.messages = [entry.message for entry in lane.entries if entry.invocation_id == invocation_id]
        if made.messages:
            made.last_message = made.messages[-1]
        made.restored = True
        return made

    def remember(self) -> None:
        """It is at a step: from here it goes on, whatever it does before its next one."""
        if self.state is not None or self.notes is not None:
            try:
                self.saved = (deepcopy(self.state), deepcopy(self.notes))
            except Exception as error:
                msg = f"agent {self.names[-1]!r}: what is in context.state cannot be copied ({type(error).__name__}: {error}): keep plain data in it."
                raise CheckpointError(msg, agent=self.names[-1]) from error

    def on_actor_ended(self, _ended: object = None) -> None:
        """Its actor has ended, as the very last: called by it, in place of a future's. The supervisor is told, in case that it was not yet."""
        cell, supervisor, self.supervisor = self.cell, self.supervisor, None
        if cell is not None and supervisor is not None:
            ending = cell.ending
            with contextlib.suppress(ActorDeadError):
                supervisor.tell(Crashed(self, ending.error if isinstance(ending, Failed) else None))

    @property
    def address(self) -> Address:
        """Where it stands in the tree, behind those who have handed over to it."""
        return (*self.assignment.address, *(AddressStep("agent", name) for name in self.names))

    def interrupted(self, info: Any, tool: AddressStep | None = None) -> InterruptContext:
        """What it, or a tool call of it, waits for: with all that encloses it."""
        if tool is not None:
            return InterruptContext(new_id(), (*self.address, tool), info, parent=self._enclosing())
        parent = self.assignment.parent
        return InterruptContext(new_id(), self.address, info, parent=None if parent is None else parent._enclosing())

    def _enclosing(self) -> InterruptContext:
        """This agent, as one that encloses another which was interrupted."""
        parent = self.assignment.parent
        if parent is not None and self.assignment.cast_key == INNER:
            return parent._enclosing()
        outer = None if parent is None else parent._enclosing()
        return InterruptContext(f"{self.id}-encloses", self.address, getattr(self.node.agent, "interrupt_info", None), is_root_cause=False, parent=outer)


def walk(assignment: Assignment) -> Iterator[Invocation]:
    """The invocation in that seat, if there is one, and all that are below it: those above first."""
    invocation = assignment.holder
    if invocation is not None:
        yield invocation
        for below in (invocation.assignments or {}).values():
            if isinstance(below, Assignment):
                yield from walk(below)
