"""One invocation of an agent, as data: everything that its actor starts from, and its progress.

A fresh start, a restart after a failure and a resume differ only in this data. The run's supervisor
writes it, except `state`, which belongs to the agent. The only message sent from here reports that
the invocation's actor has ended.

Invocations and agent calls form a tree. An agent call belongs to the invocation that requested it,
and refers to the invocation that holds it now. An invocation without an actor is dormant: it was
interrupted, or was restored from storage. It continues when its agent call is requested again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import deepcopy
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast
from zlib import crc32

from ..actor.messages import Failed
from ..codec.packing import pack
from ..data.agent_input import AgentInput
from ..data.chat import Message, new_id
from ..data.checkpoint_id import new_interrupt_id
from ..data.interrupt import Address, AddressStep, Answer, Due, InterruptContext, Pending
from ..data.outcome import Outcome
from ..data.run_path import Path, extended, names_of
from ..errors import ActorDeadError, CheckpointError
from .history import Lane
from .input_range import InputRange
from .run_messages import CastReply, Crashed
from .tree import INNER, Node

if TYPE_CHECKING:
    from ..actor.cell import Cell

__all__ = [
    "AgentCall",
    "CastKey",
    "Conversation",
    "Following",
    "Invocation",
    "InvocationPhase",
    "walk",
]

CastKey: TypeAlias = int | str
"""Distinguishes the agent calls of one invocation: a position, or a name."""


class Following(NamedTuple):
    """The agent that takes over an agent call, and its input."""

    node: Node
    input: AgentInput
    verbatim_from: int | None
    verbatim_cache: tuple[tuple[Message, ...], int] | None = None
    asked: int | None = None


class InvocationPhase(Enum):
    """The phase of an invocation."""

    DORMANT = "dormant"
    """It has no actor: it has not started, waits for an answer, or was restored from storage.

    It continues when its agent call is requested.
    """
    AT_WORK = "at work"
    """Its actor is running."""
    PARKED = "parked"
    """Its actor waits at a safe point for the end of the run."""
    LEAVING = "leaving"
    """It has ended, but some of its children have not."""
    GONE = "gone"
    """It has ended, and so have its children."""


# Looking a member up in its class takes longer than a comparison.
_AT_WORK: Final = InvocationPhase.AT_WORK
_PARKED: Final = InvocationPhase.PARKED

# A copy of a table need not copy values of these types.
_PLAIN: Final = frozenset((type(None), bool, int, float, str, bytes))

_MOST_BEFORE: Final = 32
"""The number of earlier agents in a chain of handoffs that an interrupt lists.

The last ones are listed. The address has all of them.
"""


class Conversation:
    """A conversation: the run's own, or that of an agent called as a tool.

    Exits, transfers and breaks stay inside.
    """

    __slots__ = ("input", "last_message", "recorded", "shown")

    def __init__(self, opening: AgentInput, *, shown: bool, recorded: bool) -> None:
        self.input = opening
        self.last_message: Message | None = None  # of all its agents
        self.shown = shown  # True if the consumer sees its events
        self.recorded = recorded  # True if it is the run's own conversation


class AgentCall:
    """One request to run an agent.

    The requested agent holds it, then the agents that it transfers to. The caller receives the
    outcome of the last one.
    """

    __slots__ = (
        "broke",
        "cast_key",
        "conversation",
        "forgotten",
        "future",
        "holder",
        "loop",
        "names",
        "parent",
        "tool",
    )

    def __init__(
        self,
        parent: Invocation | None,
        cast_key: CastKey,
        conversation: Conversation,
        tool: AddressStep | None = None,
        loop: int | None = None,
        future: CastReply | None = None,
    ) -> None:
        self.parent = parent
        self.cast_key = cast_key
        self.conversation = conversation
        self.tool = tool  # the tool call, if the agent is called as a tool
        self.loop = loop  # iteration of the nearest enclosing loop; None outside of a loop
        self.future = future  # receives the outcome; None for the root of the run
        self.holder: Invocation | None = None
        self.names: Path = ()  # of all its holders, the current one last
        self.forgotten = False  # True once its caller has stopped waiting
        self.broke = False  # True once a holder has broken that loop

    @property
    def address(self) -> Address:
        """The agent call's place in the tree."""
        parent = self.parent
        if parent is None:
            return ()
        if self.tool is not None:
            return (*parent.address, self.tool)
        # A wrapper and the agent that it wraps share one address and one name.
        return parent.address[:-1] if self.cast_key == INNER else parent.address


