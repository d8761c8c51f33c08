"""A run, as its caller sees it: its events, its result, its end.

Owns: the front of a run for every kind of code: `async for` and `await` on any event loop, `for` and `result()` in any thread without one. The run itself
lives on the loop of its system. It must never touch the run from elsewhere but through that loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from enum import Enum
from functools import partial
from threading import get_ident
from time import time
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, Self, TypeAlias, get_args

from ..actor.steps import is_about_to_begin
from ..agent.run_messages import CancelMode, CancelRun
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from ..system.loop_door import LoopDoor, refuse_on_a_loop
from .cancellation import request_stop
from .event_iterator import Events
from .run_record import RunRecord

if TYPE_CHECKING:
    import threading

    from ..actor.loop_cell import LoopCell
    from ..agent.tree import Node
    from ..system.system import ActorSystem
    from .event_log import EventLog
    from .opening import Opening

__all__ = ["CancelHandle", "OnLeave", "Run", "end_of", "seen_of"]

_MODES: Final = get_args(CancelMode)


class OnLeave(Enum):
    """What becomes of a run whose consumer leaves before its end."""

    CANCELS = "cancels"
    """It is cancelled."""
    RESTS = "rests"
    """It is cancelled if the consumer left by its own will. If the consumer was cancelled, the run is brought to rest, and is continued by `recover()`."""
    STAYS = "stays"
    """It goes on: it is detached."""


class Launcher(Protocol):
    """What begins the runs of one Runner."""

    @property
    def starting(self) -> threading.Lock: ...  # held while a run is started, for two threads may both be the first to use it
    @property
    def tree(self) -> Node: ...
    def choose_system(self) -> ActorSystem: ...
    def launch(self, system: ActorSystem, event_log: EventLog, opening: Opening | None, timeout: float | None, /) -> LoopCell: ...


Plan: TypeAlias = "tuple[EventLog, Opening | None, float | None]"
"""With what a run is to begin."""


class Run:
    """One run of an agent. It starts when it is made, if an event loop is running there, and else at its first use.

        async for event in run: ...      # or, where no loop is running: for event in run: ...
        result = await run               # or, where no loop is running: run.result()

    A consumer that leaves the iteration before its end cancels the run. A run without a consumer plays to its end.
    """

    __slots__ = (
        "__weakref__",
        "_forward",
        "_iterated",
        "_launcher",
        "_on_leave",
        "_persistence",
        "_plan",
        "_record",
        "_supervisor",
        "_system",
    )

    def __init__(self, launcher: Launcher, plan: Plan, on_leave: OnLeave = OnLeave.CANCELS) -> None:
        event_log = plan[0]
        self._launcher = launcher
        self._persistence = event_log.persistence  # None: it is kept nowhere
        self._record = event_log.record
        self._on_leave = on_leave
        self._plan: Plan | None = plan  # None when it has been launched: then it keeps nothing of the run alive but the record
        self._system: ActorSystem | None = None  # that it lives in; None until it is started
        self._supervisor: LoopCell | None = None
        self._forward: Callable[[CancelMode, float | None], object] | None = None  # takes cancel() to the process that has the run
        self._iterated = False

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self._record.agent_name!r}: {self.status.value}>"

    def __del__(self) -> None:
        # Its events will never be read: a run that waits for its consumer would wait for ever. An iteration keeps its run.
        system = self._system
        if system is not None and self._record.result is None and not system.loop.is_closed():
            system.on_loop(self._record.discard)

    @property
    def id(self) -> str:
        """The run's id. One that is resumed has that of the run that it continues, as soon as its checkpoint was found."""
        return self._record.context.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """Under which it is kept when it is interrupted or cancelled; None if it is not."""
        return None if self._persistence is None else self._persistence.checkpoint_id

    @property
    def status(self) -> RunStatus:
        """Where it is in its life."""
        record = self._record
        if record.result is not None:
            return record.result.status
        if record.problem is not None:
            return RunStatus.FAILED
        return RunStatus.PENDING if self._system is None else RunStatus.RUNNING

    # --- starting ---

    def start(self) -> None:
        """Start it, if it has not been started."""
        if self._system is not None:
            return
        launcher = self._launcher
        system = launcher.choose_system()  # not under the lock: it may wait for a loop, on which another thread's call may wait for the lock
        with launcher.starting:
            if self._system is None:
                system.on_loop(self._start_here, system)
                self._system = system  # what others send to the loop from here on comes after the start

    def start_here(self, system: ActorSystem) -> None:
        """The same, for one that was just made, on the loop of the system in which it is to live."""
        self._start_here(system)
        self._system = system

    def _start_here(self, system: ActorSystem) -> None:
        plan, self._plan = self._plan, None
        assert plan is not None
        self._record.started = time()
        try:
            self._supervisor = self._launcher.launch(system, *plan)
        except Exception as problem:  # noqa: BLE001 -- it is raised where the run is first awaited or iterated
            self._record.refuse(problem)
            self._record.give_up()

    def _started(self) -> ActorSystem:
        self.start()
        assert self._system is not None
        return self._system

    def _door(self) -> LoopDoor:
        """The way to the loop that it lives on."""
        return LoopDoor(self._started(), "run", self._record.context)

    # --- the end ---

    def __await__(self) -> Generator[object, None, RunResult]:
        system = self._system or self._started()
        here = get_ident() == system.dispatcher.thread or self._record.result is not None
        return self._ends() if here else self._door().call(self._finished).__await__()

    async def _finished(self, *, leaving_cancels: bool = True) -> RunResult:
        """Wait for the end, on the run's own loop. A wait that is cancelled here cancels the run, unless it only ran out of time."""
        return await _End(self, leaving_cancels=leaving_cancels)

    def _ends(self, leaving_cancels: bool = True) -> Generator[object, None, RunResult]:  # noqa: FBT001, FBT002 -- for speed
        record = self._record
        if not self._iterated:
            record.discard()
        if record.result is None and record.problem is None:
            ended = record.end_of_it()
            try:
                yield from ended
            except BaseException:
                record.forget(ended)
                if leaving_cancels and record.result is None:
                    self._abandon_here(cancelled=True)
                raise
        if record.problem is not None:
            raise record.problem
        assert record.result is not None
        return record.result

    def result(self, timeout: float | None = None) -> RunResult:
        """Block until the run has ended. In a coroutine, write `await run`."""
        record = self._record
        if record.result is not None:
            return record.result
        self._refuse_on_a_loop("run.result()", "await run")
        door = self._door()
        ended = lambda: record.result is not None  # noqa: E731 -- read where the wait ends
        try:
            result = door.block(partial(self._finished, leaving_cancels=False), "run.result()", "await run", timeout=timeout, has_ended=ended)
        except KeyboardInterrupt:
            door.system.on_loop(self._leave_here, "it was interrupted from the keyboard")
            raise
        result = result or record.result
        assert result is not None
        return result

    def cancel(self, mode: CancelMode = "immediate", *, timeout: float | None = None) -> CancelHandle:
        """End the run. From any thread. Await what is returned to know whether it was cancelled, or had come to its end before.

        `"immediate"` cuts short what is under way; `"after_model"` waits for the calls of models that are under way, `"after_tools"` also for the
        tools that these want. After `timeout` seconds it is cut short all the same. Of several calls the strictest counts, and the earliest deadline.
        """
        if mode not in _MODES:
            msg = f"cancel({mode!r}): give one of {', '.join(map(repr, _MODES))}."
            raise UsageError(msg, run=self.id)
        if timeout is not None and not timeout >= 0:
            msg = f"cancel(timeout={timeout!r}): give a number of seconds, 0 or more, or None."
            raise UsageError(msg, run=self.id)
        if self._forward is not None:
            self._started().on_loop(self._forward, mode, timeout)
        else:
            self._started().on_loop(self._cancel_here, "cancel() was called", mode, timeout)
        return CancelHandle(self)

    def forward_cancel(self, forward: Callable[[CancelMode, float | None], object]) -> Self:
        """It only looks on: `cancel()` calls that, on the loop, and the run is looked at until it has ended."""
        self._forward = forward
        return self

    def _cancel_here(self, reason: str, mode: CancelMode = "immediate", timeout: float | None = None) -> None:
        request_stop(self._supervisor, self._record, CancelRun(reason, mode, timeout))

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call it, on the run's own loop, when nothing of it is left; now, if that is so."""
        self._record.when_finished(callback)

    async def wait_ended(self) -> None:
        """Wait until nothing of it is left, without reading its events. One that was never begun is not waited for."""
        if self._system is not None and not self._record.has_ended:
            await self._door().call(self._record.wait_ended)

    async def aclose(self) -> None:
        """Cancel it, if it has not ended, and wait until nothing of it is left."""
        if self._record.result is None and self._record.problem is None:
            self._started().on_loop(self._cancel_here, "it was closed")
            await self._door().call(self._finished)

    def _refuse_on_a_loop(self, call: str, instead: str) -> None:
        """Raise, if an event loop is running in this thread. A run that was made for this call alone is not to do anything then."""
        try:
            refuse_on_a_loop(call, instead, self.id)
        except UsageError:
            self._call_off()
            raise

    def _call_off(self) -> None:
        """Let it end before its first agent begins, if that is still possible: only where the loop has had no turn since the start."""
        supervisor = self._supervisor
        if supervisor is None or self._iterated or self._record.result is not None or not self._door().is_here:
            return
        agents = tuple(supervisor.children or ())
        if all(is_about_to_begin(agent.task) for agent in agents):
            self._abandon_here(cancelled=False)
            for agent in agents:
                agent.cancel_handler()

    # --- events ---

    def __aiter__(self) -> Events:
        return self._events()

    async def batches(self, most: int = 256) -> AsyncGenerator[list[AgentEvent], None]:
        """The events as they are ready, all at once that are, `most` of them: for what sends them on. It is one consumer, as `async for event in run` is."""
        if not isinstance(most, int) or most < 1:
            msg = f"run.batches({most!r}): give a number of events, 1 or more."
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
        door = self._door()
        record = self._record
        result = record.result
        if result is not None and self._iterated and (record.was_read or record.is_discarded):
            return Events(self._record, door, self._abandon, result.events)  # once more, but for the pieces of messages
        if record.is_discarded:
            msg = f"the events of run {self.id} are consumed already, by `await run` or `run.result()`: they are in `result.events`. Iterate first, then await."
            raise UsageError(msg, run=self.id)
        self._iterated = True
        return Events(self._record, door, self._abandon)

    def _abandon(self, *, cancelled: bool = False) -> None:
        """The consumer has left before the end: by its own will, or because it was cancelled."""
        system = self._system
        if system is not None and self._record.result is None and not system.loop.is_closed():
            system.on_loop(partial(self._abandon_here, cancelled=cancelled))

    def _abandon_here(self, *, cancelled: bool) -> None:
        self._record.discard()
        if self._on_leave is OnLeave.STAYS:
            return
        if cancelled:
            self._leave_here("its consumer was cancelled")
        else:
            self._cancel_here("its consumer has gone away")

    def _leave_here(self, reason: str) -> None:
        """That the run is to end is the will of no caller: one of which each step is recorded is left for `recover()`."""
        if self._on_leave is OnLeave.RESTS:
            request_stop(self._supervisor, self._record, CancelRun(f"{reason}; recover() continues the run", unfinished=True, begins_first=True))
        else:
            self._cancel_here(reason)


