"""What an agent's `run` is given beside its input.

Owns: `AgentContext`, the one door from a definition to the run that it plays in. It must never give an agent another one's state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NoReturn, ParamSpec, TypeVar, cast

from .chat import new_id
from .definition import AgentInput
from .delivery import OVER, deliver
from .errors import ActorDeadError, UsageError
from .events import AgentEvent, Interrupted
from .history import Lane
from .hooks import call_hooks
from .interrupt import AddressStep, InterruptContext
from .invocation import Invocation, Scope
from .options import agent_options
from .outcome import Outcome
from .protocol import CancelCast, CancelChildren, Cast, CastReply, Emitted, EmittedSoon, JoinLanes
from .run_context import RunContext
from .session import SessionValues

if TYPE_CHECKING:
    from .ref import ActorRef
    from .system import ActorSystem

__all__ = ["AgentContext", "ResumeInfo"]

# Events after which an agent that never waits for anything lets others have their turn. A number, not a time: the order of events must not depend on the clock.
_STRETCH: Final = 32

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

    __slots__ = ("_emitted", "_invocation", "_supervisor", "_system", "is_over", "last_cast", "resume", "run", "streaming")

    def __init__(self, invocation: Invocation, run: RunContext, supervisor: ActorRef[Any], system: ActorSystem, *, streaming: bool) -> None:
        self._invocation = invocation
        self._supervisor = supervisor
        self._system = system
        self.run = run
        self.streaming = streaming
        self._emitted = 0
        self.is_over = False  # whether the run has ended under it
        self.resume: ResumeInfo | None = None
        self.last_cast: Outcome | None = None  # of the child that was cast last, if nothing was emitted since

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
        if state is not None:
            self.state["interrupt_state"] = state
        return AgentEvent.of(action=Interrupted((InterruptContext(new_id(), self._invocation.address, info),)))

    async def cast(self, agent: Any, input: AgentInput | None = None) -> Outcome:  # noqa: A002 -- the contract's
        """Let another agent play, as a child of this one. Its events join the run's. Returns how it ended.

        Without `input` it is given what its history policy says. If this agent ends without having done anything after it, it ends the same way.
        """
        invocation = self._invocation
        outcome = await self.cast_node(invocation.node.place_of(agent), invocation.run_path, invocation.lane, given=input)
        invocation.broke = invocation.broke or outcome.broke
        return outcome

    async def cast_node(self, node: Any, base: tuple[str, ...], lane: Lane, *, given: AgentInput | None = None, loop: int | None = None) -> Outcome:
        """The same for workflows, which say where in the run path and in which lane."""
        reply: asyncio.Future[Outcome] = self._system.loop.create_future()
        await self.begin_cast(node, base, lane, reply, given=given, loop=loop)
        self.last_cast = outcome = await self._outcome_of(reply)
        return outcome

    async def _outcome_of(self, reply: asyncio.Future[Outcome]) -> Outcome:
        """Wait for an agent that was cast. Whoever stops waiting takes it along: it does not go on behind the back of its caster."""
        try:
            return await reply
        except asyncio.CancelledError:
            if self._invocation.cancelled or self._system.closing:
                raise  # all under it is ended with it
            gone: asyncio.Future[Any] = self._system.loop.create_future()
            if await deliver(self._supervisor, CancelCast(reply, gone)) is not OVER:
                await gone
            raise

    async def begin_cast(
        self, node: Any, base: tuple[str, ...], lane: Lane, reply: CastReply, *, given: AgentInput | None = None, loop: int | None = None
    ) -> None:
        """The same, without waiting for the end: `reply` is given the outcome."""
        await self._cast(Cast(self._invocation, node, reply, base=base, lane=lane, given=given, loop=loop))

    async def _cast(self, request: Cast) -> None:
        """Have an agent begin. Whoever is cancelled meanwhile has given it up, whether or not it has begun by then."""
        try:
            await self._ask(request)
        except asyncio.CancelledError:
            request.reply.cancel()
            with contextlib.suppress(ActorDeadError):
                self._supervisor.tell(CancelCast(request.reply, self._system.loop.create_future()))
            raise

    async def call_agent(self, node: Any, given: AgentInput, *, shown: bool, tool: AddressStep) -> Outcome:
        """Let an agent play in a conversation of its own, as a tool of this one."""
        reply: asyncio.Future[Outcome] = self._system.loop.create_future()
        scope = Scope(given, shown=shown and self._invocation.seat.scope.shown, recorded=False)
        await self._cast(Cast(self._invocation, node, reply, base=self._invocation.run_path, lane=Lane(), scope=scope, tool=tool))
        return await self._outcome_of(reply)

    async def step(self, name: str, make: Callable[[], Awaitable[T]]) -> T:
        """Do something once in this invocation: when it is started again, the result of the first time is returned."""
        invocation = self._invocation
        if invocation.steps is None:
            invocation.steps = {}
        if name not in invocation.steps:
            if not callable(make):
                msg = f"context.step({name!r}, ...): give a function that returns an awaitable, for example `lambda: fetch(url)`."
                raise UsageError(msg, run=self.run_id, agent=self.agent_name)
            invocation.steps[name] = await make()
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
            self._supervisor.tell(EmittedSoon(self._invocation, event, shown))

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

    async def join(self, lanes: list[Lane]) -> None:
        """Put the lanes of children that have ended behind this agent's own."""
        await self._ask(JoinLanes(self._invocation.lane, lanes))

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

    def create_task(self, coro: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that works for this invocation. Whoever makes it awaits it."""
        return asyncio.Task(coro, loop=self._system.loop)
