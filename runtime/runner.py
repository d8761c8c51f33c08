"""The main entry point: a definition that can run any number of times at once.

`Runner` builds and checks the agent tree once, and chooses the system of each run. It stores
nothing about its runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, Unpack

from .actor.host import Host
from .agent.history import HistoryPolicy, HistoryRewriter, check_history
from .agent.hooks import RunHooks, check_hooks
from .agent.options import OptionsLike, as_options, as_tool_options
from .agent.override import override_of
from .agent.run_context import RunContext
from .agent.tree import Definition, build_tree
from .blocking import BlockingRunner
from .data.agent_input import AgentInput, as_messages
from .data.chat import Message, new_id
from .data.interrupt import InterruptContext
from .data.output_type import OutputT_co
from .data.posts import Boundary, Posted
from .data.run_info import RunInfo
from .data.run_result import RunStatus
from .durability.answers import Answers, Verdict
from .durability.checkpoint import check_checkpoint_id, check_run_id
from .durability.kept_outcome import seconds_kept
from .durability.last_lives import last_lives_of
from .durability.leases import Busy
from .durability.recovery import Search, find_unfinished, retry_stuck, stuck_runs
from .durability.run_labels import checked_labels
from .durability.run_row import read_entry
from .durability.run_store import RunStore
from .durability.store_access import StoreAccess
from .durability.timers import Timer
from .durability.unfinished_run import UnfinishedRun, definitions_of, input_mark
from .errors import CheckpointNotFound, RunEnded, RunLost, RunNotFound, UsageError
from .log import loggers
from .option_names import store_meant, suggests_option, suggests_options
from .run.approving import check_arguments, shown_interrupt, stored_interrupt
from .run.attending import Attending, AttendingSettings, check_attending
from .run.background import Background, TaskLimits
from .run.event_log import EventLog
from .run.kept.forgetting import forget_session
from .run.kept.kept_life import KeptLife, read_life
from .run.kept.kept_runs import (
    PAGE,
    StatusLike,
    fenced,
    forget_stored,
    list_runs,
    listing,
    run_info,
)
from .run.kept.pruning import prune_unreachable
from .run.map_progress import ProgressLike
from .run.mapping import RunMap, map_of
from .run.opening import (
    Beginning,
    BeginningOnce,
    LookingFirst,
    Opening,
    RecoveringAlone,
    Resuming,
    Rules,
)
from .run.recovery_loop import RecoveryLoop, start_at_most
from .run.run import OnLeave, Run
from .run.run_factory import RunFactory, RunSettings
from .run.run_options import Given, SearchOptions
from .run.schedules import Missed, Overlap, ScheduleInfo, Schedules, new_schedule
from .session import Session, check_busy, check_inbox, check_session_id, check_start
from .sessions.inbox import Inbox, InboxFilter
from .sessions.session_policy import SessionPolicyLike
from .sessions.turn import Start, Turn
from .stores import Store
from .system.loop_bridge import LoopBridge, running_loop
from .system.system import ActorSystem
from .unpicklable import Unpicklable

if TYPE_CHECKING:
    from .data.run_result import RunResult
    from .models import ChatModel
    from .observe.timeline import Timeline
    from .run.run_options import RunOptions

__all__ = ["Runner"]

T = TypeVar("T")

_DURABILITIES: Final = ("none", "interrupt", "step")
_NOT_KEPT: Final = (
    "but its runs are not stored, so a run that waits for an answer cannot be resumed. Pass the "
    "Runner a store: store=SQLiteStore('runs.db')."
)
_NO_ID: Final = (
    "resume({!r}): checkpoint_id must be the `checkpoint_id` of a run, which is a string. A "
    "run without a store has none, and cannot be resumed. "
    "Pass its Runner a store: store=SQLiteStore('runs.db')."
)
_NO_INPUT: Final = AgentInput()
_LONGEST_APP: Final = 200
_TASK_KEPT: Final = 7 * 86_400.0
"""Seconds for which the result of a background task is retained at least."""
_KEPT_AT_LEAST: Final = 600.0
"""Seconds for which the result of a run with a `run_id` is retained at least.

