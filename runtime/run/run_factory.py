"""The factory for the runs of one Runner, which also chooses the system of each run.

It holds the settings that all these runs share, and the default systems for runs without one. It
stores nothing about a single run.
"""

from __future__ import annotations

import asyncio
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
from ..durability.run_store import RunStore
from ..durability.store_access import StoreAccess
from ..durability.unfinished_run import UnfinishedRun, definitions_of
from ..errors import UsageError
from ..system.loop_bridge import LoopBridge, refuse_trio, running_loop
from ..system.state import SystemState
from ..system.system import ActorSystem
from .background import Background
from .event_log import EventLog
from .follow.following import Following
from .follow.live_runs import LiveRun
from .opening import Opening, Rules
from .run import OnLeave, Run
from .run_progress import RunProgress
from .run_supervisor import RunSupervisor

if TYPE_CHECKING:
    from ..actor.loop_cell import LoopCell
    from ..sessions.turn import Turn

__all__ = ["RunFactory", "RunSettings"]

# Python 3.11 takes 0.1 µs to read a member from its class: all together, 10 % of a one-turn run.
_CANCELS: Final = OnLeave.CANCELS
_STAYS: Final = OnLeave.STAYS
_NEW: Final = SystemState.NEW
_STOPPED: Final = SystemState.STOPPED


class RunSettings(NamedTuple):
    """The settings that all runs of a Runner share."""

    hooks: RunHooks | None
    steps: bool
    """True if each step is recorded."""
    max_transfers: int
    event_buffer: int
    skip_transfers: bool
    handoff_input_filter: Callable[..., object] | None
    version: str | None
    """The program's version, stored with each of its runs."""
    history: HistoryPolicy | HistoryRewriter | None
    """The policy for agents that have none."""
    coalesce_deltas: bool = True
    """True if deltas of one message are merged for a slow consumer."""
    app: str | None = None
    """The program's name, stored with each of its runs: no other program recovers them."""