class Invocation:
    """One invocation of an agent.

    Attributes that most invocations never need are class defaults, set when needed.
    """

    # --- its phase ---

    phase: InvocationPhase = InvocationPhase.DORMANT
    cell: Cell | None = None
    """The cell of its actor, while that runs."""
    supervisor: Cell | None = None
    """The cell of the run's supervisor, which is notified if the actor ends without a report."""
    busy: int = 0
    """The number of its running model and tool calls."""
    playing: int = 0
    """The number of its open agent calls."""
    is_cancelled: bool = False
    """True if the supervisor has ended it."""
    report: tuple[Outcome, str | None] | None = None
    """While it is leaving: its outcome, and the agent that it transfers to."""

    # --- its state ---

    state: dict[str, object] | None = None
    """The agent's own state; created on first access."""
    notes: dict[str, Any] | None = None
    """Notes of this library's own agents; the state is the user's."""
    saved: tuple[dict[str, object] | None, dict[str, object] | None] = (None, None)
    """State and notes as of its last step, if it may have to continue from there."""
    steps: dict[str, Any] | None = None
    """Results of `context.step`."""
    unnoted: tuple[str, ...] = ()
    """The names of steps that may be in no record yet."""
    last_message: Message | None = None
    agent_calls: dict[CastKey, AgentCall | Outcome] | None = None
    """Its agent calls, or their outcomes once known and possibly requested again."""
    lanes: list[Lane] | None = None
    """The lanes of its children, if each has one."""
    tree_path: tuple[str, ...] = ()
    """The place of its definition in the tree, until it is looked up."""
    following: Following | None = None
    """The agent that takes over from it, if the tree does not determine it."""

    # --- interrupts and answers ---

    pending: dict[str, Pending] | None = None
    """The interrupts that it waits for, by context id."""
    answers: dict[str | None, Answer] | None = None
    """The answers to them, by tool call id; None for the agent itself."""
    resumed: bool = False
    """True if it resumes after an interrupt, its own or one below it."""
    restored: bool = False
    """True if it was restored from storage."""

    # --- its end, from its recorded events ---

    outcome: Outcome | None = None
    """Set if it has exited, failed or been interrupted."""
    transfer: str | None = None
    """The name of the agent that it transfers to."""
    broke: bool = False
    """True if it has broken the enclosing loop."""

    def __init__(
        self,
        node: Node,
        run_path: Path,
        lane: Lane,
        agent_call: AgentCall,
        input_range: InputRange,
        *,
        handed_over_by: Node | None = None,
    ) -> None:
        self.id = new_id()
        self.node = node
        self.run_path = run_path
        self.lane = lane
        self.input_range = input_range
        self.handed_over_by = handed_over_by
        self.messages: list[Message] = []  # its own, oldest first
        self.agent_call = agent_call
        agent_call.holder = self
        names = agent_call.names
        agent_call.names = self.names = extended(names, node.name) if names else (node.name,)

    @classmethod
    def restore(
        cls,
        invocation_id: str,
        names: Path,
        tree_path: tuple[str, ...],
        run_path: Path,
        lane: Lane,
        agent_call: AgentCall,
        input_range: InputRange,
    ) -> Invocation:
        """Restore an invocation from storage.

        Its node is found by tree path before it continues.
        """
        made = cls.__new__(cls)
        made.id = invocation_id
        made.node = cast("Node", None)
        made.tree_path = tree_path
        made.run_path = run_path
        made.lane = lane
        made.input_range = input_range
        made.handed_over_by = None
        made.messages = [
            entry.message for entry in lane.entries if entry.invocation_id == invocation_id
        ]
        if made.messages:
            made.last_message = made.messages[-1]
        made.agent_call = agent_call
        agent_call.holder = made
        agent_call.names = made.names = names
        made.restored = True
        return made

    @property
    def is_at_work(self) -> bool:
        """True if it has an actor that has not reported its end."""
        return self.phase is _AT_WORK or self.phase is _PARKED

    @property
    def is_at_safe_point(self) -> bool:
        """True if the run may end here.

        It calls no model and no tool, and waits for the end of the run or for its children.
        """
        return not self.busy and (self.phase is _PARKED or self.playing > 0)

    def remember(self) -> None:
        """Save state and notes at this step, so that the invocation can continue from here."""
        if self.state is not None or self.notes is not None:
            try:
                self.saved = (_copy(self.state), _copy(self.notes))
            except Exception as error:
                name = names_of(self.names)[-1]
                msg = (
                    f"agent {name!r}: context.state must contain values that can be copied "
                    f"({type(error).__name__}: {error}). Store plain data in it."
                )
                raise CheckpointError(msg, agent=name) from error

    def lanes_for(self, count: int) -> list[Lane]:
        """Return a lane for each child. A resumed invocation finds the same lanes."""
        known = self.lanes or []
        self.lanes = [
            *known,
            *(Lane(self.lane, f"{self.id}/{index}") for index in range(len(known), count)),
        ]
        return self.lanes

    def cast_key_of(self, agent: object, casts: dict[str, int], *, keeps: bool) -> CastKey:
        """Return the key of an agent call: the agent, the state, and a count from `casts`."""
        agent_name = getattr(agent, "name", None)
        state = f"{crc32(pack(self.state)):x}" if keeps and self.state else ""
        name = f"cast:{agent if agent_name is None else agent_name}:{state}"
        count = casts[name] = casts.get(name, 0) + 1
        cast_key = f"{name}:{count}"
        if self.agent_calls and self.restored and cast_key not in self.agent_calls:
            # The state may differ from the first time; a child that was running continues anyway.
            for known, agent_call in self.agent_calls.items():
                if (
                    not isinstance(agent_call, Outcome)
                    and agent_call.future is None
                    and names_of(agent_call.names)[0] == agent_name
                ):
                    return known
        return cast_key

    def going_on(self, node: Node, given: AgentInput) -> Following:
        """Let the agent of `node` take over, with this one's input and everything said since."""
        input_range = self.input_range
        verbatim = (
            given.messages,
            input_range.since,
        )  # passed on, so that a long chain of agents does not rebuild it each time
        if (
            input_range.verbatim_from is not None
            and input_range.input is not None
            and input_range.retold_from is None
        ):
            return Following(
                node, input_range.input, input_range.verbatim_from, verbatim, input_range.asked
            )
        return Following(node, given, input_range.since, verbatim, input_range.asked)

    def on_actor_ended(self, _ended: object = None) -> None:
        """Report a crash unless the agent has reported its end. The actor calls this last."""
        cell, supervisor, self.supervisor = self.cell, self.supervisor, None
        if cell is not None and supervisor is not None:
            ending = cell.ending
            with contextlib.suppress(ActorDeadError):
                supervisor.own_ref().tell(
                    Crashed(self, ending.error if isinstance(ending, Failed) else None)
                )

    @property
    def address(self) -> Address:
        """Its place in the tree, after the agents that handed off to it."""
        return (*self.agent_call.address, *(AddressStep("agent", name) for name in self.names))

    def interrupted(
        self,
        info: Any,
        checkpoint_id: str | None,
        tool: AddressStep | None = None,
        due: Due | None = None,
    ) -> InterruptContext:
        """Return the context of an interrupt of this agent or its tool call, with its parents."""
        deadline, default = due or (None, None)
        if tool is not None:
            return InterruptContext(
                new_interrupt_id(checkpoint_id),
                (*self.address, tool),
                info,
                parent=self.as_enclosing(),
                deadline=deadline,
                default=default,
            )
        return InterruptContext(
            new_interrupt_id(checkpoint_id),
            self.address,
            info,
            parent=self._around(),
            deadline=deadline,
            default=default,
        )

    def as_enclosing(self) -> InterruptContext:
        """Return this agent as a link of that chain."""
        info = getattr(self.node.agent, "interrupt_info", None)
        parent = self.agent_call.parent
        if parent is not None and self.agent_call.cast_key == INNER and len(self.names) == 1:
            front = parent.as_enclosing()  # a wrapper has the same place, so the two are one link
            return front if info is None else front.replace(info=info)
        return InterruptContext(
            f"{self.id}-encloses", self.address, info, is_root_cause=False, parent=self._around()
        )

    def _around(self) -> InterruptContext | None:
        """Return the agents that handed off to it, and the context around the first of them."""
        agent_call, parent, first = self.agent_call, self.agent_call.parent, 1
        outer: InterruptContext | None = None
        if parent is not None and agent_call.tool is not None:
            call_id = agent_call.tool.call_id
            outer = InterruptContext(
                f"{parent.id}-{call_id}-encloses",
                agent_call.address,
                is_root_cause=False,
                parent=parent.as_enclosing(),
            )
        elif parent is not None and agent_call.cast_key == INNER:
            outer, first = (
                (parent.as_enclosing(), 2) if len(self.names) > 1 else (parent._around(), 1)
            )
        elif parent is not None:
            outer = parent.as_enclosing()
        for count in range(max(first, len(self.names) - _MOST_BEFORE), len(self.names)):
            outer = InterruptContext(
                f"{self.id}-encloses-{count}",
                self.address[: count - len(self.names)],
                is_root_cause=False,
                parent=outer,
            )
        return outer


def _copy(values: dict[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    for value in values.values():
        if type(value) not in _PLAIN:
            return deepcopy(values)
    return values.copy()


def walk(agent_call: AgentCall) -> Iterator[Invocation]:
    """Yield the holder of the agent call and all invocations below it, parents first."""
    invocation = agent_call.holder
    if invocation is not None:
        yield invocation
        for below in (invocation.agent_calls or {}).values():
            if isinstance(below, AgentCall):
                yield from walk(below)
