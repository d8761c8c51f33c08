"""The front door: a definition, ready to be run any number of times at once.

Owns: the tree of a definition, checked when the Runner is made, and the choice of where a run lives. It keeps nothing of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from .actor.current import current_system
from .actor.direct import send_now
from .actor.host import Host
from .agent.hooks import RunHooks, check_hooks
from .agent.options import OptionsLike, as_options, as_tool_options
from .agent.run_context import RunContext
from .agent.run_messages import Open
from .agent.run_state import RunState
from .agent.session_values import SessionValues
from .agent.tree import Definition, build_tree
from .data.agent_input import AgentInput
from .data.chat import Message, new_id
from .durability.answers import Answers
from .durability.journal import check_values
from .durability.leases import Busy
from .durability.persistence import RunPersistence, check_checkpoint_id
from .durability.recovery import find_unfinished
from .durability.store_access import StoreAccess
from .errors import UsageError
from .run.event_log import EventLog
from .run.opening import Beginning, Resuming
from .run.run import Run
from .run.run_record import RunRecord
from .run.run_supervisor import Opening, RunSupervisor
from .session import Session, check_busy, check_session_id
from .sessions.session_policy import SessionPolicyLike
from .sessions.turn import Turn
from .stores import Store
from .system.loop_door import LoopDoor, running_loop
from .system.state import SystemState
from .system.system import ActorSystem

if TYPE_CHECKING:
    from .actor.ref import ActorRef
    from .run.run_options import RunOptions

__all__ = ["Runner", "as_messages"]

_DURABILITIES: Final = ("none", "interrupt", "step")
_NO_INPUT: Final = AgentInput()


class Runner:
    """Runs an agent, with all that are under it.

        runner = Runner(agent)
        async for event in runner.query("What is the weather in Paris?"): ...
        result = runner.query("And in Rome?").result()       # where no event loop is running

    Without `system`, its runs have a system of their own on the loop where they start; nothing of it is left when they have ended.
    """

    def __init__(
        self,
        agent: Definition,
        *,
        system: ActorSystem | None = None,
        store: Store | None = None,
        streaming: bool = False,
        durability: Literal["none", "interrupt", "step"] = "interrupt",
        max_transfers: int = 100,
        hooks: RunHooks | None = None,
        event_buffer: int = 1024,
        skip_transfer_messages: bool = False,
        handoff_input_filter: Callable[[Any], object] | None = None,
    ) -> None:
        if system is not None and not isinstance(system, ActorSystem):
            msg = f"Runner(system={system!r}): give an ActorSystem that has been entered, or leave it out."
            raise UsageError(msg)
        if durability not in _DURABILITIES:
            msg = f"Runner(durability={durability!r}): give 'none', 'interrupt' or 'step'."
            raise UsageError(msg)
        if event_buffer < 1:
            msg = f"Runner(event_buffer={event_buffer}): a run needs room for one event at least."
            raise UsageError(msg)
        if max_transfers < 0:
            msg = f"Runner(max_transfers={max_transfers}): give 0 or more."
            raise UsageError(msg)
        self._access = None if store is None else StoreAccess(store)
        if durability == "step" and (self._access is None or not self._access.has_journals):
            what = "a store" if store is None else "a store that keeps journals (append, read, keys)"
            msg = f"Runner(durability='step') needs {what}: give store=SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or MemoryStore()."
            raise UsageError(msg)
        if handoff_input_filter is not None and not callable(handoff_input_filter):
            msg = f"Runner(handoff_input_filter={handoff_input_filter!r}): give a function of HandoffInputData."
            raise UsageError(msg)
        check_hooks(hooks, RunHooks, "Runner")
        self.agent = agent
        self.system = system
        self.store = store
        self.streaming = streaming
        self.durability = durability
        self.max_transfers = max_transfers
        self.hooks = hooks
        self.event_buffer = event_buffer
        self.skip_transfer_messages = skip_transfer_messages
        self.handoff_input_filter = handoff_input_filter
        self._tree = build_tree(agent)
        for node in (node for tree in self._tree.trees() for node in tree.walk()):
            check = getattr(node.agent, "check", None)
            if check is not None:
                check(node)
        self._systems: dict[asyncio.AbstractEventLoop, ActorSystem] = {}  # of the loops that are not closed, as far as is known

    def __repr__(self) -> str:
        return f"<Runner of {self._tree.name!r}>"

    def query(self, text: str, **options: Unpack[RunOptions]) -> Run:
        """Run with one user message. The options are those of `run`."""
        if not isinstance(text, str):
            msg = f"query({text!r}): give a text; messages go to run([...])."
            raise UsageError(msg)
        return self.run((Message("user", text),), **options)

    def run(
        self,
        messages: str | Message | Sequence[Message],
        *,
        checkpoint_id: str | None = None,
        session_id: str | None = None,
        session_values: Mapping[str, Any] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        context: Any = None,
    ) -> Run:
        """Run with these messages. It starts now, if an event loop is running here, and else at its first use.

        `session_id` is shown to agents and hooks as it is; a conversation that lasts is `session(...)`. `context` is an object of your own, which
        hooks, callbacks of handoffs and tools find at `context.run.context`; it is in no checkpoint.
        """
        own = self._context(session_id, session_values, options, context)
        return self._begin(messages, own, checkpoint_id, None, streaming=streaming, timeout=timeout)

    def _begin(
        self,
        messages: str | Message | Sequence[Message],
        context: RunContext,
        checkpoint_id: str | None,
        turn: Turn | None,
        *,
        streaming: bool | None,
        timeout: float | None,
    ) -> Run:
        if timeout is not None and not timeout > 0:
            msg = f"run(timeout={timeout}): give a number of seconds above 0, or None for no limit."
            raise UsageError(msg)
        given = AgentInput(as_messages(messages), self.streaming if streaming is None else streaming)
        persistence = self._persistence(context.run_id, checkpoint_id)
        opening = Beginning() if turn is not None or (persistence is not None and persistence.journal is not None) else None
        return self._make(context, given, persistence, opening, timeout, turn)

    def session(self, session_id: str, *, busy: Busy = "queue", policy: SessionPolicyLike = None) -> Session:
        """A conversation that lasts, in the store: whoever sends to it, from whichever process, one message at a time is worked on.

        While it works, another message waits its turn (`busy="queue"`), ends with `SessionBusy` (`"reject"`), or cuts the one at work short
        (`"preempt"`). `policy` bounds what the models are given of what was said before: `keep_last(20)`, `summarize(model)`, or a function of the
        messages.
        """
        check_session_id(session_id)
        check_busy(busy)
        store_access = self._access
        if store_access is None or not store_access.has_journals:
            what = "has none" if store_access is None else "keeps no journals"
            msg = f"session({session_id!r}): a session is kept in the Runner's store, and this one {what}. Give SQLiteStore('runs.db') or MemoryStore()."
            raise UsageError(msg)
        return Session(store_access, session_id, busy, policy, self._run_in_session, self._choose_system)

    def _run_in_session(
        self,
        messages: str | Message | Sequence[Message],
        turn: Turn,
        *,
        checkpoint_id: str | None = None,
        session_values: Mapping[str, Any] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        context: Any = None,
    ) -> Run:
        own = self._context(turn.session_id, session_values, options, context)
        return self._begin(messages, own, checkpoint_id, turn, streaming=streaming, timeout=timeout)

    def resume(
        self,
        checkpoint_id: str,
        targets: Mapping[str, Any] | None = None,
        *,
        data: Any = None,
        tool_options: OptionsLike = None,
        session_values: Mapping[str, Any] | None = None,
        options: OptionsLike = None,
        timeout: float | None = None,
        context: Any = None,
    ) -> Run:
        """Go on with a run that was interrupted or cancelled. Without `targets`, every interrupt is answered: with `data`, or without anything.

        `targets` maps ids of interrupts to data; those that are not named wait on. Each interrupt is answered once: whoever comes second gets a
        `ResumeError`. `"id@2"` names the second save of a checkpoint; if that was answered before, the run goes on as a branch with an id of its own.
        What is wrong with the checkpoint is raised where the run is first awaited or iterated, and nothing has run then.
        """
        if not isinstance(checkpoint_id, str) or not checkpoint_id:
            msg = f"resume({checkpoint_id!r}): give the id of a checkpoint: that of `run.checkpoint_id`."
            raise UsageError(msg)
        answers = Answers(targets, data)
        own = self._context(None, session_values, (*as_tool_options(tool_options), *as_options(options)), context)
        store_access = self._access
        if store_access is None:
            return self._make(own, _NO_INPUT, None, _no_store, timeout)
        persistence = RunPersistence(store_access, self._tree, own.run_id, checkpoint_id, steps=self.durability == "step")
        return self._make(own, _NO_INPUT, persistence, Resuming(persistence, answers), timeout)

    async def recover(self) -> list[Run]:
        """Go on with every run of this agent in the store that is not finished, and that nobody works on: after a crash, or after a system was drained.

        Each is continued once, however many processes call this at the same time. Interrupted runs wait for their answers, and are not among them.
        """
        store_access = self._access
        if store_access is None or not store_access.has_journals:
            raise UsageError("recover() needs a Runner with a store that keeps journals: SQLiteStore, RedisStore, PostgresStore or MemoryStore.")
        system = self._choose_system()
        return await LoopDoor(system, "recover()").call(lambda: self._recover_in(system, store_access))

    async def _recover_in(self, system: ActorSystem, store_access: StoreAccess) -> list[Run]:
        """The same, on the loop of the system in which they are to live."""
        runs = []
        for persistence in await find_unfinished(store_access, self._tree, system):
            context = self._context(None, None, None)
            context.run_id = persistence.run_id
            runs.append(self._make(context, _NO_INPUT, persistence, Resuming(persistence, None), None))
        return runs

    # --- making ---

    def _context(self, session_id: str | None, session_values: Mapping[str, Any] | None, options: OptionsLike, users: object = None) -> RunContext:
        context = RunContext(new_id(), session_id, SessionValues(session_values), as_options(options), self.hooks)
        context.skip_transfers = self.skip_transfer_messages
        context.handoff_input_filter = self.handoff_input_filter
        context.context = users
        return context

    def _persistence(self, run_id: str, checkpoint_id: str | None) -> RunPersistence | None:
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
            if self._access is None:
                msg = f"run(checkpoint_id={checkpoint_id!r}): this Runner has no store to keep it in. Give it one: Runner(..., store=SQLiteStore('runs.db'))."
                raise UsageError(msg)
        if self._access is None or self.durability == "none":
            return None
        return RunPersistence(self._access, self._tree, run_id, checkpoint_id or run_id, steps=self.durability == "step")

    def _make(
        self,
        context: RunContext,
        given: AgentInput,
        persistence: RunPersistence | None,
        opening: Opening | None,
        timeout: float | None,
        turn: Turn | None = None,
    ) -> Run:
        context.keeps = persistence is not None
        if persistence is not None or turn is not None:
            context.session.guard(check_values)
        record = RunRecord(context, self._tree.name, self.event_buffer)
        event_log = EventLog(RunState(context, given), record, persistence)
        if turn is not None:
            record.turn = turn
            record.when_finished(turn.abandon)
        if persistence is not None and opening is not None:
            record.when_finished(persistence.abandon)
        checkpoint_of = None if persistence is None else partial(getattr, persistence, "checkpoint_id")
        run = Run(context, record, self._choose_system, partial(self._launch, event_log, opening, timeout), checkpoint_of)
        if running_loop() is not None:
            run.start()
        return run

    # --- where ---

    def _choose_system(self) -> ActorSystem:
        """The system in which a run lives that is started here."""
        if self.system is not None:
            if self.system.state is SystemState.NEW:
                msg = f"Runner(system=...): {self.system.not_entered}"
                raise UsageError(msg)
            return self.system
        loop = running_loop()
        if loop is not None:
            return self._own_system(loop)
        default = current_system()  # in its own thread, because no loop is running in this one
        system = LoopDoor(default, "a run").block(self._own_system_there, "Runner.run()", "async with ActorSystem()")
        assert system is not None
        return system

    async def _own_system_there(self) -> ActorSystem:
        return self._own_system(asyncio.get_running_loop())

    def _own_system(self, loop: asyncio.AbstractEventLoop) -> ActorSystem:
        system = self._systems.get(loop)
        if system is None:
            for known in [known for known in tuple(self._systems) if known.is_closed()]:
                self._systems.pop(known, None)
            system = self._systems[loop] = ActorSystem(f"runner-of-{self._tree.name}")
            system.bind(loop)
        return system

    def _launch(self, event_log: EventLog, opening: Opening | None, timeout: float | None, system: ActorSystem) -> ActorRef[RunSupervisor]:
        """Start the run, on the system's loop."""
        if system is not self.system:
            event_log.record.when_finished(partial(_release, system))
        ref = system.spawn_own(RunSupervisor, (self._tree, event_log, self.max_transfers, timeout, opening), None, None)
        if opening is not None:
            send_now(ref, Open())
        return ref


async def _no_store(_log: EventLog, _system: Host, _stop: object) -> None:
    raise UsageError("resume(): this Runner has no store, so there is nothing to resume from. Give it the one that the run had: Runner(..., store=...).")


def _release(system: ActorSystem) -> None:
    """A run of a system of its own has ended: leave no thread behind, if it was the last."""
    if not system.roots:
        system.workers.release()


def as_messages(given: str | Message | Sequence[Message]) -> tuple[Message, ...]:
    """What was given as messages, as a tuple of them."""
    if type(given) is tuple and len(given) == 1 and type(given[0]) is Message:
        return given
    if isinstance(given, str):
        return (Message("user", given),)
    if isinstance(given, Message):
        return (given,)
    messages = tuple(given) if isinstance(given, Iterable) else (given,)
    for message in messages:
        if not isinstance(message, Message):
            msg = f"messages: {message!r} is no Message. Write Message.user('...'), or give a plain text."
            raise UsageError(msg)
    return messages
