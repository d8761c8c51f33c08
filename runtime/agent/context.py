"""What an agent's `run` is given beside its input.

Owns: `AgentContext`, the one door from a definition to the run that it plays in. It must never give an agent another one's state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar, cast
from zlib import crc32

from ..actor.direct import OVER, deliver
from ..codec.packing import pack
from ..data.agent_input import AgentInput
from ..data.events import AgentEvent, Interrupted, TransferToAgent
from ..data.interrupt import AddressStep, InterruptContext, Pending
from ..data.outcome import AtOnce, Outcome
from ..errors import ActorDeadError, CheckpointError, UsageError
from .history import Lane
from .hooks import call_hooks
from .invocation import CastKey, Dialogue, Following, Invocation, InvocationPhase
from .options import agent_options
from .run_context import RunContext
from .run_messages import CancelCast, CancelChildren, Cast, CastReply, Emitted, EmittedNoWait, JoinLanes, ReachedSafePoint, StateChanged
from .session_values import SessionValues

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..actor.ref import ActorRef

__all__ = ["ASKED_BEHIND", "AgentContext", "ResumeInfo"]

ASKED_BEHIND: Final = "asked behind"
"""Where an agent notes that it waits for something behind its own transfer."""

# Events after which an agent that never waits for anything lets others have their turn. A number, not a time: the order of events must not depend on the clock.
_STRETCH: Final = 32

_NOTHING: Final = AgentInput()

# What can be kept in any case.
_PLAIN: Final = frozenset((bool, int, float, str, bytes))

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResumeInfo:
    """What an agent that was interrupted gets to know when it goes on."""

    was_interrupted: bool = True
    is_target: bool = False
    data: Any = None
    state: Any = None
    streaming: bool = False


class AgentContext:
    """One invocation of an agent, from the agent's side."""

    __slots__ = ("_at_once", "_casts", "_emitted", "_invocation", "_supervisor", "_system", "given", "is_over", "last_cast", "resume", "run", "streaming")

    def __init__(self, invocation: Invocation, run: RunContext, supervisor: ActorRef[Any], system: Host, *, streaming: bool) -> None:
        self._invocation = invocation
        self._supervisor = supervisor
        self._system = system
        self.run = run
        self.streaming = streaming
        self._emitted = 0
        self.is_over = False  # whether the run has ended under it
        self._casts: dict[str, int] | None = None  # how often the agent has cast whom, from which state
        self.given = _NOTHING  # what the agent was given
        self.resume: ResumeInfo | None = None  # set, if the agent goes on after an interrupt of its own or of one that it has cast
        self.last_cast: Outcome | None = None  # of the child that was cast last, or of several that were cast at once, if nothing was emitted since
        self._at_once: AtOnce | None = None  # made with the first cast

    def __repr__(self) -> str:
        return f"<AgentContext of {self._invocation.node.name!r} in run {self.run.run_id}>"

    # --- what it belongs to ---

    @property
    def session(self) -> SessionValues:
        """The values that all agents of the run share."""
        return self.run.session

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def session_id(self) -> str | None:
        return self.run.session_id

    @property
    def invocation_id(self) -> str:
        return self._invocation.id

    @property
    def run_path(self) -> tuple[str, ...]:
        return self._invocation.run_path

    @property
    def agent_name(self) -> str:
        return self._invocation.node.name

    @property
    def options(self) -> Mapping[str, Any]:
        """The options that were given to this run for this agent."""
        return agent_options(self.run.options, self._invocation.node.name)

    @property
    def state(self) -> dict[str, Any]:
        """This invocation's own state. What msgpack can hold: it is in the checkpoint."""
        invocation = self._invocation
        if invocation.state is None:
            invocation.state = {}
        return invocation.state

    # --- what it can do ---

    def interrupt(self, info: Any = None, *, state: Any = None) -> AgentEvent:
        """The event to yield, after which the generator returns: the run waits here for something from outside."""
        context = self.interrupted(info, state)
        return AgentEvent.of(action=Interrupted((context,)))

    def interrupted(self, info: Any, state: Any, tool: AddressStep | None = None, *, approval: bool = False, earlier: tuple[Any, ...] = ()) -> InterruptContext:
        """Note that the agent, or a tool call of it, waits; and for what."""
        if self.run.keeps:
            for name, value in (("info", info), ("state", state)):
                self._check_kept(f"interrupt({name}=...)", value)
        invocation = self._invocation
        context = invocation.interrupted(info, tool)
        if tool is None and invocation.transfer is not None:
            self.notes[ASKED_BEHIND] = True
        call_id = None if tool is None else tool.call_id
        invocation.pending = {**(invocation.pending or {}), context.id: Pending(context, call_id, state, approval, earlier)}
        return context

    def _check_kept(self, what: str, value: Any) -> None:
        if value is None or type(value) in _PLAIN:
            return
        try:
            pack(value)
        except CheckpointError as error:
            msg = f"agent {self.agent_name!r}: {what} cannot be kept in a checkpoint: {error}"
            raise CheckpointError(msg, run=self.run_id, agent=self.agent_name) from error

    async def cast(self, agent: Any, input: AgentInput | None = None) -> Outcome:  # noqa: A002 -- the contract's
        """Let another agent play, as a child of this one. Its events join the run's. Returns how it ended.

        Without `input` it is given what its history policy says. If this agent ends without having done anything after it, it ends the same way; of several
        that were cast at once, as the weightiest: one that was interrupted before one that has failed.
        When the run goes on after an interrupt or a crash, a child that had ended is not run again, as long as `state` is the same as when it was cast.
        """
        invocation = self._invocation
        cast_key = self._cast_key_of(agent)
        outcome = await self.cast_node(invocation.node.node_of(agent), invocation.run_path, invocation.lane, cast_key, given=input)
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    def hand_over(self, agent: Any, given: AgentInput | None = None) -> TransferToAgent:
        """Let an agent take over that need not stand in the tree. Returns the action for the event to yield, after which the generator returns.

        It is given `given`; without that, all that this agent was given and all that was said since, as it was said.
        """
        invocation = self._invocation
        node = invocation.node.follower(agent)
        if given is not None:
            following = Following(node, given, None)
        else:
            window = invocation.window
            together = (self.given.messages, window.since)  # so that a long line of agents does not put it together from the beginning each time
            if window.verbatim_from is not None and window.input is not None and window.retold_from is None:
                following = Following(node, window.input, window.verbatim_from, together)
            else:
                following = Following(node, self.given, window.since, together)
        invocation.following = following
        return TransferToAgent(node.name)

    def _cast_key_of(self, agent: Any) -> CastKey:
        """What tells this cast from the others: whom, from which state, and how often that was so before."""
        invocation = self._invocation
        state = f"{crc32(pack(invocation.state)):x}" if self.run.keeps and invocation.state else ""
        name = f"cast:{getattr(agent, 'name', agent)}:{state}"
        if self._casts is None:
            self._casts = {}
        count = self._casts[name] = self._casts.get(name, 0) + 1
        cast_key = f"{name}:{count}"
        assignments = invocation.assignments
        if assignments and cast_key not in assignments:
            # The state may have changed on the way here: one that was at work goes on all the same.
            for known, assignment in assignments.items():
                if not isinstance(assignment, Outcome) and assignment.future is None and assignment.names[0] == getattr(agent, "name", None):
                    return known
        return cast_key

    async def cast_node(
        self,
        node: Any,
        base: tuple[str, ...],
        lane: Lane,
        cast_key: CastKey,
        *,
        given: AgentInput | None = None,
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> Outcome:
        """The same for workflows, which say where in the run path and in which lane, and in which place of their own."""
        reply: asyncio.Future[Outcome] = self._system.loop.create_future()
        await self.begin_cast(node, base, lane, reply, cast_key, given=given, loop=loop, one_at_a_time=one_at_a_time)
        at_once = self._at_once = self._at_once or AtOnce()
        index, outcome = at_once.begin(), None
        try:
            outcome = await self._outcome_of(reply)
        finally:
            self.last_cast = at_once.end(index, outcome)
        return outcome

    async def _outcome_of(self, reply: asyncio.Future[Outcome]) -> Outcome:
        """Wait for an agent that was cast. Whoever stops waiting takes it along: it does not go on behind the back of its caster."""
        try:
            return await reply
        except asyncio.CancelledError:
            if self._invocation.is_cancelled or self._system.closing:
                raise  # all under it is ended with it
            gone: asyncio.Future[Any] = self._system.loop.create_future()
            if await deliver(self._supervisor, CancelCast(reply, gone)) is not OVER:
                await gone
            raise

    async def begin_cast(
        self,
        node: Any,
        base: tuple[str, ...],
        lane: Lane,
        reply: CastReply,
        cast_key: CastKey,
        *,
        given: AgentInput | None = None,
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> None:
        """The same, without waiting for the end: `reply` is given the outcome."""
        await self._cast(Cast(self._invocation, node, reply, cast_key=cast_key, base=base, lane=lane, given=given, loop=loop, one_at_a_time=one_at_a_time))

    async def _cast(self, request: Cast) -> None:
        """Have an agent begin. Whoever is cancelled meanwhile has given it up, whether or not it has begun by then."""
        try:
            await self._ask(request)
        except asyncio.CancelledError:
            request.reply.cancel()
            with contextlib.suppress(ActorDeadError):
                self._supervisor.tell(CancelCast(request.reply, self._system.loop.create_future()))
            raise

    async def call_agent(self, node: Any, given: AgentInput, cast_key: CastKey, *, shown: bool, tool: AddressStep) -> Outcome:
        """Let an agent play in a conversation of its own, as a tool of this one."""
        reply: asyncio.Future[Outcome] = self._system.loop.create_future()
        invocation = self._invocation
        dialogue = Dialogue(given, shown=shown and invocation.assignment.dialogue.shown, recorded=False)
        lane = Lane(None, f"{invocation.id}/{cast_key}")
        await self._cast(Cast(invocation, node, reply, cast_key=cast_key, base=invocation.run_path, lane=lane, dialogue=dialogue, tool=tool))
        return await self._outcome_of(reply)

    def lanes(self, count: int) -> list[Lane]:
        """A lane for each child. They are the same when the agent goes on."""
        invocation = self._invocation
        known = invocation.lanes or []
        invocation.lanes = [*known, *(Lane(invocation.lane, f"{invocation.id}/{index}") for index in range(len(known), count))]
        return invocation.lanes

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this invocation: when it is started again, the result of the first time is returned."""
        invocation = self._invocation
        if invocation.steps is None:
            invocation.steps = {}
        if name not in invocation.steps:
            if not callable(make):
                msg = f"context.step({name!r}, ...): give a function that returns an awaitable, for example `lambda: fetch(url)`."
                raise UsageError(msg, run=self.run_id, agent=self.agent_name)
            made = await make()
            if self.run.keeps:
                self._check_kept(f"the result of step({name!r}, ...)", made)
            invocation.steps[name] = made
            if self.run.keeps:
                invocation.unnoted += (name,)
                await self._ask(StateChanged(invocation, name))
                invocation.unnoted = tuple(one for one in invocation.unnoted if one != name)
        result: T = invocation.steps[name]
        return result

    # --- for the agents of this package ---

    @property
    def node(self) -> Any:
        """Where the agent stands in its tree."""
        return self._invocation.node

    @property
    def invocation(self) -> Invocation:
        return self._invocation

    async def emit(self, event: AgentEvent) -> AgentEvent:
        """Have an event recorded and shown, at once."""
        shown = await deliver(self._supervisor, Emitted(self._invocation, event))
        if shown is OVER:
            self._stop_here()
        self.last_cast = None
        self._emitted += 1
        if self._emitted % _STRETCH == 0:
            await asyncio.sleep(0)
        return cast("AgentEvent", shown)

    def emit_soon(self, event: AgentEvent, shown: Callable[[], object]) -> None:
        """Have an event recorded and shown, without waiting for it; `shown` is called then. From any thread. After the run's end it does nothing."""
        with contextlib.suppress(ActorDeadError):
            self._supervisor.tell(EmittedNoWait(self._invocation, event, shown))

    @property
    def notes(self) -> dict[str, Any]:
        """What an agent of this package notes for itself, apart from the user's state."""
        if self._invocation.notes is None:
            self._invocation.notes = {}
        return self._invocation.notes

    def is_own_thread(self) -> bool:
        """Whether this is the thread of the loop on which the run lives."""
        return get_ident() == self._system.dispatcher.thread

    def is_alive(self) -> bool:
        """Whether the run has not ended."""
        return self._supervisor.is_alive()

    async def _ask(self, message: Any) -> Any:
        reply = await deliver(self._supervisor, message)
        if reply is OVER:
            self._stop_here()
        return reply

    def _stop_here(self) -> NoReturn:
        self.is_over = True
        raise asyncio.CancelledError("the run is over")

    async def save(self) -> None:
        """Have what has changed in the agent's state recorded, before anything else happens."""
        if self.run.keeps:
            await self._ask(StateChanged(self._invocation))

    async def rest(self) -> None:
        """A call of the agent has ended, and what came of it is recorded: if the run is to end, and waits only for agents of this one, it can now."""
        if self.run.stopping is not None and (self._invocation.playing or self._invocation.phase is InvocationPhase.PARKED):
            await self._ask(ReachedSafePoint(self._invocation))

    async def pause(self) -> NoReturn:
        """The agent has come to a safe point, and the run is to end there: go no further."""
        await self._ask(ReachedSafePoint(self._invocation))
        await self._system.loop.create_future()
        raise AssertionError("nobody sets that future: the run's end cancels whoever waits for it")

    async def join(self) -> None:
        """Put the lanes of children that have ended behind this agent's own."""
        await self._ask(JoinLanes(self._invocation))

    async def cancel_children(self) -> None:
        """End all that is under way below this agent."""
        await self._ask(CancelChildren(self._invocation))

    async def call_hooks(self, name: str, *args: Any, agent_name: str | None = None) -> None:
        """Call a hook of the run and of this agent, if there is one."""
        hooks, own = self.run.hooks, self._invocation.node.agent.hooks
        if hooks is not None or own is not None:
            await call_hooks(hooks, own, name, agent_name, self.run, *args)

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that blocks in one of the system's worker threads."""
        return await self._system.run_blocking(function, *args, **kwargs)

    async def at_once(self, works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of all of them. Raises what the first one raises that fails; the others are cancelled, and have ended by then."""
        tasks = [self.create_task(work) for work in works]
        try:
            for task in asyncio.as_completed(tasks):
                await task
            return [task.result() for task in tasks]
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def create_task(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that works for this invocation. Whoever makes it awaits it."""
        return asyncio.Task(coro, loop=self._system.loop)
