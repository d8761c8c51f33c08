"""An agent's door to its run, as this package's own agents use it.

Owns: `AgentDoor`, which sends what an invocation wants to the supervisor of its run and waits for the answer. A user's agent holds an `AgentContext`, which
shows only what the contract names; `door_of` in `context` leads from there to here. It must never give an agent another one's state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from threading import get_ident
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar

from ..actor.actor import InnerActor
from ..actor.direct import OVER, deliver, hand
from ..codec.packing import pack
from ..data.agent_input import AgentInput
from ..data.chat import MessageDelta
from ..data.events import AgentEvent, TransferToAgent
from ..data.interrupt import AddressStep, InterruptContext, Pending
from ..data.outcome import AtOnce, Outcome
from ..data.run_path import Path
from ..errors import ActorDeadError, CheckpointError, UsageError
from .history import Lane
from .hooks import call_hooks
from .invocation import CastKey, Dialogue, Following, Invocation, InvocationPhase
from .run_context import RunContext
from .run_messages import Book, CancelCast, CancelChildren, Cast, CastReply, Emitted, EmittedNoWait, JoinLanes, ReachedSafePoint, StateChanged
from .tree import Definition, Node

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.host import Host
    from ..actor.loop_cell import LoopCell
    from ..clock import Clock
    from .options import Options

__all__ = ["ASKED_BEHIND", "AgentDoor"]

ASKED_BEHIND: Final = "asked behind"
"""The note of an agent that it waits for something behind its own transfer."""

# An agent that never waits for anything yields to the loop after so many events. A number, not a time: the order of events must not depend on the clock.
_STRETCH: Final = 32

_NOTHING: Final = AgentInput()

# Values of these types can always be stored.
_PLAIN: Final = frozenset((bool, int, float, str, bytes))

P = ParamSpec("P")
T = TypeVar("T")


class AgentDoor(InnerActor):
    """One invocation of an agent, and what it can do in its run. For the agents of this package only. It is that invocation's actor."""

    __slots__ = ("_at_once", "_book", "_casts", "_emitted", "_supervisor", "input", "invocation", "is_over", "last_cast", "run", "streaming", "system")

    def __init__(self, cell: Cell, invocation: Invocation, run: RunContext, supervisor: LoopCell, book: Book, streaming: bool) -> None:  # noqa: FBT001
        self._cell = cell
        cell.actor = self
        invocation.cell = cell
        self.invocation = invocation
        self._supervisor = supervisor
        self._book = book
        self.system: Host = cell.system
        self.run = run
        self.streaming = streaming
        self._emitted = 0
        self.is_over = False  # whether the run has ended under the agent
        self._casts: dict[str, int] | None = None  # how often the agent has cast each agent from each state
        self.input = _NOTHING  # the agent's input, once its history policy has made it
        self.last_cast: Outcome | None = None  # of the last cast, or of several casts at once; None again after each event
        self._at_once: AtOnce | None = None  # made with the first cast

    def __repr__(self) -> str:
        return f"<AgentDoor of {self.agent_name!r} in run {self.run.run_id}>"

    @property
    def agent_name(self) -> str:
        return self.invocation.node.name

    @property
    def clock(self) -> Clock:
        """By which all waits in this run."""
        return self.system.clock

    @property
    def node(self) -> Node:
        """The agent's place in its tree."""
        return self.invocation.node

    @property
    def state(self) -> dict[str, object]:
        """The invocation's own state, which belongs to the user."""
        invocation = self.invocation
        if invocation.state is None:
            invocation.state = {}
        return invocation.state

    @property
    def notes(self) -> dict[str, Any]:
        """What an agent of this package notes for itself, apart from the user's state."""
        if self.invocation.notes is None:
            self.invocation.notes = {}
        return self.invocation.notes

    def is_own_thread(self) -> bool:
        """Whether this is the thread of the loop on which the run lives."""
        return get_ident() == self.system.dispatcher.thread

    def is_alive(self) -> bool:
        """Whether the run has not ended."""
        return self._supervisor.mailbox.is_open

    @property
    def continues_elsewhere(self) -> bool:
        """Whether the agent ends here for another process to go on with it: what it has begun outside of this process is not to be ended then."""
        return self.run.continues_elsewhere or (self.run.lease is not None and self.system.closing)

    # --- events ---

    def noted(self, event: AgentEvent) -> AgentEvent | None:
        """Have an event recorded and shown, if nothing has to be waited for. Returns None, having done nothing, if that is not so: then it is emitted."""
        count = self._emitted + 1
        if count % _STRETCH == 0 or self.system.closing or not self._supervisor.is_idle():
            return None
        shown = self._book.note(self.invocation, event)
        if shown is not None:
            self._emitted, self.last_cast = count, None
        return shown

    async def emit(self, event: AgentEvent, is_last: bool = False) -> AgentEvent:  # noqa: FBT001, FBT002 -- for speed
        """Have an event recorded and shown, at once. The last one may have to wait for the report of the agent's end, which comes right behind it."""
        if (noted := self.noted(event)) is not None:
            return noted
        shown = hand(self._supervisor, Emitted(self.invocation, event, is_last))
        if type(shown) is CoroutineType:
            shown = await shown
        if shown is OVER:
            self._stop_here()
        self._emitted, self.last_cast = self._emitted + 1, None
        if self._emitted % _STRETCH == 0 and not is_last:
            await asyncio.sleep(0)
        stamped: AgentEvent = shown
        return stamped

    async def emit_delta(self, delta: MessageDelta) -> None:
        """Have a piece of a message shown, at once. Nothing is recorded of it, so in nearly all cases nothing has to be asked of the supervisor."""
        can = self._supervisor.is_idle() and not self.system.closing
        if not can or not self._book.show_delta(self.invocation, delta):
            await self.emit(AgentEvent(delta=delta))
            return
        self.last_cast, self._emitted = None, self._emitted + 1
        if self._emitted % _STRETCH == 0:
            await asyncio.sleep(0)

    def emit_soon(self, event: AgentEvent, shown: Callable[[], object]) -> None:
        """Have an event recorded and shown, without waiting for it; `shown` is called then. From any thread. After the run's end it does nothing."""
        with contextlib.suppress(ActorDeadError):
            self._supervisor.own_ref().tell(EmittedNoWait(self.invocation, event, shown))

    def note_interrupt(
        self, info: Any, state: object, tool: AddressStep | None = None, *, approval: bool = False, earlier: tuple[Any, ...] = ()
    ) -> InterruptContext:
        """Note that the agent, or a tool call of it, waits for an answer from outside."""
        if self.run.keeps:
            self.check_storable("interrupt(info=...)", info)
            self.check_storable("interrupt(state=...)", state)
        invocation = self.invocation
        context = invocation.interrupted(info, tool)
        if tool is None and invocation.transfer is not None:
            self.notes[ASKED_BEHIND] = True
        call_id = None if tool is None else tool.call_id
        invocation.pending = {**(invocation.pending or {}), context.id: Pending(context, call_id, state, approval, earlier)}
        return context

    def check_storable(self, what: str, value: object) -> None:
        """Raise `CheckpointError`, if the value cannot be stored in a checkpoint."""
        if value is None or type(value) in _PLAIN:
            return
        try:
            pack(value)
        except CheckpointError as error:
            msg = f"agent {self.agent_name!r}: {what} cannot be kept in a checkpoint: {error}"
            raise CheckpointError(msg, run=self.run.run_id, agent=self.agent_name) from error

    # --- other agents ---

    async def cast(self, agent: Definition, input: AgentInput | None) -> Outcome:  # noqa: A002 -- the contract's
        """Let an agent play as a child of this one."""
        invocation = self.invocation
        self._casts = {} if self._casts is None else self._casts
        cast_key = invocation.cast_key_of(agent, self._casts, keeps=self.run.keeps)
        outcome = await self.cast_node(invocation.node.node_of(agent), invocation.run_path, invocation.lane, cast_key, input=input)
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    async def cast_node(
        self,
        node: Node,
        base: Path,
        lane: Lane,
        cast_key: CastKey,
        *,
        input: AgentInput | None = None,  # noqa: A002 -- what it is
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> Outcome:
        """Let the agent of a node play, with a run path, a lane and a key that the caller chooses."""
        reply: asyncio.Future[Outcome] = self.system.loop.create_future()
        await self.begin_cast(node, base, lane, reply, cast_key, input=input, loop=loop, one_at_a_time=one_at_a_time)
        at_once = self._at_once = self._at_once or AtOnce()
        index, outcome = at_once.begin(), None
        try:
            outcome = await self._outcome_of(reply)
        finally:
            self.last_cast = at_once.end(index, outcome)
        return outcome

    async def begin_cast(
        self,
        node: Node,
        base: Path,
        lane: Lane,
        reply: CastReply,
        cast_key: CastKey,
        *,
        input: AgentInput | None = None,  # noqa: A002 -- what it is
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> None:
        """The same, without waiting for the end: `reply` is given the outcome."""
        await self._cast(Cast(self.invocation, node, reply, cast_key=cast_key, base=base, lane=lane, given=input, loop=loop, one_at_a_time=one_at_a_time))

    async def call_agent(self, node: Node, input: AgentInput, cast_key: CastKey, *, shown: bool, tool: AddressStep) -> Outcome:  # noqa: A002 -- what it is
        """Let an agent play in a conversation of its own, as a tool of this one."""
        reply: asyncio.Future[Outcome] = self.system.loop.create_future()
        invocation = self.invocation
        dialogue = Dialogue(input, shown and invocation.assignment.dialogue.shown, False)
        lane = Lane(None, f"{invocation.id}/{cast_key}")
        await self._cast(Cast(invocation, node, reply, cast_key=cast_key, base=invocation.run_path, lane=lane, dialogue=dialogue, tool=tool))
        return await self._outcome_of(reply)

    async def _cast(self, request: Cast) -> None:
        """Have an agent begin. A caller that is cancelled meanwhile gives it up, whether or not it has begun by then."""
        try:
            await self._ask(request)
        except asyncio.CancelledError:
            request.reply.cancel()
            with contextlib.suppress(ActorDeadError):
                self._supervisor.own_ref().tell(CancelCast(request.reply, self.system.loop.create_future()))
            raise

    async def _outcome_of(self, reply: asyncio.Future[Outcome]) -> Outcome:
        """Wait for an agent that was cast. If the caller is cancelled, the agent is ended with it."""
        try:
            return await reply
        except asyncio.CancelledError:
            if self.invocation.is_cancelled or self.system.closing:
                raise  # all under it is ended with it
            gone: asyncio.Future[object] = self.system.loop.create_future()
            if await deliver(self._supervisor, CancelCast(reply, gone)) is not OVER:
                await gone
            raise

    def hand_over(self, agent: Definition, input: AgentInput | None = None, asked: int | None = None) -> TransferToAgent:  # noqa: A002 -- what it is
        """Let an agent take over that may be outside of the tree. Returns the action for the event to yield, after which the generator returns.

        Its input is `input`, the first `asked` messages of which are what the run was asked; without one, this agent's own input and all that was said since,
        verbatim.
        """
        invocation = self.invocation
        node = invocation.node.follower(agent)
        invocation.following = invocation.going_on(node, self.input) if input is None else Following(node, input, None, asked=asked)
        return TransferToAgent(node.name)

    def lanes(self, count: int) -> list[Lane]:
        """A lane for each child. A resumed agent finds the same ones."""
        return self.invocation.lanes_for(count)

    async def join(self) -> None:
        """Put the lanes of children that have ended behind this agent's own."""
        await self._ask(JoinLanes(self.invocation))

    async def cancel_children(self) -> None:
        """End all that is under way below this agent."""
        await self._ask(CancelChildren(self.invocation))

    async def make_sure(self) -> None:
        """Return when this process certainly has the run, and has it for a while: before anything begins that cannot be taken back."""
        lease = self.run.lease
        if lease is not None and not lease.is_fresh():
            await lease.make_sure()

    # --- what is recorded ---

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this invocation: when it is started again, the result of the first time is returned."""
        invocation = self.invocation
        if invocation.steps is None:
            invocation.steps = {}
        if name not in invocation.steps:
            if not callable(make):
                msg = f"context.step({name!r}, ...): give a function that returns an awaitable, for example `lambda: fetch(url)`."
                raise UsageError(msg, run=self.run.run_id, agent=self.agent_name)
            await self.make_sure()
            made = await make()
            if self.run.keeps:
                self.check_storable(f"the result of step({name!r}, ...)", made)
            invocation.steps[name] = made
            if self.run.keeps:
                invocation.unnoted += (name,)
                await self._ask(StateChanged(invocation, name))
                invocation.unnoted = tuple(one for one in invocation.unnoted if one != name)
        result: T = invocation.steps[name]
        return result

    async def save(self) -> None:
        """Have what has changed in the agent's state recorded, before anything else happens."""
        if self.run.keeps:
            await self._ask(StateChanged(self.invocation))

    async def rest(self) -> None:
        """A call of the agent has ended and its result is recorded: a run that is to end, and waits only for agents of this one, can end now."""
        if self.run.stopping is not None and (self.invocation.playing or self.invocation.phase is InvocationPhase.PARKED):
            await self._ask(ReachedSafePoint(self.invocation))

    async def pause(self) -> NoReturn:
        """The agent has reached a safe point at which the run is to end: do not return."""
        await self._ask(ReachedSafePoint(self.invocation))
        await self.system.loop.create_future()
        raise AssertionError("that future is never set: the end of the run cancels what waits for it")

    # --- work ---

    @property
    def options(self) -> tuple[Options, ...]:
        """What is asked of this agent beside its input: what its definition has fixed, and what this run was given, which goes before it."""
        fixed = self.invocation.node.agent.fixed_options
        return (*fixed, *self.run.options) if fixed else self.run.options

    async def call_hooks(self, name: str, *args: Any, agent_name: str | None = None) -> None:
        """Call a hook of the run and of this agent, if there is one."""
        hooks, agent = self.run.hooks, self.invocation.node.agent
        if hooks or (agent.hooks is not None and not agent.calls_own_hooks):
            await call_hooks(hooks, None if agent.calls_own_hooks else agent.hooks, name, agent_name, self.run, *args)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in one of the system's worker threads."""
        name = f"{getattr(function, '__qualname__', None) or repr(function)} of agent {self.agent_name!r} in run {self.run.run_id}"
        return await self.system.run_named(partial(function, *args, **kwargs), name)

    async def run_tool(self, function: Callable[[], T], tool: str, began: Callable[[], object] | None) -> T:
        """The same for a call of a tool. `began` is called when a thread has begun it."""
        return await self.system.run_named(function, f"tool {tool} of agent {self.agent_name!r} in run {self.run.run_id}", began)

    async def at_once(self, works: Iterable[Coroutine[object, None, T]]) -> list[T]:
        """The results of all of them. Raises the first error; the others are cancelled, and have ended by then."""
        tasks = [self.create_task(work) for work in works]
        try:
            for task in asyncio.as_completed(tasks):
                await task
            return [task.result() for task in tasks]
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def create_task(self, coro: Coroutine[object, None, T]) -> asyncio.Task[T]:
        """A task that works for this invocation. The caller awaits it."""
        return asyncio.Task(coro, loop=self.system.loop)

    # --- asking the supervisor ---

    async def _ask(self, message: object) -> object:
        reply = await deliver(self._supervisor, message)
        if reply is OVER:
            self._stop_here()
        return reply

    def _stop_here(self) -> NoReturn:
        self.is_over = True
        raise asyncio.CancelledError("the run is over")
