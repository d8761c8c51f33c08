"""The front door: a definition, ready to be run any number of times at once.

Owns: the tree of a definition, checked when the Runner is made, and the choice of where a run lives. It keeps nothing of a run.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Unpack

from .actor.host import Host
from .agent.history import HistoryPolicy, HistoryRewriter, check_history
from .agent.hooks import RunHooks, check_hooks
from .agent.options import OptionsLike, as_options, as_tool_options
from .agent.run_context import RunContext
from .agent.tree import Definition, build_tree
from .data.agent_input import AgentInput, as_messages
from .data.chat import Message, new_id, new_message
from .durability.answers import Answers
from .durability.checkpoint import check_checkpoint_id, check_run_id
from .durability.kept_outcome import seconds_kept
from .durability.last_lives import last_lives_of
from .durability.leases import Busy
from .durability.open_mark import UnfinishedRun, input_mark
from .durability.persistence import RunPersistence
from .durability.recovery import Search, find_unfinished, retry_stuck
from .durability.run_listing import checked_labels
from .durability.store_access import StoreAccess
from .errors import UsageError
from .log import loggers
from .option_names import store_meant, suggests_option, suggests_options
from .run.event_log import EventLog
from .run.following import Following
from .run.kept.kept_runs import KeptRuns
from .run.map_progress import ProgressLike
from .run.mapping import RunMap, map_of
from .run.opening import Beginning, BeginningOnce, Opening, RecoveringAlone, Resuming
from .run.recovery_loop import RecoveryLoop, start_at_most
from .run.run import OnLeave, Run
from .run.run_factory import RunFactory, RunSettings
from .run.run_options import Given, SearchOptions
from .session import Session, check_busy, check_session_id, check_start
from .sessions.session_policy import SessionPolicyLike
from .sessions.turn import Start, Turn
from .stores import Store
from .system.loop_door import LoopDoor
from .system.system import ActorSystem

if TYPE_CHECKING:
    from .run.run_options import RunOptions

__all__ = ["Runner"]

T = TypeVar("T")

_DURABILITIES: Final = ("none", "interrupt", "step")
_NOT_KEPT: Final = "and its runs are kept nowhere: one that waits for an answer can never go on. Give the Runner a store: store=SQLiteStore('runs.db')."
_NO_INPUT: Final = AgentInput()
_KEPT_AT_LEAST: Final = 600.0
"""Seconds for which it is kept how a run has ended that was named by its caller, who may ask again."""


@suggests_options
class Runner(KeptRuns):
    """Runs an agent, with all that are under it.

        runner = Runner(agent)
        async for event in runner.query("What is the weather in Paris?"): ...
        result = runner.query("And in Rome?").result()       # where no event loop is running

    Without `system`, its runs have a system of their own on the loop where they start; nothing of it is left when they have ended. `history` is for all
    agents that have none of their own.
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
        keep: Literal["unfinished", "all"] | float | None = None,
        version: str | None = None,
        skip_transfer_messages: bool = False,
        handoff_input_filter: Callable[[Any], object] | None = None,
        history: HistoryPolicy | HistoryRewriter | None = None,
        coalesce_deltas: bool = True,
    ) -> None:
        if system is not None and not isinstance(system, ActorSystem):
            msg = f"Runner(system={system!r}): give an ActorSystem that has been entered, or leave it out."
            raise UsageError(msg)
        if durability not in _DURABILITIES:
            msg = f"Runner(durability={durability!r}): give 'none', 'interrupt' or 'step'."
            raise UsageError(msg)
        for number, least, name in ((event_buffer, 1, "event_buffer"), (max_transfers, 0, "max_transfers")):
            if number < least:
                msg = f"Runner({name}={number}): give {least} or more."
                raise UsageError(msg)
        access, self._keep = _access_of(store, durability), seconds_kept(keep, steps=durability == "step")
        if handoff_input_filter is not None and not callable(handoff_input_filter):
            msg = f"Runner(handoff_input_filter={handoff_input_filter!r}): give a function of HandoffInputData."
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
        self._tree = build_tree(agent)
        for node in (node for tree in self._tree.trees() for node in tree.walk()):
            check = getattr(node.agent, "check", None)
            if check is not None:
                check(node)
            if (access is None or durability == "none") and (asking := getattr(node.agent, "asks_approval", ())):
                loggers.runner.warning("Agent %r has tools that need approval (%s), %s", node.name, ", ".join(asking), _NOT_KEPT)
        if access is not None and durability != "none":
            check_run_id(new_id(), self._tree.name)
        steps, skips = durability == "step", skip_transfer_messages
        settings = RunSettings(hooks, steps, max_transfers, event_buffer, skips, handoff_input_filter, version, history, coalesce_deltas)
        super().__init__(RunFactory(self._tree, system, access, settings), access)

    def __repr__(self) -> str:
        return f"<Runner of {self._tree.name!r}>"

    def query(self, text: str, **options: Unpack[RunOptions]) -> Run:
        """Run with one user message. The options are those of `run`."""
        if not isinstance(text, str):
            msg = f"query({text!r}): give a text; messages go to run([...])."
            raise UsageError(msg)
        if options or self._access is not None or type(self).run is not _RUN:
            return self.run((Message("user", text),), **options)
        return self._factory.plain((new_message("user", text),), self.streaming)

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
    ) -> Run:
        """Run with these messages. It starts now, if an event loop is running here, and else at its first use.

        `session_id` is shown to agents and hooks as it is; a conversation that lasts is `session(...)`. `context` is an object of your own, which
        hooks, callbacks of handoffs and tools find at `context.run.context`; it is in no checkpoint.

        `run_id` names the run, which is then begun once: a second call with the same id, from any process, follows it, or gets its result, which is kept for
        ten minutes at least. A `detached` run needs no consumer, and goes on when its consumer goes away; `attach(run_id)` looks on.

        `labels` are texts by which `runs(labels=...)` finds the run: 16 at most, with names of up to 64 characters and values of up to 256.
        """
        own = self._factory.context(session_id, session_values, options, context, None if run_id is None else check_run_id(run_id, self._tree.name))
        given = Given(messages, checkpoint_id, streaming, timeout, run_id is not None, detached, checked_labels("run", labels))
        return self._begin(given, own, None)

    def _begin(self, wanted: Given, context: RunContext, turn: Turn | None) -> Run:
        messages, checkpoint_id, streaming, timeout, is_named, detached, labels = wanted
        if timeout is not None and not timeout > 0:
            msg = f"run(timeout={timeout}): give a number of seconds above 0, or None for no limit."
            raise UsageError(msg)
        given = AgentInput(as_messages(messages), self.streaming if streaming is None else streaming)
        persistence: RunPersistence | None = None
        if self._access is not None or checkpoint_id is not None:
            is_fenced = self._access is not None and self._access.is_fenced
            keep = self._keep if is_fenced else 0.0
            if (is_named or detached) and keep is not None and is_fenced:
                keep = max(keep, _KEPT_AT_LEAST)
            persistence = self._persistence(context, checkpoint_id, keep, input_mark(given) if is_named else None, labels)
        opening: Opening | None = None
        if is_named:
            if persistence is None:
                msg = f"run(run_id={context.run_id!r}): that a run is begun once is kept in a store: give the Runner one, and durability='step' or 'interrupt'."
                raise UsageError(msg)
            persistence.access.require_fences("run(run_id=...)")
            opening = BeginningOnce(self._tree)
        elif turn is not None or (persistence is not None and (persistence.journal is not None or persistence.keeps_outcome)):
            opening = Beginning()
        return self._factory.make(context, given, persistence, opening, timeout, turn, self._on_leave(detached=detached))

    def _on_leave(self, *, detached: bool) -> OnLeave:
        return OnLeave.STAYS if detached else OnLeave.RESTS if self.durability == "step" else OnLeave.CANCELS

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
        **run_options: Unpack[RunOptions],
    ) -> RunMap[T]:
        """Run over many inputs, `concurrency` of them at once: `async for result in runner.map(documents, key=lambda document: document.id): ...`.

        Each input is what a run is asked, unless `ask` makes that of it. `key` gives each run its `run_id`: after Ctrl-C or a crash, a second call takes
        what is done from the store, and does the rest. A run that fails is a result like others (`"collect"`), or ends all (`"raise"`). Results come as runs
        end, or in the order of the inputs. Progress is a bar, where the package rich is installed and there is a terminal, or told to a function.
        """
        return map_of(self.run, inputs, ask, run_options, key, concurrency, progress, on_error, order, self._factory.choose_system, self.store is not None)

    @suggests_option("Runner.session")
    def session(self, session_id: str, *, busy: Busy = "queue", policy: SessionPolicyLike = None, start: Start = "root") -> Session:
        """A conversation that lasts, in the store: from whichever process callers send to it, one message at a time is worked on.

        While it works, another message waits its turn (`busy="queue"`), ends with `SessionBusy` (`"reject"`), or cuts the one at work short
        (`"preempt"`). `policy` bounds what the models are given of what was said before: `keep_last(20)`, `summarize(model)`, or a function of the
        messages. A turn begins with the root of the agents, or, with `start="last"`, with whom the last turn ended, so that a user who was handed over
        stays there; not with a part of a workflow. If these agents have none of that name any more, it begins with the root, and the log says so.
        """
        check_session_id(session_id)
        check_busy(busy)
        check_start(start)
        store_access = self._access
        if store_access is None:
            msg = f"session({session_id!r}): a session is kept in the Runner's store, and this one has none. Give SQLiteStore('runs.db') or MemoryStore()."
            raise UsageError(msg)
        store_access.require_fences(f"session({session_id!r})")
        return Session(store_access, session_id, busy, policy, self._run_in_session, self._factory.choose_system, start)

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
    ) -> Run:
        own = self._factory.context(turn.session_id, session_values, options, context, None if run_id is None else check_run_id(run_id, self._tree.name))
        given = Given(messages, checkpoint_id, streaming, timeout, run_id is not None, detached, checked_labels("run", labels))
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
    ) -> Run:
        """Go on with a run that was interrupted or cancelled. Without `targets`, every interrupt is answered: with `data`, or without anything.

        `targets` maps ids of interrupts to data; those that are not named wait on. Each interrupt is answered once: the second answer gets a
        `ResumeError`. `"id@2"` names the second save of a checkpoint; if that was answered before, the run goes on as a branch with an id of its own.
        It streams if it did before, unless `streaming` says otherwise.
        What is wrong with the checkpoint is raised where the run is first awaited or iterated, and nothing has run then.
        """
        if not isinstance(checkpoint_id, str) or not checkpoint_id:
            msg = f"resume({checkpoint_id!r}): give the id of a checkpoint: that of `run.checkpoint_id`."
            raise UsageError(msg)
        answers = Answers(targets, data)
        own = self._factory.context(None, session_values, (*as_tool_options(tool_options), *as_options(options)), context)
        if self._access is None:
            return self._factory.make(own, _NO_INPUT, None, _no_store, timeout)
        keep = self._keep if self._access.is_fenced else 0.0
        persistence = RunPersistence(self._access, self._tree, self._factory.unfinished(own, checkpoint_id, keep))
        opening = Resuming(persistence, answers, streaming=streaming)
        return self._factory.make(own, _NO_INPUT, persistence, opening, timeout, on_leave=self._on_leave(detached=False))

    def attach(self, run_id: str, *, after: int = 0) -> Run:
        """Look on at a run that this process or another one has under way, or get the result of one that has ended and is kept.

        Its events come from the store, those behind number `after`. Leaving what this returns ends the looking, and not the run; its `cancel()` ends the run,
        in whichever process that is.
        """
        check_run_id(run_id, self._tree.name)
        if not isinstance(after, int) or isinstance(after, bool) or after < 0:
            msg = f"attach(after={after!r}): give the number of the last event that you have, or 0."
            raise UsageError(msg)
        opening = Following(self._fenced("attach()"), self._tree.name, run_id, after)
        run = self._factory.make(self._factory.context(None, None, None, run_id=run_id), _NO_INPUT, None, opening, None)
        return run.forward_cancel(opening.stop)

    async def recover(
        self, *, max_attempts: int = 3, limit: int | None = None, concurrency: int | None = None, where: Callable[[UnfinishedRun], bool] | None = None
    ) -> list[Run]:
        """Continue every run of this agent in the store that is not finished and that no living process works on: after a crash, or after a drain.

        Each is continued once, however many processes call this at the same time; those that have ended the fewest processes come first, `limit` of them at
        most. One that has ended its process `max_attempts` times is set aside, with the status `stuck`: `retry(run_id)` gives it another life; those that may
        lose no process more are taken one after the other, so that none is lost with another one. `where` chooses
        by what the store says of a run: its `id`, `session_id`, `version`. Of those that are found, `concurrency` at most are at work at once. Interrupted runs
        wait for their answers, and are not among them.
        """
        for name, number in (("max_attempts", max_attempts), ("limit", limit), ("concurrency", concurrency)):
            if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
                msg = f"recover({name}={number!r}): give 1 or more."
                raise UsageError(msg)
        if where is not None and not callable(where):
            msg = f"recover(where={where!r}): give a function of what the store says of a run, that returns whether it is wanted."
            raise UsageError(msg)
        access, system = self._fenced("recover()"), self._factory.choose_system()
        search = Search(max_attempts, limit, where)

        async def continue_all() -> list[Run]:
            found = await find_unfinished(access, self._tree, system, search)
            runs = [self._continued(taken.persistence, Resuming(taken.persistence, None, taken.image), start=False) for taken in found.taken]
            runs += [self._continued_alone(access, run, system, max_attempts) for run in found.last_lives]
            start_at_most(runs, concurrency)
            return runs

        return await LoopDoor(system, "recover()").call(continue_all)

    async def retry(self, run_id: str) -> Run:
        """Give a run that was set aside another life: it is continued, and counts as never having ended a process."""
        check_run_id(run_id, self._tree.name)
        access, system = self._fenced("retry()"), self._factory.choose_system()

        async def continue_it() -> Run:
            taken = await retry_stuck(access, self._tree, system, run_id)
            return self._continued(taken.persistence, Resuming(taken.persistence, None, taken.image))

        return await LoopDoor(system, "retry()").call(continue_it)

    def _continued(self, persistence: RunPersistence, opening: Opening, *, start: bool = True) -> Run:
        """A run that is continued, on the loop of the system in which it is to live."""
        context = self._factory.context(None, None, None, run_id=persistence.run_id)
        return self._factory.make(context, _NO_INPUT, persistence, opening, None, on_leave=self._on_leave(detached=False), start=start)

    def _continued_alone(self, access: StoreAccess, run: UnfinishedRun, system: Host, max_attempts: int) -> Run:
        """One that is on its last life: it is taken when its turn has come."""
        made = self._continued(RunPersistence(access, self._tree, run), RecoveringAlone(self._tree, max_attempts), start=False)
        made.when_finished(partial(last_lives_of(system, access).leave, run.id))
        return made

    def recover_every(self, seconds: float, **search: Unpack[SearchOptions]) -> RecoveryLoop:
        """Call `recover` again and again, for a service: `async with runner.recover_every(30): ...`, or keep what it returns, and `stop()` it.

        Each wait is a little longer or shorter than the last, so that processes which began together do not look together. The runs need no consumer.
        """
        return RecoveryLoop(self._factory.choose_system, lambda: self.recover(**search), seconds)

    # --- making ---

    def _persistence(
        self, context: RunContext, checkpoint_id: str | None, keep: float | None, mark: str | None, labels: Mapping[str, str]
    ) -> RunPersistence | None:
        if checkpoint_id is not None:
            check_checkpoint_id(checkpoint_id)
            if self._access is None:
                msg = f"run(checkpoint_id={checkpoint_id!r}): this Runner has no store to keep it in. Give it one: Runner(..., store=SQLiteStore('runs.db'))."
                raise UsageError(msg)
        if self._access is None or self.durability == "none":
            return None
        return RunPersistence(self._access, self._tree, self._factory.unfinished(context, checkpoint_id, keep, mark, labels))


_RUN: Final = Runner.run


async def _no_store(_log: EventLog, _system: Host, _stop: object) -> None:
    raise UsageError("resume(): this Runner has no store, so there is nothing to resume from. Give it the one that the run had: Runner(..., store=...).")


def _access_of(store: Store | None, durability: str) -> StoreAccess | None:
    if isinstance(store, str):
        msg = f"Runner(store=...): a text is no store. Give {store_meant(store)}."
        raise UsageError(msg)
    access = None if store is None else StoreAccess(store)
    if durability == "step":
        if access is None:
            msg = "Runner(durability='step') needs a store: give store=SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or MemoryStore()."
            raise UsageError(msg)
        access.require_fences("Runner(durability='step')")
    return access