class RunFactory:
    """Creates the runs of one tree of agents."""

    def __init__(
        self,
        tree: Node,
        system: ActorSystem | None,
        access: StoreAccess | None,
        settings: RunSettings,
    ) -> None:
        self.tree = tree
        self.access = access
        self.background: Background | None = None  # set by a Runner with a store
        self.settings = settings
        self.rules = Rules()
        self.version = settings.version  # a host in a cluster uses the cluster's version
        self.definitions = (
            None if settings.app is not None or access is None else definitions_of(tree)
        )
        self._system = system
        # The system that started a run last on this loop, as most runs start there again.
        self._last: ActorSystem | None = None

    def context(
        self,
        session_id: str | None,
        session_values: Mapping[str, Any] | None,
        options: OptionsLike,
        users: object = None,
        run_id: str | None = None,
    ) -> RunContext:
        if session_id is not None and (not isinstance(session_id, str) or not session_id):
            msg = (
                "run(): session_id must be a string that is not empty, "
                f"got {session_id!r}. Leave it out for a run without a session."
            )
            raise UsageError(msg)
        given = () if options is None else as_options(options)
        context = self._context(
            run_id or new_id(), session_id, SessionValues(session_values), given
        )
        context.context = users
        return context

    def _context(
        self,
        run_id: str,
        session_id: str | None,
        session: SessionValues,
        options: tuple[Options, ...],
    ) -> RunContext:
        settings = self.settings
        hooks, override = hooks_of_a_run(settings.hooks), current_override(self)
        context = RunContext(
            run_id,
            session_id,
            session,
            options,
            hooks,
            skip_transfers=settings.skip_transfers,
            handoff_input_filter=settings.handoff_input_filter,
            history=settings.history,
            override=override,
        )
        context.background = self.background
        return context

    def unfinished(
        self,
        context: RunContext,
        checkpoint_id: str | None,
        keep: float | None,
        input_mark: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> UnfinishedRun:
        """Return the run's entry for the store."""
        settings = self.settings
        return UnfinishedRun(
            context.run_id,
            self.tree.name,
            checkpoint_id or context.run_id,
            settings.steps,
            context.session_id,
            self.version,
            keep=keep,
            input=input_mark,
            labels=labels or {},
            app=settings.app,
            definitions=self.definitions,
        )

    def plain(self, messages: tuple[Message, ...], *, streaming: bool) -> Run:
        """Create a run from messages alone, without a store, as most runs are.

        `make`, and the calls that lead to it, would add 5 % to a one-turn run.
        """
        settings = self.settings
        progress = RunProgress(
            self._context(new_id(), None, SessionValues(), ()),
            self.tree.name,
            settings.event_buffer,
        )
        if not settings.coalesce_deltas:
            progress.keep_apart()
        run = Run(
            self, (EventLog(AgentInput(messages, streaming), progress, None), None, None), _CANCELS
        )
        self._start(run)
        return run

    def make(
        self,
        context: RunContext,
        given: AgentInput,
        persistence: RunStore | None,
        opening: Opening | None,
        timeout: float | None,
        turn: Turn | None = None,
        on_leave: OnLeave = _CANCELS,
        *,
        start: bool = True,
        at_once: bool = False,
    ) -> Run:
        context.keeps = persistence is not None
        context.checkpoint_id = None if persistence is None else persistence.checkpoint_id
        if persistence is not None or turn is not None:
            context.session.guard(check_values)
        progress = RunProgress(context, self.tree.name, self.settings.event_buffer)
        progress.is_recoverable = persistence is not None and persistence.journal is not None
        if not self.settings.coalesce_deltas:
            progress.keep_apart()
        if turn is not None:
            progress.turn = turn
            progress.when_finished(turn.abandon)
        if persistence is not None and opening is not None:
            progress.when_finished(persistence.abandon)
        if on_leave is _STAYS:
            progress.never_waits()
        run = Run(self, (EventLog(given, progress, persistence), opening, timeout), on_leave)
        if start:
            self._start(run, at_once=at_once)
        return run

    def follow(self, access: StoreAccess, run_id: str, after: int, *, waits: bool) -> Run:
        """Create a run that only follows a stored run."""
        opening = Following(access, self.tree.name, run_id, after, waits=waits)
        run = self.make(
            self.context(None, None, None, run_id=run_id), AgentInput(), None, opening, None
        )
        return run.forward_cancel(opening.stop)

    def _start(self, run: Run, *, at_once: bool = False) -> None:
        """Start the run if an event loop is running here.

        `at_once` starts it even without a loop, because its caller may never use it again.
        """
        loop = running_loop()
        if loop is None:
            if at_once:
                run.start()
            return
        system = self._last
        if system is None or system.loop is not loop or system.closing:
            try:
                system = self._system_on(loop)
            except UsageError:
                run.set_told()
                raise
            self._last = system if self._system is None else None
        if system.dispatcher.thread == get_ident():
            run.start_here(system)
        else:
            run.start()

    # --- choosing a system ---

    def choose_system(self) -> ActorSystem:
        """Return the system for a run that is started here."""
        loop = running_loop()
        if loop is not None or self._system is not None:
            return self._system_on(loop)
        refuse_trio("a run")
        default = current_system()  # it has its own thread, because no loop is running in this one
        known = _systems.get(default.loop)
        if known is not None and not known.closing:
            return known
        system = LoopBridge(default, "a run").block(
            self._loop_system_there, "Runner.run()", "async with ActorSystem()"
        )
        assert system is not None
        return system

    def _system_on(self, loop: asyncio.AbstractEventLoop | None) -> ActorSystem:
        system = self._system
        if system is not None:
            if system.state is _NEW:
                msg = f"Runner(system=...): {system.not_entered}"
                raise UsageError(msg)
            if system.state is _STOPPED:
                msg = (
                    f"Runner(system=...): {system!r} is stopped. Make a new system, and a Runner "
                    "in it."
                )
                raise UsageError(msg)
            if system.fault is not None:
                system.check()
            return system
        assert loop is not None
        return _system_of(loop)

    async def _loop_system_there(self) -> ActorSystem:
        return _system_of(asyncio.get_running_loop())

    def launch(
        self,
        system: ActorSystem,
        event_log: EventLog,
        opening: Opening | None,
        timeout: float | None,
    ) -> LoopCell:
        """Start a run, on the system's loop."""
        live, progress, persistence = None, event_log.progress, event_log.persistence
        if persistence is not None:
            system.end_with_loop()  # a run that is cancelled at its end is saved before
        if persistence is not None and persistence.access.is_fenced:
            live = progress.live = LiveRun(persistence.access, progress, system)
        cell = system.spawn_own(
            RunSupervisor,
            (self.tree, event_log, self.settings.max_transfers, timeout, opening),
            None,
            None,
        )
        cell.args = ()  # it is not restarted
        if live is not None:
            live.begin(cell)
        if opening is not None:
            send_now(cell, Open())
        return cell


# One system per loop serves all Runners without one. It is one owner in a store, released when the
# loop ends.
_systems: Final[dict[asyncio.AbstractEventLoop, ActorSystem]] = {}


def _system_of(loop: asyncio.AbstractEventLoop) -> ActorSystem:
    """Return the system of the loop that runs in this thread."""
    system = _systems.get(loop)
    if system is None or not system.is_running:
        for known, of_known in tuple(_systems.items()):
            if known.is_closed() or of_known.fault is not None:
                _systems.pop(known, None)
        system = _systems[loop] = ActorSystem("runners")
        system.bind(loop, for_one=True)
    return system
