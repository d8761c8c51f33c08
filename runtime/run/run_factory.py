"""What makes the runs of one Runner, and chooses where each lives.

Owns: the settings that all of its runs share, and the systems that runs have which were given none. It must never keep anything of a run.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..actor.current import current_system
from ..actor.direct import send_now
from ..agent.history import HistoryPolicy, HistoryRewriter
from ..agent.hooks import RunHooks, hooks_of_a_run
from ..agent.options import Options, OptionsLike, as_options
from ..agent.override import current_override
from ..agent.run_context import RunContext
from ..agent.run_messages import Open
from ..agent.session_values import SessionValues
from ..agent.tree import Node
from ..codec.kept_values import check_values
from ..data.agent_input import AgentInput
from ..data.chat import Message, new_id
from ..durability.open_mark import UnfinishedRun
from ..durability.persistence import RunPersistence
from ..durability.store_access import StoreAccess
from ..errors import UsageError
from ..quick_init import maker
from ..system.loop_door import LoopDoor, running_loop
from ..system.spawning import spawn_inner
from ..system.state import SystemState
from ..system.system import ActorSystem
from .event_log import EventLog
from .opening import Opening
from .run import OnLeave, Run
from .run_record import RunRecord
from .run_supervisor import RunSupervisor

if TYPE_CHECKING:
    from ..actor.loop_cell import LoopCell
    from ..sessions.turn import Turn

__all__ = ["RunFactory", "RunSettings"]

# A member is looked up by a name of its class, which takes long.
_CANCELS: Final = OnLeave.CANCELS
_STAYS: Final = OnLeave.STAYS
_new_input: Final = maker(AgentInput)
_NEW: Final = SystemState.NEW
_STOPPED: Final = SystemState.STOPPED


class RunSettings(NamedTuple):
    """What all runs of a Runner share."""

    hooks: RunHooks | None
    steps: bool
    """Whether each step is recorded."""
    max_transfers: int
    event_buffer: int
    skip_transfers: bool
    handoff_input_filter: Callable[..., object] | None
    version: str | None
    """Of the program, for the marks of its runs."""
    history: HistoryPolicy | HistoryRewriter | None
    """Of the agents that have none of their own."""
    coalesce_deltas: bool = True
    """Whether pieces of one message go together to a consumer that is slow."""


class RunFactory:
    """Makes runs of one tree of agents."""

    def __init__(self, tree: Node, system: ActorSystem | None, access: StoreAccess | None, settings: RunSettings) -> None:
        self.tree = tree
        self.access = access
        self.settings = settings
        self.starting = threading.Lock()  # for all of them: a start from another thread takes no time
        self._system = system
        self._systems: dict[asyncio.AbstractEventLoop, ActorSystem] = {}  # of the loops that are not closed, as far as is known

    def context(
        self, session_id: str | None, session_values: Mapping[str, Any] | None, options: OptionsLike, users: object = None, run_id: str | None = None
    ) -> RunContext:
        if session_id is not None and (not isinstance(session_id, str) or not session_id):
            msg = f"run(session_id={session_id!r}): give a text that is not empty, or leave it out."
            raise UsageError(msg)
        given = () if options is None else as_options(options)
        context = self._context(run_id or new_id(), session_id, SessionValues(session_values), given)
        context.context = users
        return context

    def _context(self, run_id: str, session_id: str | None, session: SessionValues, options: tuple[Options, ...]) -> RunContext:
        settings = self.settings
        hooks, override = hooks_of_a_run(settings.hooks), current_override(self)
        return RunContext(run_id, session_id, session, options, hooks, settings.skip_transfers, settings.handoff_input_filter, settings.history, override)

    def unfinished(
        self, context: RunContext, checkpoint_id: str | None, keep: float | None, input_mark: str | None = None, labels: Mapping[str, str] | None = None
    ) -> UnfinishedRun:
        """The run as its mark in the store will have it."""
        settings = self.settings
        return UnfinishedRun(
            context.run_id,
            self.tree.name,
            checkpoint_id or context.run_id,
            settings.steps,
            context.session_id,
            settings.version,
            keep=keep,
            input=input_mark,
            labels=labels or {},
        )

    def plain(self, messages: tuple[Message, ...], streaming: bool) -> Run:  # noqa: FBT001 -- for speed
        """A run that is given messages and nothing else, and is kept nowhere: most are such."""
        settings = self.settings
        record = RunRecord(self._context(new_id(), None, SessionValues(), ()), self.tree.name, settings.event_buffer)
        if not settings.coalesce_deltas:
            record.keep_apart()
        run = Run(self, (EventLog(_new_input(messages, streaming), record, None), None, None), _CANCELS)
        self._start(run)
        return run

    def make(
        self,
        context: RunContext,
        given: AgentInput,
        persistence: RunPersistence | None,
        opening: Opening | None,
        timeout: float | None,
        turn: Turn | None = None,
        on_leave: OnLeave = _CANCELS,
        *,
        start: bool = True,
    ) -> Run:
        context.keeps = persistence is not None
        if persistence is not None or turn is not None:
            context.session.guard(check_values)
        record = RunRecord(context, self.tree.name, self.settings.event_buffer)
        record.is_recoverable = persistence is not None and persistence.journal is not None
        if not self.settings.coalesce_deltas:
            record.keep_apart()
        if turn is not None:
            record.turn = turn
            record.when_finished(turn.abandon)
        if persistence is not None and opening is not None:
            record.when_finished(persistence.own.abandon)
        if on_leave is _STAYS:
            record.never_waits()
        run = Run(self, (EventLog(given, record, persistence), opening, timeout), on_leave)
        if start:
            self._start(run)
        return run

    def _start(self, run: Run) -> None:
        """Let it begin, if an event loop is running here."""
        loop = running_loop()
        if loop is None:
            return
        system = (self._systems.get(loop) if self._system is None else None) or self._system_on(loop)
        if system.dispatcher.thread == get_ident():
            run.start_here(system)
        else:
            run.start()

    # --- where ---

    def choose_system(self) -> ActorSystem:
        """The system in which a run lives that is started here."""
        loop = running_loop()
        if loop is not None or self._system is not None:
            return self._system_on(loop)
        default = current_system()  # in its own thread, because no loop is running in this one
        system = LoopDoor(default, "a run").block(self._own_system_there, "Runner.run()", "async with ActorSystem()")
        assert system is not None
        return system

    def _system_on(self, loop: asyncio.AbstractEventLoop | None) -> ActorSystem:
        system = self._system
        if system is not None:
            if system.state is _NEW:
                msg = f"Runner(system=...): {system.not_entered}"
                raise UsageError(msg)
            if system.state is _STOPPED:
                msg = f"Runner(system=...): {system!r} is stopped. Make a new system, and a Runner in it."
                raise UsageError(msg)
            return system
        assert loop is not None
        return self._own_system(loop)

    async def _own_system_there(self) -> ActorSystem:
        return self._own_system(asyncio.get_running_loop())

    def _own_system(self, loop: asyncio.AbstractEventLoop) -> ActorSystem:
        system = self._systems.get(loop)
        if system is None:
            for known in [known for known in tuple(self._systems) if known.is_closed()]:
                self._systems.pop(known, None)
            system = self._systems[loop] = ActorSystem(f"runner-of-{self.tree.name}")
            system.bind(loop, for_one=True)
        return system

    def launch(self, system: ActorSystem, event_log: EventLog, opening: Opening | None, timeout: float | None) -> LoopCell:
        """Start a run, on the system's loop."""
        cell = spawn_inner(system, RunSupervisor, (self.tree, event_log, self.settings.max_transfers, timeout, opening))
        cell.args = ()  # it is not started again
        if opening is not None:
            send_now(cell, Open())
        return cell
