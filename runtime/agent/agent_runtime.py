"""An agent's interface to its run, for this library's own agents.

`AgentRuntime` sends an invocation's requests to the run's supervisor and waits for the reply. A
custom agent holds an `AgentContext`, which exposes only the public methods; `runtime_of` in
`context` returns the runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime, timedelta
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
from ..data.interrupt import AddressStep, Due, InterruptContext, Pending
from ..data.outcome import AtOnce, Outcome
from ..data.run_path import Path
from ..errors import ActorDeadError, CheckpointError, UsageError
from ..tasks import all_at_once, start_task
from .history import Lane
from .hooks import call_hooks
from .invocation import CastKey, Conversation, Following, Invocation, InvocationPhase
from .run_context import RunContext, RunTasks
from .run_messages import (
    CancelCast,
    CancelChildren,
    CancelRun,
    Cast,
    CastReply,
    DeltaDisplay,
    Emitted,
    EmittedNoWait,
    JoinLanes,
    ReachedSafePoint,
    StateChanged,
)
from .tree import Definition, Node

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.host import Host
    from ..actor.loop_cell import LoopCell
    from ..clock import Clock
    from .options import Options

__all__ = ["ASKED_BEHIND", "AgentRuntime"]

ASKED_BEHIND: Final = "asked behind"
"""The note of an agent that called another agent after its own transfer and waits for it."""

# An agent that never waits yields to the loop after this many events. A count rather than a time,
# because the order of events must not depend on the clock.
_STRETCH: Final = 32

_NOTHING: Final = AgentInput()

# Values of these types can always be stored.
_PLAIN: Final = frozenset((bool, int, float, str, bytes))

P = ParamSpec("P")
T = TypeVar("T")


class AgentRuntime(InnerActor):
    """One invocation of an agent, and its operations in the run. It is also the invocation's actor.

    Only for the agents of this library.
    """

    __slots__ = (
        "_at_once",
        "_casts",
        "_deltas",
        "_emitted",
        "_supervisor",
        "input",
        "invocation",
        "is_over",
        "last_cast",
        "run",
        "streaming",
        "system",
    )

    def __init__(
        self,
        cell: Cell,
        invocation: Invocation,
        run: RunContext,
        supervisor: LoopCell,
        deltas: DeltaDisplay,
        streaming: bool,  # noqa: FBT001
    ) -> None:
        self._cell = cell
        cell.actor = self
        invocation.cell = cell
        self.invocation = invocation
        self._supervisor = supervisor
        self._deltas: DeltaDisplay | None = deltas  # None once the actor has ended
        self.system: Host = cell.system
        self.run = run
        self.streaming = streaming
        self._emitted = 0
        self.is_over = False  # True once the run has ended before the agent
        # How often this agent called each agent from each state.
        self._casts: dict[str, int] | None = None
        self.input = _NOTHING  # the agent's input, once its history policy has built it
        # Outcome of the last call, or of several concurrent calls; reset by each event.
        self.last_cast: Outcome | None = None
        self._at_once: AtOnce | None = None  # created with the first call

    def __repr__(self) -> str:
        return f"<AgentRuntime of {self.agent_name!r} in run {self.run.run_id}>"

    @property
    def agent_name(self) -> str:
        return self.invocation.node.name

    @property
    def clock(self) -> Clock:
        """The clock for all waits in this run."""
        return self.system.clock

    @property
    def node(self) -> Node:
        """The agent's place in its tree."""
        return self.invocation.node

    @property
    def state(self) -> dict[str, object]:
        """The invocation's state, which belongs to the user."""
        invocation = self.invocation
        if invocation.state is None:
            invocation.state = {}
        return invocation.state

    @property
    def notes(self) -> dict[str, Any]:
        """Notes of this library's own agents, apart from the user's state."""
        if self.invocation.notes is None:
            self.invocation.notes = {}
        return self.invocation.notes

    def is_own_thread(self) -> bool:
        """Return True in the thread of the run's loop."""
        return get_ident() == self.system.dispatcher.thread

    def is_alive(self) -> bool:
        """Return True while the run has not ended."""
        return self._supervisor.is_open

    @property
    def continues_elsewhere(self) -> bool:
        """True if the agent ends here so that another process can continue it.

        Its external work must then keep running.
        """
        return self.run.continues_elsewhere or (self.run.lease is not None and self.system.closing)

    # --- events ---

    async def emit(self, event: AgentEvent, *, is_last: bool = False) -> AgentEvent:
        """Report an event to the supervisor. Returns the event as recorded and shown.

        The last event of an agent may be recorded together with the agent's end.
        """
        shown = hand(self._supervisor, Emitted(self.invocation, event, is_last=is_last))
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
        """Show a delta at once.

        Deltas are not recorded, so the supervisor is rarely involved.
        """
        deltas = self._deltas if self._supervisor.is_idle() and not self.system.closing else None
        if deltas is None or not deltas.show_delta(self.invocation, delta):
            await self.emit(AgentEvent(delta=delta))
            return
        self.last_cast, self._emitted = None, self._emitted + 1
        if self._emitted % _STRETCH == 0:
            await asyncio.sleep(0)

    def emit_soon(self, event: AgentEvent, shown: Callable[[], object]) -> None:
        """Record and show an event without waiting; `shown` is called afterwards.

        From any thread. After the run's end it does nothing.
        """
        with contextlib.suppress(ActorDeadError):
            self._supervisor.own_ref().tell(EmittedNoWait(self.invocation, event, shown))

    def note_interrupt(
        self,
        info: Any,
        state: object,
        tool: AddressStep | None = None,
        *,
        approval: bool = False,
        earlier: tuple[Any, ...] = (),
        due: Due | None = None,
    ) -> InterruptContext:
        """Note that the agent, or one of its tool calls, waits for an answer."""
        if self.run.keeps:
            self.check_storable("interrupt(info=...)", info)
            self.check_storable("interrupt(state=...)", state)
            if due is not None:
                self.check_storable("interrupt(default=...)", due.default)
        elif due is not None:
            msg = (
                f"agent {self.agent_name!r}: an interrupt with a deadline needs a store that keeps "
                "the run until then. Give the Runner a store: store=SQLiteStore('runs.db')."
            )
            raise UsageError(msg, run=self.run.run_id, agent=self.agent_name)
        invocation = self.invocation
        context = invocation.interrupted(info, self.run.checkpoint_id, tool, due)
        if tool is None and invocation.transfer is not None:
            self.notes[ASKED_BEHIND] = True
        call_id = None if tool is None else tool.call_id
        invocation.pending = {
            **(invocation.pending or {}),
            context.id: Pending(context, call_id, state, approval, earlier),
        }
        return context

    def check_storable(self, what: str, value: object) -> None:
        """Raise `CheckpointError` if the value cannot be stored in a checkpoint."""
        if value is None or type(value) in _PLAIN:
            return
        try:
            pack(value)
        except CheckpointError as error:
            msg = f"agent {self.agent_name!r}: {what} cannot be stored in a checkpoint: {error}"
            raise CheckpointError(msg, run=self.run.run_id, agent=self.agent_name) from error

    # --- other agents ---

    async def cast(self, agent: Definition, input: AgentInput | None) -> Outcome:  # noqa: A002 -- the contract's
        """Run an agent as a child of this one."""
        invocation = self.invocation
        self._casts = {} if self._casts is None else self._casts
        cast_key = invocation.cast_key_of(agent, self._casts, keeps=self.run.keeps)
        outcome = await self.cast_node(
            invocation.node.node_of(agent),
            invocation.run_path,
            invocation.lane,
            cast_key,
            input=input,
        )
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    async def cast_node(
        self,
        node: Node,
        base: Path,
        lane: Lane,
        cast_key: CastKey,
        *,
        input: AgentInput | None = None,  # noqa: A002 -- the contract's name
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> Outcome:
        """Run the agent of a node, with a run path, a lane and a key that the caller chooses."""
        reply: asyncio.Future[Outcome] = self.system.loop.create_future()
        await self.begin_cast(
            node, base, lane, reply, cast_key, input=input, loop=loop, one_at_a_time=one_at_a_time
        )
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
        input: AgentInput | None = None,  # noqa: A002 -- the contract's name
        loop: int | None = None,
        one_at_a_time: bool = False,
    ) -> None:
        """Start the agent of a node without waiting for its end: `reply` receives the outcome."""
        await self._cast(
            Cast(
                self.invocation,
                node,
                reply,
                cast_key=cast_key,
                base=base,
                lane=lane,
                given=input,
                loop=loop,
                one_at_a_time=one_at_a_time,
            )
        )

    async def call_agent(
        self,
        node: Node,
        input: AgentInput,  # noqa: A002 -- the contract's name
        cast_key: CastKey,
        *,
        shown: bool,
        tool: AddressStep,
    ) -> Outcome:
        """Run an agent in a separate conversation, as a tool of this one."""
        reply: asyncio.Future[Outcome] = self.system.loop.create_future()
        invocation = self.invocation
        conversation = Conversation(
            input, shown=shown and invocation.agent_call.conversation.shown, recorded=False
        )
        lane = Lane(None, f"{invocation.id}/{cast_key}")
        await self._cast(
            Cast(
                invocation,
                node,
                reply,
                cast_key=cast_key,
                base=invocation.run_path,
                lane=lane,
                conversation=conversation,
                tool=tool,
            )
        )
        return await self._outcome_of(reply)

    async def _cast(self, request: Cast) -> None:
        """Start an agent.

        If the caller is cancelled meanwhile, the agent is cancelled too, even if it has already
        started.
        """
        try:
            await self._ask(request)
        except asyncio.CancelledError:
            request.reply.cancel()
            with contextlib.suppress(ActorDeadError):
                self._supervisor.own_ref().tell(
                    CancelCast(request.reply, self.system.loop.create_future())
                )
            raise

    async def _outcome_of(self, reply: asyncio.Future[Outcome]) -> Outcome:
        """Wait for an agent that was started.

        If the caller is cancelled, the agent is ended with it.
        """
        try:
            return await reply
        except asyncio.CancelledError:
            if self.invocation.is_cancelled or self.system.closing:
                raise  # all its children end with it
            gone: asyncio.Future[object] = self.system.loop.create_future()
            if await deliver(self._supervisor, CancelCast(reply, gone)) is not OVER:
                await gone
            raise

    def hand_over(
        self,
        agent: Definition,
        input: AgentInput | None = None,  # noqa: A002 -- the contract's name
        asked: int | None = None,
    ) -> TransferToAgent:
        """Hand off to an agent that may be outside of the tree.

        Returns the action for the event to yield, after which the generator returns. The agent's
        input is `input`, whose first `asked` messages are the run's input. Without `input` it is
        this agent's input and everything said since, verbatim.
        """
        invocation = self.invocation
        node = invocation.node.follower(agent)
        invocation.following = (
            invocation.going_on(node, self.input)
            if input is None
            else Following(node, input, None, asked=asked)
        )
        return TransferToAgent(node.name)

    def lanes(self, count: int) -> list[Lane]:
        """Return a lane for each child. A resumed agent finds the same lanes."""
        return self.invocation.lanes_for(count)

    async def join(self) -> None:
        """Append the lanes of ended children to this agent's own lane."""
        await self._ask(JoinLanes(self.invocation))

    async def cancel_children(self) -> None:
        """End everything that runs below this agent."""
        await self._ask(CancelChildren(self.invocation))

    async def make_sure(self) -> None:
        """Wait until this process certainly holds the run's claim for some time.

        Call it before anything starts that cannot be undone.
        """
        lease = self.run.lease
        if lease is not None and not lease.is_fresh():
            await lease.make_sure()

    # --- recorded steps ---

    async def step(
        self, name: str, make: Callable[[], Awaitable[T]], *, with_next_event: bool = False
    ) -> T:
        """Run `make` once in this invocation; after a restart, return its first result.

        `with_next_event`: the caller emits an event at once, and the same commit records both.
        """
        invocation = self.invocation
        if invocation.steps is None:
            invocation.steps = {}
        if name not in invocation.steps:
            if not callable(make):
                msg = (
                    f"context.step: make of step {name!r} must be a function that returns "
                    "an awaitable, for example `lambda: fetch(url)`."
                )
                raise UsageError(msg, run=self.run.run_id, agent=self.agent_name)
            await self.make_sure()
            made = await make()
            if self.run.keeps:
                self.check_storable(f"the result of step({name!r}, ...)", made)
            invocation.steps[name] = made
            if self.run.keeps:
                invocation.unnoted += (name,)
                await self._ask(StateChanged(invocation, name, with_next_event=with_next_event))
                invocation.unnoted = tuple(one for one in invocation.unnoted if one != name)
        result: T = invocation.steps[name]
        return result

    async def save(self) -> None:
        """Record the changes of the agent's state before anything else happens."""
        if self.run.keeps:
            await self._ask(StateChanged(self.invocation))

    async def rest(self) -> None:
        """Report that a call has ended and its result is recorded.

        A run that will end at a safe point, and waits only for this agent's children, can end now.
        """
        if self.run.stopping is not None and (
            self.invocation.playing or self.invocation.phase is InvocationPhase.PARKED
        ):
            await self._ask(ReachedSafePoint(self.invocation))

    async def hear(self) -> None:
        """At a safe point: emit the posts that have arrived, as messages of the user.

        If one of them is to go first, the turn ends here.
        """
        inbox = self.run.inbox
        if inbox is None or not self.invocation.agent_call.conversation.recorded:
            return
        async with inbox.hearing:  # branches that look at the same time keep the order
            posts = await inbox.at_safe_point()
            for post in posts or ():
                await self.emit(AgentEvent(message=post.message, post=inbox.posted(post)))
        if posts is None:
            self._supervisor.own_ref().tell(
                CancelRun("a post of its session goes first", "after_tools")
            )
            await self.pause()

    async def sleeps_until(self, name: str, duration: timedelta) -> datetime:
        """Return when a sleep of that name ends: the same time whenever it is asked for again."""
        if not isinstance(duration, timedelta):
            msg = f"sleep(): duration must be a timedelta, got {duration!r:.80}."
            raise UsageError(msg)
        return await self.step(name, partial(_from_now, duration))

    def tasks_for(self, agent: Definition) -> tuple[RunTasks, str]:
        """Return what starts background tasks, and the session that their ends are reported to.

        Raise if there is none.
        """
        run = self.run
        if run.session_id is None or run.inbox is None or run.background is None:
            msg = (
                f"{agent.name} cannot work in the background: its end would be reported to nobody, "
                "because the run belongs to no session. Start it with "
                "runner.session(id).query(...)."
            )
            raise UsageError(msg, run=run.run_id, agent=self.agent_name)
        return run.background, run.session_id

    async def pause(self) -> NoReturn:
        """Report the safe point where the run will end. Never returns."""
        await self._ask(ReachedSafePoint(self.invocation))
        await self.system.loop.create_future()
        raise AssertionError("this future is never set: when the run ends, it cancels its waiters")

    # --- work ---

    @property
    def options(self) -> tuple[Options, ...]:
        """The options for this agent: those of its definition, overridden by those of the run."""
        fixed = self.invocation.node.agent.fixed_options
        return (*fixed, *self.run.options) if fixed else self.run.options

    async def call_hooks(self, name: str, *args: Any, agent_name: str | None = None) -> None:
        """Call a hook of the run and of this agent, if there is one."""
        hooks, agent = self.run.hooks, self.invocation.node.agent
        if hooks or (agent.hooks is not None and not agent.calls_own_hooks):
            await call_hooks(
                hooks,
                None if agent.calls_own_hooks else agent.hooks,
                name,
                agent_name,
                self.run,
                *args,
            )

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in one of the system's worker threads."""
        name = (
            f"{getattr(function, '__qualname__', None) or repr(function)} of agent "
            f"{self.agent_name!r} in run {self.run.run_id}"
        )
        return await self.system.run_named(partial(function, *args, **kwargs), name)

    async def run_tool(
        self, function: Callable[[], T], tool: str, began: Callable[[], object] | None
    ) -> T:
        """Run a tool's function in a worker thread; `began` is called once it has started."""
        return await self.system.run_named(
            function, f"tool {tool} of agent {self.agent_name!r} in run {self.run.run_id}", began
        )

    async def at_once(self, works: Iterable[Coroutine[object, None, T]], what: str) -> list[T]:
        """Run all `works` concurrently and return their results.

        Raises the first error, after the others were cancelled and have ended.
        """
        return await all_at_once(works, f"{what} of agent {self.agent_name!r}")

    def create_task(self, work: Coroutine[object, None, T], what: str) -> asyncio.Task[T]:
        """Create a task that works for this invocation. The caller awaits it."""
        return start_task(work, f"{what} of agent {self.agent_name!r}", loop=self.system.loop)

    # --- asking the supervisor ---

    async def _ask(self, message: object) -> object:
        reply = await deliver(self._supervisor, message)
        if reply is OVER:
            self._stop_here()
        return reply

    def _stop_here(self) -> NoReturn:
        self.is_over = True
        raise asyncio.CancelledError("the run is over")


async def _from_now(duration: timedelta) -> datetime:
    return datetime.now(UTC) + duration