Its caller may ask for it again.
"""


@suggests_options
class Runner(Unpicklable, Generic[OutputT_co]):
    """Runs an agent with all of its sub-agents.

        runner = Runner(agent)
        async for event in runner.query("What is the weather in Paris?"): ...
        result = runner.query("And in Rome?").result()       # where no event loop is running

    Without `system`, the runs share a system on the loop where they start; nothing of it remains
    once they have ended. `history` applies to all agents that have no policy. `app` names the
    program: only Runners with the same `app` recover its runs.
    """

    __why_not_pickled__ = (
        "its store and its runs belong to this process. Make a Runner in each process, of the "
        "same agent and with a store of its own."
    )

    def __init__(
        self,
        agent: Definition[OutputT_co],
        *,
        system: ActorSystem | None = None,
        store: Store | None = None,
        streaming: bool = False,
        durability: Literal["none", "interrupt", "step"] = "interrupt",
        max_transfers: int = 100,
        hooks: RunHooks | None = None,
        event_buffer: int = 1024,
        keep: Literal["unfinished", "all"] | float | None = None,
        version: str | None = None,
        app: str | None = None,
        skip_transfer_messages: bool = False,
        handoff_input_filter: Callable[[Any], object] | None = None,
        history: HistoryPolicy | HistoryRewriter | None = None,
        coalesce_deltas: bool = True,
    ) -> None:
        if system is not None and not isinstance(system, ActorSystem):
            msg = (
                f"Runner: system must be an ActorSystem, got {system!r}. Enter one with "
                "`async with ActorSystem() as system`, or leave it out."
            )
            raise UsageError(msg)
        if durability not in _DURABILITIES:
            msg = f"Runner: durability must be 'none', 'interrupt' or 'step', got {durability!r}."
            raise UsageError(msg)
        for number, least, name in (
            (event_buffer, 1, "event_buffer"),
            (max_transfers, 0, "max_transfers"),
        ):
            if number < least:
                msg = f"Runner: {name} must be {least} or more, got {number}."
                raise UsageError(msg)
        access, self._keep = (
            _access_of(store, durability),
            seconds_kept(keep, steps=durability == "step"),
        )
        if handoff_input_filter is not None and not callable(handoff_input_filter):
            msg = (
                "Runner: handoff_input_filter must be a function of HandoffInputData, "
                f"got {handoff_input_filter!r}."
            )
            raise UsageError(msg)
        if app is not None and (not isinstance(app, str) or not 0 < len(app) <= _LONGEST_APP):
            msg = (
                f"Runner: app must be the name of the program, a string of 1 to {_LONGEST_APP} "
                f"characters, got {app!r:.80}. Shorten it, or leave it out."
            )
            raise UsageError(msg)
        check_history(history, "Runner")
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
        self.history: HistoryPolicy | HistoryRewriter | None = history
        self._left_alone: dict[str, None] = {}
        self._tree = build_tree(agent)
        for node in (node for tree in self._tree.trees() for node in tree.walk()):
            check = getattr(node.agent, "check", None)
            if check is not None:
                check(node)
            if (access is None or durability == "none") and (
                asking := getattr(node.agent, "asks_approval", ())
            ):
                loggers.runner.warning(
                    "Agent %r has tools that need approval (%s), %s",
                    node.name,
                    ", ".join(asking),
                    _NOT_KEPT,
                )
        if access is not None and durability != "none":
            check_run_id(new_id(), self._tree.name)
        steps, skips = durability == "step", skip_transfer_messages
        settings = RunSettings(
            hooks,
            steps,
            max_transfers,
            event_buffer,
            skips,
            handoff_input_filter,
            version,
            history,
            coalesce_deltas,
            app,
        )
        self._factory = RunFactory(self._tree, system, access, settings)
        self._access = access
        self._background = Background(access, self._tree.name, self._task_runner, TaskLimits())
        if access is not None:
            self._factory.background = self._background
            self._background.know(self._tree)

    def __repr__(self) -> str:
        return f"<Runner of {self._tree.name!r}>"

    def _task_runner(self, agent: Definition) -> Runner:
        """Return the Runner of an agent that works in the background."""
        keep = self._keep if self._keep is None else max(self._keep, _TASK_KEPT)
        made: Runner[Any] = Runner(
            agent,
            system=self.system,
            store=self.store,
            durability="step",
            max_transfers=self.max_transfers,
            hooks=self.hooks,
            keep="all" if keep is None else keep,
            version=self._factory.version,
            app=self._factory.settings.app,
        )
        made._background.share(self._background)
        return made

    @property
    def blocking(self) -> BlockingRunner[OutputT_co]:
        """The Runner's blocking form, for synchronous code.

        Examples: `runner.blocking.query("hello").text`, `runner.blocking.pending()`.
        """
        return BlockingRunner(self)

    def query(self, text: str, **options: Unpack[RunOptions]) -> Run[OutputT_co]:
        """Run with one user message. The options are those of `run`."""
        if not isinstance(text, str):
            msg = f"query(): text must be a string, got {text!r}. Pass messages to run([...])."
            raise UsageError(msg)
        if options or self._access is not None or type(self).run is not _RUN:
            return self.run((Message("user", text),), **options)
        return self._factory.plain((Message("user", text),), streaming=self.streaming)

    def run_sync(
        self, messages: str | Message | Sequence[Message], **options: Unpack[RunOptions]
    ) -> RunResult[OutputT_co]:
        """Run, and block until the run has ended. In a coroutine, write `await runner.run(...)`."""
        if running_loop() is not None:
            msg = "run_sync() would block the running event loop. Write `await runner.run(...)`."
            raise UsageError(msg)
        return self.run(messages, **options).result()

    @suggests_option("Runner.run")
    def run(
        self,
        messages: str | Message | Sequence[Message],
        *,
        checkpoint_id: str | None = None,
        session_id: str | None = None,
        session_values: Mapping[str, object] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        run_id: str | None = None,
        detached: bool = False,
        labels: Mapping[str, str] | None = None,
        context: object = None,
    ) -> Run[OutputT_co]:
        """Run with these messages.

        The run starts now if an event loop is running here, otherwise when it is first used:
        `result()`, an iteration, `start()`. A `detached` run, or one with a `run_id`, starts now in
        any case. Without a running loop it starts on the loop of the Runner's system, or of the
        default system.

        Agents and hooks can read `session_id`; use `session(...)` for a stored conversation.
        `context` is your own object, available to hooks, handoff callbacks and tools as
        `context.run.context`. If the codec can write it (plain data, registered types), it is
        stored with the run and restored on resume or recovery; otherwise it is None then.

        `run_id` makes the request idempotent: a second call with the same id, from any process,
        follows the run or gets its result, which is retained for at least ten minutes. A `detached`
        run needs no consumer and continues when its consumer leaves; `attach(run_id)` follows it.

        `labels` are strings for `runs(labels=...)`: at most 16, with names of up to 64 characters
        and values of up to 256.
        """
        own = self._factory.context(
            session_id,
            session_values,
            options,
            context,
            None if run_id is None else check_run_id(run_id, self._tree.name),
        )
        given = Given(
            messages,
            checkpoint_id,
            streaming,
            timeout,
            run_id is not None,
            detached,
            checked_labels("run", labels),
        )
        return self._begin(given, own, None)

    def _begin(self, wanted: Given, context: RunContext, turn: Turn | None) -> Run[OutputT_co]:
        messages, checkpoint_id, streaming, timeout, is_named, detached, labels = wanted
        if timeout is not None and (not isinstance(timeout, int | float) or not timeout > 0):
            msg = (
                "run(): timeout must be a number of seconds above 0, or None for no limit, "
                f"got {timeout!r:.80}."
            )
            raise UsageError(msg)
        given = AgentInput(
            as_messages(messages), self.streaming if streaming is None else streaming
        )
        persistence: RunStore | None = None
        if self._access is not None or checkpoint_id is not None:
            is_fenced = self._access is not None and self._access.is_fenced
            keep = self._keep if is_fenced else 0.0
            if (is_named or detached) and keep is not None and is_fenced:
                keep = max(keep, _KEPT_AT_LEAST)
            persistence = self._persistence(
                context, checkpoint_id, keep, input_mark(given) if is_named else None, labels
            )
        opening: Opening | None = None
        if is_named:
            if persistence is None:
                msg = (
                    f"run(run_id={context.run_id!r}): a run_id needs a Runner with a "
                    "store and durability='step' or 'interrupt', which record it. Pass both."
                )
                raise UsageError(msg)
            persistence.access.require_fences("run(run_id=...)")
            opening = BeginningOnce(self._tree, self._factory.rules)
        elif turn is not None or (
            persistence is not None
            and (persistence.journal is not None or persistence.keeps_outcome)
        ):
            opening = Beginning()
        elif persistence is not None and persistence.access.looks_first:
            opening = LookingFirst()
        return self._factory.make(
            context,
            given,
            persistence,
            opening,
            timeout,
            turn,
            self._on_leave(detached=detached),
            at_once=is_named or detached,
        )

    def _on_leave(self, *, detached: bool) -> OnLeave:
        return (
            OnLeave.STAYS
            if detached
            else OnLeave.RESTS
            if self.durability == "step"
            else OnLeave.CANCELS
        )

    def map(
        self,
        inputs: Iterable[T] | AsyncIterable[T],
        *,
        ask: Callable[[T], str | Message | Sequence[Message]] | None = None,
        key: Callable[[T], str] | None = None,
        concurrency: int = 50,
        progress: ProgressLike = True,
        on_error: Literal["collect", "raise"] = "collect",
        order: Literal["completion", "input"] = "completion",
        retry_failed: bool = False,
        **run_options: Unpack[RunOptions],
    ) -> RunMap[T, OutputT_co]:
        """Run over many inputs, `concurrency` of them at once.

            async for result in runner.map(documents, key=lambda document: document.id): ...

        Each input is the message of a run, or `ask` makes the message from it. `key` sets each
        run's `run_id`: after Ctrl-C or a crash, a second call takes finished results from the store
        and runs the rest. With `retry_failed`, it also restarts runs that failed, were cancelled or
        are stuck. A failed run is returned like any other result (`on_error="collect"`), or ends
        the iteration (`"raise"`). Results come in the order of completion, or of the inputs.
        Progress is shown as a bar if the package rich is installed and there is a terminal, or
        passed to a function.
        """
        forget = self._forget_failed if retry_failed else None
        system, has_store = self._factory.choose_system, self.store is not None
        return map_of(
            self.run,
            inputs,
            ask,
            run_options,
            key,
            concurrency,
            progress,
            on_error,
            order,
            system,
            has_store,
            forget,
        )

    @suggests_option("Runner.session")
    def session(
        self,
        session_id: str,
        *,
        busy: Busy = "queue",
        policy: SessionPolicyLike = None,
        start: Start = "root",
        inbox: InboxFilter | None = None,
        settle: float = 0.0,
        while_interrupted: Literal["wait", "turn"] = "turn",
        max_pending: int = 1000,
    ) -> Session[OutputT_co]:
        """Open a stored conversation, which processes one message at a time across all processes.

        While it is busy, another message waits for its turn (`busy="queue"`), fails with
        `SessionBusy` (`"reject"`), or interrupts the running one (`"preempt"`). `policy` limits the
        earlier messages that models see: `keep_last(20)`, `summarize(model)`, or a function of the
        messages. A turn starts with the root agent. With `start="last"` it starts with the agent
        that ended the last turn, so a user stays with the agent after a handoff; a part of a
        workflow does not count. If no agent has that name any longer, the turn starts with the root
        and a warning is logged.

        The other options are for posts. `inbox` is given the posts that could be heard now, and
        returns those to hear; the others stay. Posts start a turn when none has arrived for
        `settle` seconds, and, with `while_interrupted="wait"`, when no run of the session waits for
        an answer. `post()` raises `InboxFull` while `max_pending` posts wait.
        """
        check_session_id(session_id)
        check_busy(busy)
        check_start(start)
        check_inbox(inbox, settle, while_interrupted, max_pending)
        store_access = self._access
        if store_access is None:
            msg = (
                f"session({session_id!r}): the Runner has no store to persist the session in. Pass "
                "it one: store=SQLiteStore('runs.db') or store=MemoryStore()."
            )
            raise UsageError(msg)
        store_access.require_fences(f"session({session_id!r})")
        return Session(
            store_access,
            session_id,
            busy,
            policy,
            self._run_in_session,
            self._factory.choose_system,
            start,
            Inbox(
                store_access,
                self._tree.name,
                session_id,
                max_pending=max_pending,
                choose=inbox,
                waits_for_answers=while_interrupted == "wait",
            ),
            settle,
            self._background,
            lambda run_id, after: self.attach(run_id, after=after),
        )

    @suggests_option("Session.run")
    def _run_in_session(
        self,
        messages: str | Message | Sequence[Message],
        turn: Turn,
        *,
        checkpoint_id: str | None = None,
        session_values: Mapping[str, object] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        run_id: str | None = None,
        detached: bool = False,
        labels: Mapping[str, str] | None = None,
        context: object = None,
    ) -> Run[OutputT_co]:
        own = self._factory.context(
            turn.session_id,
            session_values,
            options,
            context,
            None if run_id is None else check_run_id(run_id, self._tree.name),
        )
        given = Given(
            messages,
            checkpoint_id,
            streaming,
            timeout,
            run_id is not None,
            detached,
            checked_labels("run", labels),
        )
        return self._begin(given, own, turn)

    @suggests_option("Runner.resume")
    def resume(
        self,
        checkpoint_id: str,
        targets: Mapping[str, object] | None = None,
        *,
        data: object = None,
        tool_options: OptionsLike = None,
        session_values: Mapping[str, object] | None = None,
        options: OptionsLike = None,
        streaming: bool | None = None,
        timeout: float | None = None,
        context: object = None,
        answer_id: str | None = None,
    ) -> Run[OutputT_co]:
        """Continue a run that was interrupted or cancelled.

        Without `targets`, every interrupt is answered: with `data`, or with nothing. `targets` maps
        interrupt ids to data; the other interrupts keep waiting. An interrupt is answered once; a
        second answer fails with `ResumeError`.

        The `checkpoint_id` of a paused run, of `info()` or of `pending()` answers only that
        checkpoint. A plain string answers the current interrupts, except calls that need approval:
        see `approve`. `"id@2"` names the second checkpoint; if that was already answered, the run
        continues as a branch. It streams as before, unless `streaming` is set. With an `answer_id`
        the same answer may be sent again, from any process: if the store already has it, the run is
        followed.
        """
        if not isinstance(checkpoint_id, str) or not checkpoint_id:
            raise UsageError(_NO_ID.format(checkpoint_id))
        own = self._factory.context(
            None, session_values, (*as_tool_options(tool_options), *as_options(options)), context
        )
        return self._answered(
            str(checkpoint_id),
            Answers(targets, data, checkpoint_id, answer_id),
            own,
            timeout,
            streaming=streaming,
        )

    def approve(
        self,
        interrupt: InterruptContext | str,
        arguments: str | Mapping[str, object] | None = None,
        *,
        answer_id: str | None = None,
    ) -> Run[OutputT_co]:
        """Approve one call and continue its run, with the call's own arguments or with `arguments`.

        `interrupt` is one of `result.interrupts`, of `info.waiting` or of the interrupts in
        `pending()`, or its id. The run's other interrupts keep waiting. If the call no longer
        waits, because it was answered or the run has ended, the run fails with `ResumeError` and
        nothing is called. With an `answer_id` the same answer may be sent again, from any process:
        if the store already has it, the run is followed.
        """
        check_arguments(arguments)
        verdict = Verdict(True, arguments, shown=shown_interrupt(interrupt))
        return self._verdict("approve", interrupt, verdict, answer_id)

    def deny(
        self, interrupt: InterruptContext | str, reason: str = "", *, answer_id: str | None = None
    ) -> Run[OutputT_co]:
        """Deny one call and continue its run. The model receives the denial and the `reason`.

        `interrupt` and `answer_id` are as for `approve`.
        """
        if not isinstance(reason, str):
            msg = f"deny: reason must be a string, which the model receives, got {reason!r:.80}."
            raise UsageError(msg)
        verdict = Verdict(False, reason=reason, shown=shown_interrupt(interrupt))
        return self._verdict("deny", interrupt, verdict, answer_id)

    def _verdict(
        self, call: str, interrupt: InterruptContext | str, verdict: Verdict, answer_id: str | None
    ) -> Run[OutputT_co]:
        checkpoint_id, interrupt_id = stored_interrupt(call, interrupt)
        return self._answered(
            checkpoint_id,
            Answers.to(interrupt_id, verdict, checkpoint_id, answer_id),
            self._factory.context(None, None, None),
        )

    def _answered(
        self,
        checkpoint_id: str,
        answers: Answers,
        own: RunContext,
        timeout: float | None = None,
        *,
        streaming: bool | None = None,
        detached: bool = False,
    ) -> Run[OutputT_co]:
        if self._access is None:
            return self._factory.make(own, _NO_INPUT, None, _no_store, timeout, at_once=True)
        worker = self._background.known_runner_of(checkpoint_id)
        if isinstance(worker, Runner) and worker is not self:
            return worker._answered(
                checkpoint_id, answers, own, timeout, streaming=streaming, detached=detached
            )
        keep = self._keep if self._access.is_fenced else 0.0
        leave = self._on_leave(detached=detached)
        persistence = RunStore(
            self._access, self._tree, self._factory.unfinished(own, checkpoint_id, keep)
        )
        persistence.answer_id = answers.id
        return self._factory.make(
            own,
            _NO_INPUT,
            persistence,
            Resuming(persistence, answers, streaming=streaming),
            timeout,
            on_leave=leave,
            at_once=True,
        )

    # --- the runs in the store ---

    async def runs(
        self,
        status: StatusLike = None,
        session_id: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[RunInfo]:
        """List the runs in the store, of all agents and processes, newest first.

        A run must match every filter that is passed: one status or several, the session, the root
        agent, all `labels`, and a start at `since` or later and before `until` (a datetime, or
        seconds since 1970). At most `limit` runs are returned. `after` is the id of the last run of
        the previous page.

        A run is listed from its start with `durability="step"` or a `keep`, and from its first
        pause with `durability="interrupt"` alone. `keep` decides how long it is retained after its
        end. A run whose process crashed is `running` until `recover()` finds it.
        """
        access = listing(self._access, "runs()")
        return await list_runs(
            access, status, session_id, agent, labels, since, until, limit, after
        )

    async def info(self, run_id: str) -> RunInfo:
        """Return the store's information about a run, of any agent.

        Raises `CheckpointNotFound` if the run is unknown or no longer retained.
        """
        access = listing(self._access, "info()")
        return await run_info(access, check_run_id(run_id, self._factory.tree.name))

    async def life(self, run_id: str) -> KeptLife:
        """Return everything that the store has of a run, of any agent: events, pauses and end."""
        access = fenced(self._access, "life()")
        return await LoopBridge(self._factory.choose_system(), "life()").call(
            partial(read_life, access, run_id)
        )

    async def timeline(self, run_id: str) -> Timeline:
        """Return a run's timeline: the work of each process, the waits, and what a crash lost."""
        from .observe.timeline import timeline_of  # noqa: PLC0415 -- a higher package, which builds it

        return timeline_of(await self.life(run_id), self._factory.tree)

    def choose_system(self) -> ActorSystem:
        """Return the system for a run that is started here."""
        return self._factory.choose_system()

    async def pending(self) -> list[RunInfo]:
        """List all stored runs that wait for an answer, newest first.

        `waiting` holds a run's interrupts, and `updated` the time since when it waits.
        """
        found: list[RunInfo] = []
        while True:
            try:
                page = await self.runs(
                    RunStatus.INTERRUPTED, limit=PAGE, after=found[-1].id if found else None
                )
            except CheckpointNotFound:  # the run was removed at this moment
                found.clear()
                continue
            found += page
            if len(page) < PAGE:
                return found

    async def forget(self, run_id: str) -> None:
        """Remove everything that the store holds of a run: steps, checkpoints, result and entry.

        Its messages in a session stay. A running run is not removed: cancel it first. A run that
        waits for an answer, or is stuck, is lost for good.
        """
        await self._forget(run_id)

    async def _forget_failed(self, run_id: str) -> bool:
        """Remove a failed run, so that it can be started again.

        False if another caller has started it again.
        """
        try:
            await self._forget(run_id, only_failed=True)
        except RunLost:
            return False
        return True

    async def _forget(self, run_id: str, *, only_failed: bool = False) -> None:
        check_run_id(run_id, self._factory.tree.name)
        access, system = fenced(self._access, "forget()"), self._factory.choose_system()
        agent = self._factory.tree.name
        await LoopBridge(system, "forget()").call(
            partial(forget_stored, access, system, agent, run_id, only_failed=only_failed)
        )

    async def forget_session(self, session_id: str) -> int:
        """Remove a session: its turns, its values and all of its runs, of any agent.

        Returns the number of runs removed. It waits until the turns sent earlier are done. Runs
        that wait for an answer are lost for good. A run that is running or waits for its turn is
        not removed: a `UsageError` reports it, and the session stays until this is called again.
        The page "Backup and restore" lists the deleted data that a database retains.
        """
        if not isinstance(session_id, str) or not session_id:
            msg = f"forget_session: session_id must be a non-empty string, got {session_id!r:.80}."
            raise UsageError(msg)
        access, system = listing(self._access, "forget_session()"), self._factory.choose_system()
        return await LoopBridge(system, "forget_session()").call(
            partial(forget_session, access, system, self._tree.name, session_id)
        )

    async def prune(self, older_than: float | None = None) -> int:
        """Remove expired data from the store, and the data of unreachable runs.

        A run is unreachable if it is not listed, not unfinished, and not waiting. `older_than` is
        passed to `store.prune()`: it also removes everything that was not written for that many
        seconds. Returns the number of keys removed. It reads all checkpoints of the store, so call
        it only occasionally.
        """
        access = listing(self._access, "prune()")
        pruned = int(await access.store.prune(older_than))
        return pruned + await LoopBridge(self._factory.choose_system(), "prune()").call(
            partial(prune_unreachable, access)
        )

    async def stuck(self) -> list[UnfinishedRun]:
        """List this agent's stuck runs: each crashed its process too often, and was quarantined."""
        return await stuck_runs(fenced(self._access, "stuck()"), self._factory.tree.name)

    def attach(self, run_id: str, *, after: int = 0, wait: bool = False) -> Run[OutputT_co]:
        """Follow a run, queued or running in any process, or get the stored result of an ended one.

        Its events after number `after` come from the store. If the run is in this process and on
        this event loop, they come as they happen, including deltas. With `wait`, following
        continues through an interrupt to the end of the resumed run. Leaving the returned run stops
        the following, not the followed run; its `cancel()` ends the followed run, in any process.
        """
        check_run_id(run_id, self._tree.name)
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            msg = (
                "attach(): after must be the number of the last event that you have, or 0, "
                f"got {after!r}."
            )
            raise UsageError(msg)
        return self._factory.follow(fenced(self._access, "attach()"), run_id, after, waits=wait)

    async def recover(
        self,
        *,
        max_attempts: int = 3,
        limit: int | None = None,
        concurrency: int | None = None,
        where: Callable[[UnfinishedRun], bool] | None = None,
    ) -> list[Run[OutputT_co]]:
        """Continue every unfinished run of this agent that no living process is running.

        Use it after a crash or a drain. Each run is continued once, however many processes call
        this at the same time. Runs that crashed the fewest processes come first, at most `limit` of
        them. A run that crashed its process `max_attempts` times is quarantined with the status
        `stuck`; `retry(run_id)` retries it. Runs on their last attempt are recovered one at a time,
        so that none is lost because of another. `where` selects by the stored facts of a run: its
        `id`, `session_id`, `version`. At most `concurrency` of the recovered runs run at once.
        Interrupted runs wait for their answers, and are not included.
        """
        for name, number in (
            ("max_attempts", max_attempts),
            ("limit", limit),
            ("concurrency", concurrency),
        ):
            if number is not None and (
                not isinstance(number, int) or isinstance(number, bool) or number < 1
            ):
                msg = f"recover(): {name} must be 1 or more, got {number!r}."
                raise UsageError(msg)
        if where is not None and not callable(where):
            msg = (
                f"recover(): where must be a function, got {where!r}. Pass one that takes the "
                "stored description of a run and returns True to recover it."
            )
            raise UsageError(msg)
        access, system = fenced(self._access, "recover()"), self._factory.choose_system()
        settings = self._factory.settings
        search = Search(
            max_attempts, limit, where, settings.app, definitions_of(self._tree), self._left_alone
        )

        async def continue_all() -> list[Run[OutputT_co]]:
            found = await find_unfinished(access, self._tree, system, search)
            runs = [
                self._continued(
                    taken.persistence, Resuming(taken.persistence, None, taken.image), start=False
                )
                for taken in found.taken
            ]
            runs += [
                self._continued_alone(access, run, system, max_attempts) for run in found.last_lives
            ]
            start_at_most(runs, concurrency)
            return runs

        return await LoopBridge(system, "recover()").call(continue_all)

    async def retry(self, run_id: str) -> Run[OutputT_co]:
        """Retry a stuck run. Its count of crashed processes starts again at zero."""
        check_run_id(run_id, self._tree.name)
        access, system = fenced(self._access, "retry()"), self._factory.choose_system()

        async def continue_it() -> Run[OutputT_co]:
            taken = await retry_stuck(
                access, self._tree, system, run_id, self._factory.settings.app
            )
            return self._continued(
                taken.persistence, Resuming(taken.persistence, None, taken.image)
            )

        return await LoopBridge(system, "retry()").call(continue_it)

    def _continued(
        self, persistence: RunStore, opening: Opening, *, start: bool = True
    ) -> Run[OutputT_co]:
        """Create a run that continues a stored one. On the loop of its system."""
        context = self._factory.context(None, None, None, run_id=persistence.run_id)
        made = self._factory.make(
            context,
            _NO_INPUT,
            persistence,
            opening,
            None,
            on_leave=self._on_leave(detached=False),
            start=start,
        )
        made.set_begun_before()
        return made

    def _continued_alone(
        self, access: StoreAccess, run: UnfinishedRun, system: Host, max_attempts: int
    ) -> Run[OutputT_co]:
        """Create a run on its last attempt, which is claimed when its turn has come."""
        made = self._continued(
            RunStore(access, self._tree, run),
            RecoveringAlone(self._tree, max_attempts),
            start=False,
        )
        made.when_finished(partial(last_lives_of(system, access).leave, run.id))
        return made

    def recover_every(self, seconds: float, **search: Unpack[SearchOptions]) -> RecoveryLoop:
        """Call `recover` periodically, for a service.

        Use `async with runner.recover_every(30): ...`, or `with` in code without an event loop, or
        `stop()` the returned object. Each wait varies a little, so that processes which started
        together do not search together. The runs need no consumer.
        """
        return RecoveryLoop(self._factory.choose_system, lambda: self.recover(**search), seconds)

    async def post(
        self,
        run_id: str,
        message: str | Message,
        *,
        id: str | None = None,  # noqa: A002 -- the natural name
        when: Boundary = "safe_point",
        sender: str | None = None,
    ) -> Posted:
        """Post a message to a run in a session, from any process: see `Session.post`.

        Raises `RunNotFound`, or `RunEnded` if the run has ended.
        """
        access = listing(self._access, "post()")
        check_run_id(run_id, self._factory.tree.name)
        row = await access.row(self._factory.tree.name, run_id)
        if row is None:
            msg = (
                f"post({run_id!r}): the store has no run with this id of agent "
                f"{self._factory.tree.name!r}. A run is found from its start with "
                "durability='step' or keep='all'."
            )
            raise RunNotFound(msg, run=run_id)
        info = read_entry(row)
        if info.ended is not None:
            msg = (
                f"post({run_id!r}): the run has ended ({info.status.value}), and hears nothing any "
                "more. Post to its session."
            )
            raise RunEnded(msg, run=run_id)
        if info.session_id is None:
            msg = (
                f"post({run_id!r}): the run belongs to no session, and only sessions have an "
                "inbox. Start it with runner.session(id).query(...)."
            )
            raise UsageError(msg, run=run_id)
        inbox = Inbox(access, self._factory.tree.name, info.session_id)
        return (await inbox.post(message, id, when, sender)).replace(run_id=run_id)

    def attending(
        self,
        *,
        concurrency: int = 100,
        every: float = 1.0,
        recover_every: float | None = 30.0,
        session: Callable[[str], Session[OutputT_co]] | None = None,
    ) -> Attending:
        """Take what is due, for a service: posts to idle sessions, and unfinished runs.

        Use `async with runner.attending(): ...`, in any number of processes: one of them starts
        each turn. At most `concurrency` turns that posts have started run at once. The store
        reports new posts; as reports may be lost, it is also looked at every `every` seconds.
        `session` opens the session of a post, with its options; without it, `session(id)` is used.
        Runs of lost processes are recovered every `recover_every` seconds; None: never.
        """
        check_attending(concurrency, every)
        alone = [
            runner._attending(concurrency, every, recover_every, None, ())
            for runner in self._background.all_runners()
            if isinstance(runner, Runner)
        ]
        return self._attending(concurrency, every, recover_every, session, alone)

    def _attending(
        self,
        concurrency: int,
        every: float,
        recover_every: float | None,
        session: Callable[[str], Session[OutputT_co]] | None,
        workers: Sequence[Attending],
    ) -> Attending:
        access = fenced(self._access, "attending()")
        settings = AttendingSettings(
            access,
            self._tree.name,
            session or self.session,
            partial(self._act_on, access),
            concurrency,
            every,
        )
        recover = None if recover_every is None else partial(self.recover_every, recover_every)
        return Attending(self._factory.choose_system, settings, recover, workers)

    async def schedule(
        self,
        name: str,
        *,
        text: str,
        cron: str | None = None,
        every: timedelta | None = None,
        timezone: str = "UTC",
        session: str | None = None,
        missed: Missed = "once",
        overlap: Overlap = "skip",
    ) -> ScheduleInfo:
        """Start a run with `text` at certain times, once over all processes that attend.

            await runner.schedule("report", cron="0 9 * * MON-FRI", text="Write the report.",
                                  timezone="Europe/Berlin", session="team")

        `cron` has the five fields of a crontab; `every` is a time between two runs. The id of each
        run is `name@` and the time of the occurrence. With `session`, the run is a turn of that
        session. A service calls this each time it starts: an equal schedule stays as it is, and
        another one of the same name is replaced.

        `missed` says what happens if nobody attended for a minute after an occurrence: one run for
        all that were missed (`"once"`), none, or one for each (`"all"`). With `overlap="skip"`, an
        occurrence starts nothing while the run of the last one has not ended.

        A local time that does not exist on some day counts as the moment after the gap; one that
        exists twice fires once.
        """
        access = listing(self._access, "schedule()")
        if self.durability == "none":
            msg = f"schedule({name!r}): the Runner must record its runs: durability='interrupt'."
            raise UsageError(msg)
        if session is not None:
            check_session_id(session)
        info = new_schedule(name, text, cron, every, timezone, session, missed, overlap)
        check_run_id(info.next_run_id, self._tree.name)
        return await self._schedules(access).put(info)

    async def schedules(self) -> list[ScheduleInfo]:
        """List this agent's schedules, by their names."""
        return await self._schedules(listing(self._access, "schedules()")).all()

    async def unschedule(self, name: str) -> bool:
        """Remove a schedule. Runs that it started continue. Returns False if there is none."""
        return await self._schedules(listing(self._access, "unschedule()")).remove(name)

    def _schedules(self, access: StoreAccess) -> Schedules:
        async def start(info: ScheduleInfo) -> None:
            run_id, text = info.next_run_id, info.text
            run = (
                self.run(text, run_id=run_id, detached=True)
                if info.session_id is None
                else self.session(info.session_id).run(text, run_id=run_id, detached=True)
            )
            await run.accepted()

        async def is_unfinished(run_id: str) -> bool:
            row = await access.row(self._tree.name, run_id)
            return row is not None and not row.ended

        return Schedules(access, self._tree.name, start, is_unfinished)

    async def _act_on(self, access: StoreAccess, timer: Timer) -> bool | Run[OutputT_co]:
        """Have the effect of a timer begin. Returns True if the store no longer has the timer, or
        the run that removes it with its first step.
        """
        if timer.kind == "reminder":
            assert timer.session_id is not None
            await Inbox(access, self._tree.name, timer.session_id).deliver(timer)
            return True
        if timer.kind == "task":
            return await self._background.report(timer)
        if timer.kind == "occurrence":
            return await self._schedules(access).act(timer)
        checkpoint_id, waiting = timer.content
        now = datetime.now(UTC)
        targets = {one: default for one, deadline, default in waiting if deadline <= now}
        answer_id = f"deadline-{timer.key.rpartition('@')[2]}"  # the number of the save
        answers = Answers(targets, None, checkpoint_id, answer_id)
        return self._answered(
            checkpoint_id, answers, self._factory.context(None, None, None), detached=True
        )

    def override(
        self,
        *,
        model: ChatModel | str | Mapping[str, ChatModel | str] | None = None,
        tools: Mapping[str, Callable[..., object]] | None = None,
    ) -> AbstractContextManager[None]:
        """Replace models and tools in a test.

            with runner.override(model=ScriptedModel([...]), tools={"charge": fake_charge}): ...

        `model` applies to every agent of the tree, or maps agents' names to models. `tools`
        replaces each tool of that name with a function or a `Tool`, whichever agent has it. The
        override applies to runs of this Runner that start or resume in the block, or in tasks
        created there, including their sub-agents, handoffs and agents used as tools. Other tasks,
        threads and Runners are not affected. Nested blocks add to the outer one.
        """
        return override_of(self._factory, self._factory.tree, model, tools)

    @property
    def version(self) -> str | None:
        """The version of the program, stored with its runs."""
        return self._factory.version

    def be_host(self, version: str | None, max_attempts: int, *, is_pinned: bool) -> None:
        """Adopt the version and the recovery rules of a cluster's host."""
        self._factory.version, self._factory.rules = version, Rules(max_attempts, is_pinned)

    # --- creating ---

    def _persistence(
        self,
        context: RunContext,
        checkpoint_id: str | None,
        keep: float | None,
        mark: str | None,
        labels: Mapping[str, str],
    ) -> RunStore | None:
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
            if self._access is None:
                msg = (
                    f"run(checkpoint_id={checkpoint_id!r}): this Runner has no store to save the "
                    "checkpoint in. Pass it one: Runner(..., store=SQLiteStore('runs.db'))."
                )
                raise UsageError(msg)
        if self._access is None or self.durability == "none":
            return None
        return RunStore(
            self._access,
            self._tree,
            self._factory.unfinished(context, checkpoint_id, keep, mark, labels),
        )


_RUN: Final = Runner.run


async def _no_store(_log: EventLog, _system: Host, _stop: object) -> None:
    raise UsageError(
        "resume(): this Runner has no store, so there is nothing to resume from. Pass it the "
        "store of the interrupted run: Runner(..., store=...)."
    )


def _access_of(store: Store | None, durability: str) -> StoreAccess | None:
    if isinstance(store, str):
        msg = f"Runner: store must be a store, got a string. Pass {store_meant(store)}."
        raise UsageError(msg)
    access = None if store is None else StoreAccess(store)
    if durability == "step":
        if access is None:
            msg = (
                "Runner(durability='step') needs a store. Pass store=SQLiteStore('runs.db'), "
                "RedisStore(url), PostgresStore(dsn) or MemoryStore()."
            )
            raise UsageError(msg)
        access.require_fences("Runner(durability='step')")
    return access
