"""One invocation of an agent, as data: all that its actor starts from, and all that is known of it afterwards.

Owns: where the invocation is (in the tree, in the history, in a chain of transfers, in its life), and its own small state. A fresh start, a restart after a
failure and a resume differ in nothing but this data. The run's supervisor writes it, but for `state`, which is the agent's own. It must never send anything
but the report that its actor has ended.

Invocations and assignments form a tree: an assignment belongs to the invocation that has cast it, and knows the invocation that holds it now. An invocation
without an actor is dormant: it was interrupted, or comes from bytes. It continues when its assignment is cast again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from zlib import crc32

from ..actor.messages import Failed
from ..codec.packing import pack
from ..data.agent_input import AgentInput
from ..data.chat import Message, new_id
from ..data.interrupt import Address, AddressStep, Answer, InterruptContext, Pending
from ..data.outcome import Outcome
from ..data.run_path import Path, extended, names_of
from ..errors import ActorDeadError, CheckpointError
from .history import Lane
from .input_window import InputWindow
from .run_messages import CastReply, Crashed
from .tree import INNER, Node

if TYPE_CHECKING:
    from ..actor.cell import Cell

__all__ = ["Assignment", "CastKey", "Dialogue", "Following", "Invocation", "InvocationPhase", "walk"]

CastKey: TypeAlias = int | str
"""Tells apart what one invocation casts: a position, or a name."""


class Following(NamedTuple):
    """The agent that takes over an assignment, and what it is given."""

    node: Node
    input: AgentInput
    verbatim_from: int | None
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None
    asked: int | None = None


class InvocationPhase(Enum):
    """Where an invocation is in its life."""

    DORMANT = "dormant"
    """It has no actor: it has not begun, waits for an answer, or comes from bytes. When its assignment is cast, it goes on."""
    AT_WORK = "at work"
    """Its actor performs."""
    PARKED = "parked"
    """Its actor waits at a safe point for the end of the run."""
    LEAVING = "leaving"
    """It has ended, and agents that it has cast have not."""
    GONE = "gone"
    """It has ended, and so have those."""


_AT_WORK: Final = InvocationPhase.AT_WORK  # a member is looked up by a name of its class, which takes longer than a comparison
_PARKED: Final = InvocationPhase.PARKED

# What a copy of a table need not copy.
_PLAIN: Final = frozenset((type(None), bool, int, float, str, bytes))

_MOST_BEFORE: Final = 32
"""How many of the agents that have handed over one to the next are links of an interrupt's chain: the last ones. The address has all of them."""


class Dialogue:
    """A conversation: the run's own, or that of an agent which is called as a tool. Exits, transfers and breaks stay inside."""

    __slots__ = ("input", "last_message", "recorded", "shown")

    def __init__(self, opening: AgentInput, shown: bool, recorded: bool) -> None:  # noqa: FBT001 -- for speed
        self.input = opening
        self.last_message: Message | None = None  # of all its agents
        self.shown = shown  # whether the consumer sees what happens in it
        self.recorded = recorded  # whether it is the run's own


class Assignment:
    """What one cast asks for. The agent that was cast holds it, then those to which it transfers; the caster hears of the last one's end."""

    __slots__ = ("broke", "cast_key", "dialogue", "forgotten", "future", "holder", "loop", "names", "parent", "tool")

    def __init__(
        self,
        parent: Invocation | None,
        cast_key: CastKey,
        dialogue: Dialogue,
        tool: AddressStep | None = None,
        loop: int | None = None,
        future: CastReply | None = None,
    ) -> None:
        self.parent = parent
        self.cast_key = cast_key
        self.dialogue = dialogue
        self.tool = tool  # the call that it belongs to, if the agent is called as a tool
        self.loop = loop  # the iteration of the nearest loop around it; None outside of any
        self.future = future  # where the outcome goes; None for the root of the run
        self.holder: Invocation | None = None
        self.names: Path = ()  # of all its holders, the present one last
        self.forgotten = False  # whether its caster has stopped waiting for it
        self.broke = False  # whether one of its holders has broken that loop

    @property
    def address(self) -> Address:
        """Where it is in the tree."""
        parent = self.parent
        if parent is None:
            return ()
        if self.tool is not None:
            return (*parent.address, self.tool)
        # A wrapper and the agent that it wraps have one address, and one name.
        return parent.address[:-1] if self.cast_key == INNER else parent.address


