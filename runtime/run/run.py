"""A run as its caller sees it: its events, its result, its end.

`Run` works in every kind of code: `async for` and `await` on any event loop, `for` and `result()`
in a thread without one. The run itself lives on its system's loop, and `Run` reaches it only
through that loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing
from enum import Enum
from functools import partial
from threading import get_ident
from time import time
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, Self, TypeAlias, get_args
from warnings import warn

from ..actor.steps import is_about_to_begin
from ..agent.run_messages import CancelMode, CancelRun
from ..data.events import AgentEvent
from ..data.output_type import OutputT_co
from ..data.run_result import RunResult, RunStatus
from ..errors import OffbookError, UsageError
from ..system import fork
from ..system.loop_bridge import LoopBridge, NotEnded, refuse_on_a_loop
from ..system.state import SystemState
from ..unpicklable import Unpicklable
from .cancellation import request_stop
from .event_iterator import Events
from .run_progress import RunProgress

if TYPE_CHECKING:
    from ..actor.loop_cell import LoopCell
    from ..agent.tree import Node
    from ..durability.store_access import StoreAccess
    from ..system.system import ActorSystem
    from .event_log import EventLog
    from .opening import Opening

__all__ = [
    "CancelHandle",
    "OnLeave",
    "Run",
    "end_of",
    "is_follower",
    "only_follows",
    "rest_of",
    "seen_of",
    "was_followed",
]

_MODES: Final = get_args(CancelMode)
_NEVER_STARTED: Final = (
    "run {} of {!r} was never started, because no event loop was running where it was created. "
    "Call its result() or start(), iterate over it, or create it with detached=True or a run_id, "
    "which starts it at once."
)


class OnLeave(Enum):
    """The fate of a run whose consumer leaves before the end."""

    CANCELS = "cancels"
    """The run is cancelled."""
    RESTS = "rests"
    """The run is cancelled if the consumer left deliberately.

    If the consumer itself was cancelled, the run pauses, and `recover()` continues it.
    """
    STAYS = "stays"
    """The run continues, because it is detached."""


class Launcher(Protocol):
    """The operations of a Runner that start and follow runs."""

    @property
    def tree(self) -> Node: ...
    @property
    def access(self) -> StoreAccess | None: ...
    def follow(self, access: StoreAccess, run_id: str, after: int, /, *, waits: bool) -> Run: ...
    def choose_system(self) -> ActorSystem: ...
    def launch(
        self,
        system: ActorSystem,
        event_log: EventLog,
        opening: Opening | None,
        timeout: float | None,
        /,
    ) -> LoopCell: ...


Plan: TypeAlias = "tuple[EventLog, Opening | None, float | None]"
"""Everything needed to start a run."""


class Run(Unpicklable, Generic[OutputT_co]):
    """One run of an agent.

    A run starts when it is created, if an event loop is running there or if it is detached, has a
    `run_id`, or answers an interrupt. Otherwise it starts when it is first used.

        async for event in run: ...      # or, where no loop is running: for event in run: ...
        result = await run               # or, where no loop is running: run.result()

    A consumer that leaves the iteration early cancels the run. A run without a consumer runs to its
    end.
    """

    __slots__ = (
        "__weakref__",
        "_forward",
        "_iterated",
        "_launcher",
        "_on_leave",
        "_persistence",
        "_plan",
        "_progress",
        "_supervisor",
        "_system",
    )

    __why_not_pickled__ = (
        "it belongs to the event loop that it runs on. Pass its id: in a process with the same "
        "store, runner.attach(run.id) follows it."
    )

    def __init__(self, launcher: Launcher, plan: Plan, on_leave: OnLeave = OnLeave.CANCELS) -> None:
        event_log = plan[0]
        self._launcher = launcher
        self._persistence = event_log.persistence  # None if the run is not stored
        self._progress = event_log.progress
        self._on_leave = on_leave
        self._plan: Plan | None = (
            # None once the run is launched, so that a finished run keeps only its progress alive.
            plan
        )
        self._system: ActorSystem | None = None  # the run's system; None until it is started
        self._supervisor: LoopCell | None = None
        # Forwards cancel() to the process that runs it.
        self._forward: Callable[[CancelMode, float | None], object] | None = None
        self._iterated = False

    def __repr__(self) -> str:
        # When asyncio.create_task, TaskGroup.create_task or asyncio.run refuses a Run, this text is
        # all that the user sees of it.
        return (
            f"<Run {self.id} of {self._progress.agent_name!r}: {self.status.value}; run.wait() is "
            "its coroutine>"
        )

    def __del__(self) -> None:
        # Nobody will read the events, so the run must not wait for a consumer. An iteration holds a
        # reference to its run, so it cannot be affected.
        progress = self._progress
        if progress.result is None:
            system = self._system
            if system is None:
                if progress.is_told is None:
                    warn(
                        _NEVER_STARTED.format(self.id, progress.agent_name),
                        RuntimeWarning,
                        stacklevel=2,
                        source=self,
                    )
            elif not system.loop.is_closed():
                system.on_loop(progress.leave)

    @property
    def id(self) -> str:
        """The run's id.

        A resumed run takes the id of the run that it continues as soon as its checkpoint is found.
        """
        return self._progress.context.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """The checkpoint's id if the run is interrupted or cancelled; None if it is not stored.

        While the run is paused, the id is bound to the checkpoint at which it paused.
        """
        if self._persistence is None:
            return None
        rests = self.status in (RunStatus.INTERRUPTED, RunStatus.CANCELLED)
        return self._persistence.handed_out if rests else self._persistence.checkpoint_id

    @property
    def status(self) -> RunStatus:
        """The run's current status."""
        progress = self._progress
        if progress.result is not None:
            return progress.result.status
        if progress.problem is not None:
            return RunStatus.FAILED
        return RunStatus.PENDING if self._system is None else RunStatus.RUNNING

    # --- starting ---

    def start(self) -> None:
        """Start the run, unless it is already started."""
        if self._plan is None:
            return
        try:
            # Outside the lock, because it may wait for a loop on which another call waits for the
            # lock.
            system = self._system or self._launcher.choose_system()
            with fork.starting:
                # Assign the system first. A signal handler may raise at any point, and a second
                # call then reaches the same loop, where the run is started only once.
                self._system = self._system or system
                if not self._system.on_loop(self._start_here, self._system):
                    self._system.check()
        except Exception:
            self.set_told()
            raise

    def start_here(self, system: ActorSystem) -> None:
        """Start a run that was just created, on the loop of its system."""
        self._start_here(system)
        self._system = system

    def set_told(self) -> None:
        """Record that the run was not started and that its caller received the exception."""
        self._progress.is_told = True

    def set_begun_before(self) -> None:
        """Record that the run continues a stored run.

        If it fails before it starts, the stored run remains available to `recover()`.
        """
        self._progress.begun_before = True

    def _start_here(self, system: ActorSystem) -> None:
        plan, self._plan = self._plan, None
        if plan is None:
            return
        self._progress.started = time()
        try:
            self._supervisor = self._launcher.launch(system, *plan)
        except Exception as problem:  # noqa: BLE001 -- raised where the run is first awaited or iterated
            self._progress.refuse(problem)
            self._progress.set_ended()

    def _started(self) -> ActorSystem:
        self.start()
        assert self._system is not None
        return self._system

    def _bridge(self) -> LoopBridge:
        """Return access to the run's event loop."""
        return LoopBridge(self._started(), "run", self._progress.context)

    # --- the end ---

    def __await__(self) -> Generator[object, None, RunResult[OutputT_co]]:
        system = self._system or self._started()
        here = get_ident() == system.dispatcher.thread or self._progress.result is not None
        return self._ends() if here else self._bridge().call(self._finished).__await__()

    async def wait(self) -> RunResult[OutputT_co]:
        """Wait for the end, as a coroutine, for callers that accept no other awaitable.

        Examples: `asyncio.create_task(run.wait())`, `asyncio.run(runner.query(...).wait())`.
        """
        return await self

    async def _finished(self, *, leaving_cancels: bool = True) -> RunResult[OutputT_co]:
        """Wait for the end on the run's own loop.

        Cancelling this wait cancels the run, but a timeout of the wait does not.
        """
        return await _End(self, leaving_cancels=leaving_cancels)

    def _ends(
        self, *, leaving_cancels: bool = True
    ) -> Generator[object, None, RunResult[OutputT_co]]:
        progress = self._progress
        if not self._iterated:
            progress.discard()
        if progress.result is None and progress.problem is None:
            ended = progress.end_of_it()
            try:
                yield from ended
            except BaseException:
                progress.forget(ended)
                if leaving_cancels and progress.result is None:
                    self._abandon_here(cancelled=True)
                raise
        if progress.problem is not None:
            progress.check()
        assert progress.result is not None
        return progress.result

    def result(self, timeout: float | None = None) -> RunResult[OutputT_co]:
        """Block until the run has ended. In a coroutine, write `await run`.

        If Ctrl-C, an exit or an exception from a signal handler ends the wait, the run ends too,
        unless it is detached. A `timeout` leaves it running.
        """
        progress = self._progress
        if progress.result is not None:
            return progress.result
        self._refuse_on_a_loop("run.result()", "await run")
        ended = lambda: progress.result is not None  # noqa: E731 -- read where the wait ends
        try:
            wait = partial(self._finished, leaving_cancels=False)
            result = self._bridge().block(
                wait, "run.result()", "await run", timeout=timeout, has_ended=ended
            )
        except (NotEnded, OffbookError):
            raise  # the run continues, or has not started
        except BaseException as error:
            self._stop_waiting(error)
            raise
        result = result or progress.result
        assert result is not None
        return result

    def _stop_waiting(self, error: BaseException) -> None:
        """End the run after something else ended a thread's wait for it.

        The cause is Ctrl-C, an exit, or an exception from a signal handler or another thread.
        """
        system = self._system
        if (
            system is not None
            and self._progress.result is None
            and self._on_leave is not OnLeave.STAYS
        ):
            keyboard = isinstance(error, KeyboardInterrupt)
            reason = (
                "it was interrupted from the keyboard"
                if keyboard
                else f"the wait for its result ended with {type(error).__name__}"
            )
            system.on_loop(self._leave_here, reason)

    def cancel(
        self, mode: CancelMode = "immediate", *, timeout: float | None = None
    ) -> CancelHandle:
        """Cancel the run, from any thread.

        Await the returned handle to learn whether the run was cancelled or had ended before.

        `"immediate"` interrupts running work. `"after_model"` waits for running model calls, and
        `"after_tools"` also for the tools that these calls request. After `timeout` seconds the run
        is interrupted in any case. If cancel() is called more than once, the strictest mode and the
        earliest deadline apply.
        """
        if mode not in _MODES:
            msg = f"cancel: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}."
            raise UsageError(msg, run=self.id)
        if timeout is not None and not timeout >= 0:
            msg = (
                f"cancel: timeout must be a number of seconds, 0 or more, or None, got {timeout!r}."
            )
            raise UsageError(msg, run=self.id)
        if self._forward is not None:
            self._started().on_loop(self._forward, mode, timeout)
        else:
            self._started().on_loop(self._cancel_here, "cancel() was called", mode, timeout)
        return CancelHandle(self)

    def forward_cancel(self, forward: Callable[[CancelMode, float | None], object]) -> Self:
        """Make `cancel()` call `forward` on the loop, for a `Run` that only follows another run.

        The followed run is observed until it has ended.
        """
        self._forward = forward
        return self

    def _cancel_here(
        self, reason: str, mode: CancelMode = "immediate", timeout: float | None = None
    ) -> None:
        request_stop(self._supervisor, self._progress, CancelRun(reason, mode, timeout))

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call `callback` on the run's own loop once the run has fully ended; now, if it has."""
        self._progress.when_finished(callback)

    async def accepted(self) -> Self:
        """Wait until the run has started, or is stored as waiting for its turn in a session.

        From then on every process finds it with `attach` and `info`. Raises the error that prevents
        the run from starting. It consumes no events: iterate or await the run afterwards, or drop
        it.
        """
        progress = self._progress
        if not progress.is_accepted and not progress.has_ended:
            await self._bridge().call(progress.wait_accepted)
        progress.check()
        if (
            not progress.is_accepted
            and progress.result is not None
            and progress.result.error is not None
        ):
            raise progress.result.error
        return self

    async def wait_ended(self) -> None:
        """Wait until the run has fully ended, without reading its events.

        Returns at once if the run was never started.
        """
        if self._system is not None and not self._progress.has_ended:
            await self._bridge().call(self._progress.wait_ended)

    async def aclose(self) -> None:
        """Cancel the run if it has not ended, and wait until it has fully ended."""
        if self._progress.result is None and self._progress.problem is None:
            self._started().on_loop(self._cancel_here, "it was closed")
            await self._bridge().call(self._finished)

    def _refuse_on_a_loop(self, call: str, instead: str) -> None:
        """Raise if an event loop is running in this thread.

        A run that was created for this call alone is called off first.
        """
        try:
            refuse_on_a_loop(call, instead, self.id)
        except UsageError:
            self.set_told()
            self._call_off()
            raise

    def _call_off(self) -> None:
        """End the run before its first agent starts, if possible.

        This is possible only while the loop has not run since the start.
        """
        supervisor = self._supervisor
        if (
            supervisor is None
            or self._iterated
            or self._progress.result is not None
            or not self._bridge().is_here
        ):
            return
        agents = tuple(supervisor.children or ())
        if all(is_about_to_begin(agent.task) for agent in agents):
            self._abandon_here(cancelled=False)
            for agent in agents:
                agent.cancel_handler()

    # --- events ---

    def __aiter__(self) -> Events:
        return self._events()

    async def text_stream(self) -> AsyncGenerator[str, None]:
        """Yield the agents' text as it arrives: deltas if the model streams, else whole messages.

        This is the run's one consumer, like `async for event in run`. Raises the error that the run
        failed with.
        """
        streamed: set[str] = set()  # invocations whose current message has arrived as deltas
        async with aclosing(self._events()) as events:
            async for event in events:
                delta, message = event.delta, event.message
                if delta is not None:
                    if event.error is None and delta.content:
                        streamed.add(event.invocation_id)
                        yield delta.content
                elif message is not None and message.role == "assistant":
                    if event.invocation_id not in streamed and message.text:
                        yield message.text
                    streamed.discard(event.invocation_id)
        (await self).raise_for_error()

    async def batches(self, most: int = 256) -> AsyncGenerator[list[AgentEvent], None]:
        """Yield lists of the events that are ready, at most `most` in each, to forward them.

        This is the run's one consumer, like `async for event in run`.
        """
        if not isinstance(most, int) or most < 1:
            msg = f"run.batches(): most must be a number of events, 1 or more, got {most!r}."
            raise UsageError(msg, run=self.id)
        events = self._events()
        try:
            while batch := await events.take_some(most):
                yield batch
        finally:
            await events.aclose()

    def __iter__(self) -> Iterator[AgentEvent]:
        self._refuse_on_a_loop("for event in run", "async for event in run")
        return self._events()

    def _events(self) -> Events:
        bridge = self._bridge()
        progress = self._progress
        result = progress.result
        if result is not None and self._iterated:
            # Replayed, without the deltas.
            return Events(self._progress, bridge, self._abandon, result.events)
        if progress.is_discarded:
            msg = (
                f"the events of run {self.id} were consumed by `await run` or `run.result()`, "
                "and are in `result.events`. Iterate first, then await."
            )
            raise UsageError(msg, run=self.id)
        if self._iterated and progress.problem is None:
            msg = (
                f"run {self.id} already has a consumer that iterates over it. Let that one pass "
                f"the events on, or follow the run: runner.attach({self.id!r})."
            )
            raise UsageError(msg, run=self.id)
        self._iterated = True
        return Events(self._progress, bridge, self._abandon)

    def _abandon(self, *, cancelled: bool = False) -> None:
        """End the run as its policy requires, after the consumer left early."""
        system = self._system
        if system is not None and self._progress.result is None and not system.loop.is_closed():
            system.on_loop(partial(self._abandon_here, cancelled=cancelled))

    def _abandon_here(self, *, cancelled: bool) -> None:
        self._progress.discard()
        if self._on_leave is OnLeave.STAYS:
            return
        if cancelled:
            self._leave_here("its consumer was cancelled")
        else:
            self._cancel_here("its consumer has gone away")

    def _leave_here(self, reason: str) -> None:
        """End the run when no caller asked for it.

        If every step is recorded, the run is left for `recover()`. A draining system pauses it once
        its running tools finish, and records their results.
        """
        if self._on_leave is OnLeave.RESTS:
            if self._system is not None and self._system.state is SystemState.DRAINING:
                return
            request_stop(
                self._supervisor,
                self._progress,
                CancelRun(
                    f"{reason}; recover() continues the run", unfinished=True, begins_first=True
                ),
            )
        else:
            self._cancel_here(reason)


