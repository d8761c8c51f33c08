"""A run, as whoever started it sees it: its events, its result, its end.

Owns: the front of a run for every kind of code: `async for` and `await` on any event loop, `for` and `result()` in any thread without one. The run itself
lives on the loop of its system; from elsewhere it is reached through that loop only.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from ..agent.run_context import RunContext
from ..agent.run_messages import CancelMode, CancelRun
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..errors import UsageError
from .event_iterator import Events
from .run_record import RunRecord

if TYPE_CHECKING:
    from ..actor.ref import ActorRef
    from ..system.system import ActorSystem
    from .run_supervisor import RunSupervisor

__all__ = ["CancelHandle", "Run"]

T = TypeVar("T")

# Seconds after which a thread that waits looks whether the run's loop is still there.
_LOOK_AGAIN: Final = 0.5

_MODES: Final = get_args(CancelMode)


class Run:
    """One run of an agent. It starts when it is made, if an event loop is running there, and else at its first use.

        async for event in run: ...      # or, where no loop is running: for event in run: ...
        result = await run               # or, where no loop is running: run.result()

    Leaving the iteration before its end cancels the run. A run that nobody ever looks at goes on to its end.
    """

    __slots__ = ("__weakref__", "_checkpoint_of", "_choose_system", "_context", "_iterated", "_launch", "_record", "_starting", "_supervisor", "_system")

    def __init__(
        self,
        context: RunContext,
        record: RunRecord,
        choose_system: Callable[[], ActorSystem],
        launch: Callable[[ActorSystem], ActorRef[RunSupervisor]],
        checkpoint_of: Callable[[], str] | None = None,
    ) -> None:
        self._context = context
        self._system: ActorSystem | None = None
        self._checkpoint_of = checkpoint_of  # None: it is kept nowhere
        self._record = record
        self._choose_system = choose_system  # where it is to run, once somebody looks
        self._launch: Callable[[ActorSystem], ActorRef[RunSupervisor]] | None = launch  # None when it has been launched
        self._supervisor: ActorRef[RunSupervisor] | None = None
        self._iterated = False
        self._starting = threading.Lock()  # held while it is started, for two threads may both be the first to look

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self._record.agent_name!r}: {self.status.value}>"

    def __del__(self) -> None:
        # Nobody will ever look: a run that waits for its consumer would wait for ever. One that is iterated over is kept by the iteration.
        system = self._system
        if system is not None and self._record.result is None and not system.loop.is_closed():
            system.on_loop(self._record.stream.discard)

    @property
    def id(self) -> str:
        """The run's id. One that is resumed has that of the run that it continues, as soon as its checkpoint was found."""
        return self._context.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """Under which it is kept when it is interrupted or cancelled; None if it is not."""
        return None if self._checkpoint_of is None else self._checkpoint_of()

    @property
    def status(self) -> RunStatus:
        """Where it is in its life."""
        result = self._record.result
        if result is not None:
            return result.status
        if self._record.problem is not None:
            return RunStatus.FAILED
        return RunStatus.PENDING if self._launch is not None and self._system is None else RunStatus.RUNNING

    # --- starting ---

    def start(self) -> None:
        """Start it, if it has not been started."""
        if self._system is not None:
            return
        system = self._choose_system()  # not with the lock held: it may wait for a loop, on which somebody may wait for the lock
        with self._starting:
            if self._system is None:
                system.on_loop(self._start_here, system)
                self._system = system  # from here on others pass: what they send to the loop comes after the start

    def _start_here(self, system: ActorSystem) -> None:
        launch, self._launch = self._launch, None
        assert launch is not None
        try:
            self._supervisor = launch(system)
        except Exception as problem:  # noqa: BLE001 -- it is raised where the run is first awaited or iterated
            self._record.problem = problem
            self._record.give_up()

    def _started_system(self) -> ActorSystem:
        self.start()
        assert self._system is not None
        return self._system

    def _check(self) -> None:
        if self._record.problem is not None:
            raise self._record.problem

    # --- the end ---

    def __await__(self) -> Generator[object, None, RunResult]:
        system = self._started_system()
        here = get_ident() == system.dispatcher.thread or self._record.result is not None
        return (self._finished() if here else self._on_its_loop(self._finished)).__await__()

    async def _finished(self, *, leaving_cancels: bool = True) -> RunResult:
        """Wait for the end, on the run's own loop. Whoever is cancelled here has gone away, unless it only has no more time."""
        self._check()
        record = self._record
        if not self._iterated:
            record.stream.discard()
        if record.result is None:
            ended = asyncio.get_running_loop().create_future()
            callback = _Waker(ended)
            record.when_finished(callback)
            try:
                await ended
            except asyncio.CancelledError:
                record.forget(callback)
                if leaving_cancels:
                    self._abandon_here()
                raise
            self._check()
        assert record.result is not None
        return record.result

    def result(self, timeout: float | None = None) -> RunResult:
        """Block until the run has ended. In a coroutine, write `await run`."""
        if self._record.result is not None:
            return self._record.result
        try:
            result = self._block_on(partial(self._finished, leaving_cancels=False), "run.result()", "await run", timeout)
        except KeyboardInterrupt:
            self._started_system().on_loop(self._cancel_here, "it was interrupted from the keyboard")
            raise
        result = result or self._record.result
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
        self._started_system().on_loop(self._cancel_here, "cancel() was called", mode, timeout)
        return CancelHandle(self)

    def _cancel_here(self, reason: str, mode: CancelMode = "immediate", timeout: float | None = None) -> None:
        record = self._record
        record.stream.unblock()  # whoever waits for room does not come to anything else
        if mode == "immediate" or not record.is_open:
            record.unwanted = True
        if self._supervisor is not None and self._supervisor.is_alive():
            self._supervisor.tell(CancelRun(reason, mode, timeout))
            if record.may_be_cut:
                self._supervisor.cancel()

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call it, on the run's own loop, when nothing of it is left; now, if that is so."""
        self._record.when_finished(callback)

    async def wait_ended(self) -> None:
        """Wait until nothing of it is left, whoever reads its events. One that was never begun is not waited for."""
        if self._system is not None and not self._record.has_ended:
            await self._on_its_loop(self._wait_ended_here)

    async def _wait_ended_here(self) -> None:
        ended = asyncio.get_running_loop().create_future()
        callback = _Waker(ended)
        self._record.when_finished(callback)
        try:
            await ended
        finally:
            self._record.forget(callback)

    async def aclose(self) -> None:
        """Cancel it, if it has not ended, and wait until nothing of it is left."""
        if self._record.result is None and self._record.problem is None:
            self._started_system().on_loop(self._cancel_here, "it was closed")
            await self._on_its_loop(self._finished)

    # --- events ---

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self._events()

    def __iter__(self) -> Iterator[AgentEvent]:
        self._refuse_on_its_thread("for event in run", "async for event in run")
        return self._events()

    def _events(self) -> Events:
        self.start()
        if self._record.stream.is_discarded:
            msg = f"the events of run {self.id} are consumed already, by `await run` or `run.result()`: they are in `result.events`. Iterate first, then await."
            raise UsageError(msg, run=self.id)
        self._iterated = True
        return Events(self)

    async def _take_into(self, here: deque[AgentEvent], most: int) -> bool:
        """Fetch the next events, on the run's own loop. Returns False at the end, when nothing of the run is left.

        What is taken is put there in the same step, so that it is not lost if whoever waits for it is cancelled meanwhile.
        """
        self._check()
        if here:
            return True  # somebody who waited before, and was cancelled, has had them put there
        taken = await self._record.stream.take(most)
        here.extend(taken)
        return bool(taken)

    def _abandon(self) -> None:
        """The consumer has gone away before the end."""
        system = self._system
        if system is not None and self._record.result is None and not system.loop.is_closed():
            system.on_loop(self._abandon_here)

    def _abandon_here(self) -> None:
        self._record.stream.discard()
        self._cancel_here("its consumer has gone away")

    # --- from elsewhere ---

    async def _on_its_loop(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        system = self._started_system()
        if get_ident() == system.dispatcher.thread:
            return await work()
        self._check_loop(system)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), system.loop))

    def _block_on(self, work: Callable[[], Coroutine[Any, Any, T]], call: str, instead: str, timeout: float | None = None) -> T | None:
        """Do it on the run's loop, and wait for it in this thread. Returns None if the run has ended together with its loop."""
        self._refuse_on_its_thread(call, instead)
        system = self._started_system()
        self._check_loop(system)
        if get_ident() == system.dispatcher.thread:
            msg = f"`{call}` would wait for ever: run {self.id} lives on this thread's event loop, which is not running. Write `{instead}` in a coroutine."
            raise UsageError(msg, run=self.id)
        future = asyncio.run_coroutine_threadsafe(work(), system.loop)
        try:
            return self._wait_for(future, system, call, timeout)
        except concurrent.futures.CancelledError:
            self._ended_with_its_loop(system)
            return None
        except BaseException:
            if not system.loop.is_closed():
                future.cancel()
            raise

    def _wait_for(self, future: concurrent.futures.Future[T], system: ActorSystem, call: str, timeout: float | None) -> T | None:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return future.result(_LOOK_AGAIN if until is None else min(_LOOK_AGAIN, max(0.0, until - time.monotonic())))
            except concurrent.futures.TimeoutError:
                if future.done():
                    raise
            if system.loop.is_closed():  # one that is stopped and closed tells nobody
                self._ended_with_its_loop(system)
                return None
            if until is not None and time.monotonic() >= until:
                msg = f"{call}: run {self.id} has not ended within {timeout:g} s. It goes on: call result() again, or cancel()."
                raise TimeoutError(msg)

    def _ended_with_its_loop(self, system: ActorSystem) -> None:
        if self._record.result is None:
            self._check_loop(system)
            msg = f"run {self.id} cannot be waited for any more: the event loop that it lives on is ending."
            raise UsageError(msg, run=self.id)

    def _check_loop(self, system: ActorSystem) -> None:
        if system.loop.is_closed():
            msg = f"run {self.id} was not at its end when the event loop that it lived on was closed: nothing more will come of it."
            raise UsageError(msg, run=self.id)

    def _refuse_on_its_thread(self, call: str, instead: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        msg = f"`{call}` blocks its thread, and an event loop is running in this one. Write `{instead}`."
        raise UsageError(msg, run=self.id)


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


class _Waker:
    """Sets a future when it is called."""

    __slots__ = ("_future",)

    def __init__(self, future: asyncio.Future[None]) -> None:
        self._future = future

    def __call__(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