class Invocation:
    """One agent at work, once. What most invocations never have is a default of the class, and set when it is needed."""

    # --- its life ---

    phase: InvocationPhase = InvocationPhase.DORMANT
    cell: Cell | None = None
    """Its actor's, while it is at work."""
    supervisor: Cell | None = None
    """Its actor's. Hears of its actor's end, if the agent has not reported its own before."""
    busy: int = 0
    """How many calls of models and tools are under way in it."""
    playing: int = 0
    """How many assignments it has cast that are not closed yet."""
    is_cancelled: bool = False
    """Whether the supervisor has ended it."""
    report: tuple[Outcome, str | None] | None = None
    """What it has reported, while it is leaving: its outcome, and the name of the agent to which it transfers."""

    # --- its state ---

    state: dict[str, object] | None = None
    """The agent's own; made when it is first read."""
    notes: dict[str, Any] | None = None
    """What the agents of this package note for themselves: the state is the user's."""
    saved: tuple[dict[str, object] | None, dict[str, object] | None] = (None, None)
    """State and notes as of its last step, if it may have to continue from there."""
    steps: dict[str, Any] | None = None
    """Results of `context.step`."""
    unnoted: tuple[str, ...] = ()
    """The names of those that may be in no record yet."""
    last_message: Message | None = None
    assignments: dict[CastKey, Assignment | Outcome] | None = None
    """What it has cast; the outcome, where that is known and may be asked for again."""
    lanes: list[Lane] | None = None
    """Of its children, if each has its own."""
    tree_path: tuple[str, ...] = ()
    """Where its definition is in the tree, until that is looked up."""
    following: Following | None = None
    """The agent that takes over from it, if the tree does not say so."""

    # --- waiting, and what was answered ---

    pending: dict[str, Pending] | None = None
    """What it waits for from outside, by the ids of the contexts."""
    answers: dict[str | None, Answer] | None = None
    """What has come from outside: by the ids of tool calls, None for the agent itself."""
    resumed: bool = False
    """Whether it continues after an interrupt, its own or one below it."""
    restored: bool = False
    """Whether it comes from bytes."""

    # --- what its recorded events say of its end ---

    outcome: Outcome | None = None
    """It has exited, failed or was interrupted."""
    transfer: str | None = None
    """The name of the agent to which it transfers."""
    broke: bool = False
    """Whether it has broken the loop around it."""

    def __init__(self, node: Node, run_path: Path, lane: Lane, assignment: Assignment, window: InputWindow, *, handed_over_by: Node | None = None) -> None:
        self.id = new_id()
        self.node = node
        self.run_path = run_path
        self.lane = lane
        self.window = window
        self.handed_over_by = handed_over_by
        self.messages: list[Message] = []  # its own, oldest first
        self.assignment = assignment
        assignment.holder = self
        names = assignment.names
        assignment.names = self.names = extended(names, node.name) if names else (node.name,)

    @classmethod
    def restore(
        cls,
        invocation_id: str,
        names: Path,
        tree_path: tuple[str, ...],
        run_path: Path,
        lane: Lane,
        assignment: Assignment,
        window: InputWindow,
    ) -> Invocation:
        """One that comes from bytes. Its node is looked up by its tree path before it continues."""
        made = cls.__new__(cls)
        made.id = invocation_id
        made.node = cast("Node", None)
        made.tree_path = tree_path
        made.run_path = run_path
        made.lane = lane
        made.window = window
        made.handed_over_by = None
        made.messages = [entry.message for entry in lane.entries if entry.invocation_id == invocation_id]
        if made.messages:
            made.last_message = made.messages[-1]
        made.assignment = assignment
        assignment.holder = made
        assignment.names = made.names = names
        made.restored = True
        return made

    @property
    def is_at_work(self) -> bool:
        """Whether it has an actor that has not reported its end."""
        return self.phase is _AT_WORK or self.phase is _PARKED

    @property
    def is_at_safe_point(self) -> bool:
        """Whether the run may end here: it calls no model and no tool, and waits for that end or for agents that it has cast."""
        return not self.busy and (self.phase is _PARKED or self.playing > 0)

    def remember(self) -> None:
        """Keep state and notes as of this step: if it has to continue before its next one, it does so from here."""
        if self.state is not None or self.notes is not None:
            try:
                self.saved = (_copy(self.state), _copy(self.notes))
            except Exception as error:
                name = names_of(self.names)[-1]
                msg = f"agent {name!r}: what is in context.state cannot be copied ({type(error).__name__}: {error}): keep plain data in it."
                raise CheckpointError(msg, agent=name) from error

    def lanes_for(self, count: int) -> list[Lane]:
        """A lane for each child. One that is resumed finds the same ones."""
        known = self.lanes or []
        self.lanes = [*known, *(Lane(self.lane, f"{self.id}/{index}") for index in range(len(known), count))]
        return self.lanes

    def cast_key_of(self, agent: object, casts: dict[str, int], *, keeps: bool) -> CastKey:
        """The key of a cast: the agent, the state from which it is cast, and how often that was so before, by `casts`."""
        agent_name = getattr(agent, "name", None)
        state = f"{crc32(pack(self.state)):x}" if keeps and self.state else ""
        name = f"cast:{agent if agent_name is None else agent_name}:{state}"
        count = casts[name] = casts.get(name, 0) + 1
        cast_key = f"{name}:{count}"
        if self.assignments and self.restored and cast_key not in self.assignments:
            # The state may differ from that of the first time: a child that was at work continues all the same.
            for known, assignment in self.assignments.items():
                if not isinstance(assignment, Outcome) and assignment.future is None and names_of(assignment.names)[0] == agent_name:
                    return known
        return cast_key

    def going_on(self, node: Node, given: AgentInput) -> Following:
        """That agent takes over from it, and is given what this one was given, and all that was said since."""
        window = self.window
        verbatim = (given.messages, window.since)  # passed on, so that a long line of agents does not put it together again each time
        if window.verbatim_from is not None and window.input is not None and window.retold_from is None:
            return Following(node, window.input, window.verbatim_from, verbatim, window.asked)
        return Following(node, given, window.since, verbatim, window.asked)

    def on_actor_ended(self, _ended: object = None) -> None:
        """Its actor calls this as the very last. If the agent has not reported its end, the supervisor hears of it here."""
        cell, supervisor, self.supervisor = self.cell, self.supervisor, None
        if cell is not None and supervisor is not None:
            ending = cell.ending
            with contextlib.suppress(ActorDeadError):
                supervisor.own_ref().tell(Crashed(self, ending.error if isinstance(ending, Failed) else None))

    @property
    def address(self) -> Address:
        """Where it is in the tree, after the agents that have handed over to it."""
        return (*self.assignment.address, *(AddressStep("agent", name) for name in self.names))

    def interrupted(self, info: Any, tool: AddressStep | None = None) -> InterruptContext:
        """What it, or a tool call of its own, waits for, with the chain of all that is around it."""
        if tool is not None:
            return InterruptContext(new_id(), (*self.address, tool), info, parent=self.as_enclosing())
        return InterruptContext(new_id(), self.address, info, parent=self._around())

    def as_enclosing(self) -> InterruptContext:
        """This agent as a link of that chain."""
        info = getattr(self.node.agent, "interrupt_info", None)
        parent = self.assignment.parent
        if parent is not None and self.assignment.cast_key == INNER and len(self.names) == 1:
            front = parent.as_enclosing()  # what stands in front of it has the same place, and they are one link
            return front if info is None else replace(front, info=info)
        return InterruptContext(f"{self.id}-encloses", self.address, info, is_root_cause=False, parent=self._around())

    def _around(self) -> InterruptContext | None:
        """The agents that have handed over to it, and what encloses the first of them."""
        assignment, parent, first = self.assignment, self.assignment.parent, 1
        outer: InterruptContext | None = None
        if parent is not None and assignment.tool is not None:
            call_id = assignment.tool.call_id
            outer = InterruptContext(f"{parent.id}-{call_id}-encloses", assignment.address, is_root_cause=False, parent=parent.as_enclosing())
        elif parent is not None and assignment.cast_key == INNER:
            outer, first = (parent.as_enclosing(), 2) if len(self.names) > 1 else (parent._around(), 1)
        elif parent is not None:
            outer = parent.as_enclosing()
        for count in range(max(first, len(self.names) - _MOST_BEFORE), len(self.names)):
            outer = InterruptContext(f"{self.id}-encloses-{count}", self.address[: count - len(self.names)], is_root_cause=False, parent=outer)
        return outer


def _copy(values: dict[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    for value in values.values():
        if type(value) not in _PLAIN:
            return deepcopy(values)
    return values.copy()


def walk(assignment: Assignment) -> Iterator[Invocation]:
    """The holder of that assignment, if there is one, and all invocations below it, parents first."""
    invocation = assignment.holder
    if invocation is not None:
        yield invocation
        for below in (invocation.assignments or {}).values():
            if isinstance(below, Assignment):
                yield from walk(below)