class _End:
    """To be awaited in a coroutine."""

    __slots__ = ("_leaving_cancels", "_run")

    def __init__(self, run: Run, *, leaving_cancels: bool) -> None:
        self._run = run
        self._leaving_cancels = leaving_cancels

    def __await__(self) -> Generator[object, None, RunResult]:
        return self._run._ends(leaving_cancels=self._leaving_cancels)


class _OfResult:
    """Says what is missing, where a run is taken for its result. Not `__getattr__`: in a class that has one, every look at an attribute takes longer."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, run: object, owner: type | None = None) -> NoReturn:
        name = self._name
        msg = f"a Run has no {name!r}: its result has. Write `(await run).{name}`, or `run.result().{name}` where no event loop is running."
        raise AttributeError(msg, name=name, obj=run)


def _point_to_result() -> None:
    for name in vars(RunResult).keys() - vars(Run).keys():
        if not name.startswith("_"):
            setattr(Run, name, _OfResult(name))


_point_to_result()


class CancelHandle:
    """What `Run.cancel()` returns: awaited, it says whether the run was cancelled (True), or had come to its end before."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    def __await__(self) -> Generator[object, None, bool]:
        return self._was_cancelled().__await__()

    async def _was_cancelled(self) -> bool:
        return (await self._run).status is RunStatus.CANCELLED

    def result(self, timeout: float | None = None) -> bool:
        """The same, where no event loop is running."""
        return self._run.result(timeout).status is RunStatus.CANCELLED


def end_of(run: Run) -> tuple[RunRecord, LoopDoor | None]:
    """By what the end of a run can be waited for without keeping the run itself, whose consumer may be gone. Without a door, it is not started."""
    return run._record, None if run._system is None else run._door()


def seen_of(run: Run) -> tuple[RunRecord, Node]:
    """What a run has shown so far, and the tree that it plays."""
    return run._record, run._launcher.tree