class _End(Generic[OutputT_co]):
    """An awaitable for the end of a run."""

    __slots__ = ("_leaving_cancels", "_run")

    def __init__(self, run: Run[OutputT_co], *, leaving_cancels: bool) -> None:
        self._run = run
        self._leaving_cancels = leaving_cancels

    def __await__(self) -> Generator[object, None, RunResult[OutputT_co]]:
        return self._run._ends(leaving_cancels=self._leaving_cancels)


class _OfResult:
    """A descriptor that points from a `Run` to the attribute of its result.

    The class avoids `__getattr__`, because it would slow down every attribute access.
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, run: object, owner: type | None = None) -> NoReturn:
        name = self._name
        msg = (
            f"a Run has no {name!r}, but its result has. Write `(await run).{name}`, or "
            f"`run.result().{name}` where no event loop is running."
        )
        raise AttributeError(msg, name=name, obj=run)


def _point_to_result() -> None:
    for name in vars(RunResult).keys() - vars(Run).keys():
        if not name.startswith("_") and name != "run_id":  # a Run has that as `id`
            setattr(Run, name, _OfResult(name))


_point_to_result()


class CancelHandle:
    """The handle that `Run.cancel()` returns.

    Awaiting it returns True if the run was cancelled, and False if it had ended before.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def __await__(self) -> Generator[object, None, bool]:
        return self._was_cancelled().__await__()

    async def _was_cancelled(self) -> bool:
        return (await self._run).status is RunStatus.CANCELLED

    def result(self, timeout: float | None = None) -> bool:
        """Block for the answer, where no event loop is running."""
        return self._run.result(timeout).status is RunStatus.CANCELLED


def end_of(run: Run) -> tuple[RunProgress, LoopBridge | None]:
    """Return what a caller needs to await the end of a run without keeping the `Run` alive.

    The second value is None if the run is not started.
    """
    return run._progress, None if run._system is None else run._bridge()


def rest_of(run: Run, after: int) -> Run | None:
    """Follow a paused run from event `after`, through its interrupts to its end.

    None if no store lists the run.
    """
    access = run._launcher.access
    is_stored = run._persistence is not None or run._progress.follows
    if access is None or not access.lists_runs or not is_stored:
        return None
    return run._launcher.follow(access, run.id, after, waits=True)


def is_follower(run: Run) -> bool:
    """Return True if `run` only follows another run."""
    return run._progress.follows


def only_follows(run: Run) -> bool:
    """Return True if following ended before the followed run did."""
    return run._progress.follows and run._progress.followed is None


def was_followed(run: Run) -> bool:
    """Return True if another caller started the run, or if it had already ended."""
    return run._progress.followed is not None


def seen_of(run: Run) -> tuple[RunProgress, Node]:
    """Return the progress of a run and the agent tree that it runs."""
    return run._progress, run._launcher.tree
