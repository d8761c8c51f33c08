"""The worker threads of a system, for single blocking calls.

The threads are daemons, so none of them prevents the process from ending; `process_end` gives them
time at the end. Their number is limited. Exempt are threads stuck in abandoned calls, which cannot
be ended and must not delay other calls, and threads that wait for a run of this very system, which
may need a thread to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

from ..errors import UsageError
from ..log import loggers
from . import process_end
from .blocking_call import BlockingCall

__all__ = ["Workers"]

T = TypeVar("T")
Call: TypeAlias = BlockingCall[Any]

MOST: Final = 200
"""The default limit on threads."""

# The number of stuck threads that are replaced by new ones.
_MOST_STUCK: Final = 200

# The number of threads that may wait for runs of their own system.
_MOST_LENT: Final = 800

# Seconds after which a thread without work ends.
_IDLE_SECONDS: Final = 30.0


class _Worker:
    """One thread. Its fields are written under the lock of the workers."""

    __slots__ = ("call", "thread", "wake")

    def __init__(self, call: Call) -> None:
        self.call: Call | None = call  # current or next call
        self.wake = threading.Semaphore(0)  # released when an idle thread gets a call, or must end
        self.thread: threading.Thread


class Workers:
    """Threads that start when needed, and end when not."""

    __slots__ = (
        "__weakref__",
        "_idle",
        "_lent",
        "_lock",
        "_most",
        "_name",
        "_numbers",
        "_on_quiet",
        "_patience",
        "_retiring",
        "_stuck",
        "_threads",
        "_waiting",
    )

    def __init__(self, name: str, most: int | None, patience: float) -> None:
        self._name = name
        self._most = MOST if most is None else most
        # Seconds that a call has to return after its caller gave up, before it is abandoned.
        self._patience = patience
        self._numbers = itertools.count(1)
        # Guards everything below. Held only briefly, never while calling out.
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Call, None] = OrderedDict()  # empty whenever a thread is idle
        self._threads: dict[_Worker, None] = {}
        self._idle: list[_Worker] = []  # last in, first out, so that surplus threads end
        self._stuck = 0  # number of threads in a call that its caller gave up
        self._lent = 0  # number of threads that wait for a run of their own system
        self._retiring = False  # True if a thread without work ends at once
        self._on_quiet: list[Callable[[], object]] = []  # called when no call is running any more

    @property
    def lock(self) -> threading.Lock:
        """The lock, for the hooks around a fork."""
        return self._lock

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a thread."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """The number of threads that run a call."""
        return len(self._threads) - len(self._idle)

    # --- on the loop ---

    async def run(
        self, function: Callable[[], T], name: str, began: Callable[[], object] | None = None
    ) -> T:
        """Run a call, with the caller's context variables.

        `began` is called on the loop when a thread has started it.
        """
        call = BlockingCall(function, name, began)
        self._submit(call)
        try:
            return await call.reply
        except asyncio.CancelledError:
            self._give_up(call)
            raise

    def _submit(self, call: Call) -> None:
        with self._lock:
            self._retiring = False
            if self._idle:
                worker = self._idle.pop()
                worker.call = call
                worker.wake.release()
                return
            if not self._has_room():
                self._waiting[call] = None
                return
            worker = self._add(call)
        self._start(worker)

    def _has_room(self) -> bool:
        return len(self._threads) < self._most + self._stuck + self._lent

    def _add(self, call: Call) -> _Worker:
        worker = _Worker(call)
        worker.thread = threading.Thread(
            target=self._work,
            args=(worker,),
            name=f"{self._name}-worker-{next(self._numbers)}",
            daemon=True,
        )
        self._threads[worker] = None
        return worker

    def _start(self, worker: _Worker) -> None:
        """Start a thread.

        If that fails, the call waits for another thread; if there is none, it fails.
        """
        process_end.watch(self)
        try:
            worker.thread.start()
        except RuntimeError as error:
            with self._lock:
                del self._threads[worker]
                call, worker.call = worker.call, None
                assert call is not None
                # A process that is exiting starts no thread: the call waits until its caller ends.
                if self._threads or "interpreter shutdown" in str(error):
                    self._waiting[call] = None
                    self._waiting.move_to_end(call, last=False)
                    return
            raise

    def _give_up(self, call: Call) -> None:
        """Handle a call that nobody waits for any longer.

        A running call cannot be ended: another thread replaces its thread until it returns.
        """
        with self._lock:
            if self._waiting.pop(call, self) is None or call.given_up is not None:
                return
            if not any(each.call is call for each in self._threads):
                return  # it has returned
            if self._stuck >= _MOST_STUCK:
                too_many = self._stuck
            else:
                too_many = 0
                self._stuck += 1
                call.given_up = monotonic()
        if too_many:
            loggers.system.error(
                "%s: %d abandoned calls have not returned. Set timeouts on the operations that "
                "they wait for.",
                self._name,
                too_many,
            )
        # In the next turn of the loop, so that calls given up together with this one do not start
        # in its place.
        asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        """Start a waiting call, if a thread may be added."""
        worker: _Worker | None = None
        with self._lock:
            if self._waiting and self._has_room():
                worker = self._add(self._waiting.popitem(last=False)[0])
        if worker is not None:
            self._start(worker)

    # --- in the threads ---

    def _work(self, worker: _Worker) -> None:
        call = worker.call
        while call is not None:
            call.make()
            following = self._returned(worker)
            call.deliver()
            call = None  # a thread without work keeps nothing alive
            call = following or self._wait(worker)

    def _returned(self, worker: _Worker) -> Call | None:
        """Note that the call has returned. Returns the next one."""
        quiet: list[Callable[[], object]] = []
        try:
            with self._lock:
                call, worker.call = worker.call, None
                if worker not in self._threads:
                    return None  # it was abandoned
                if call is not None and call.given_up is not None:
                    self._stuck -= 1
                if len(self._threads) > self._most + self._stuck + self._lent or (
                    self._retiring and not self._waiting
                ):
                    del self._threads[worker]
                elif self._waiting:
                    worker.call, _ = self._waiting.popitem(last=False)
                else:
                    self._idle.append(worker)
                if self._on_quiet and not any(True for _ in self._under_way()):
                    quiet, self._on_quiet = self._on_quiet, []
                return worker.call
        finally:
            for tell in quiet:
                tell()

    def _wait(self, worker: _Worker) -> Call | None:
        """Wait for the next call. None: the thread must end."""
        while worker in self._threads:
            if worker.wake.acquire(timeout=_IDLE_SECONDS):
                return worker.call
            with self._lock:
                if worker in self._idle:  # and did not get a call at this very moment
                    self._idle.remove(worker)
                    self._threads.pop(worker, None)
        return None

    @contextlib.contextmanager
    def lending(self, call: str, instead: str) -> Iterator[None]:
        """Wait inside this context for a run of this system.

        The calling worker thread does not count meanwhile, because the run may need a thread to
        end.
        """
        if not any(worker.thread is threading.current_thread() for worker in tuple(self._threads)):
            yield
            return
        with self._lock:
            is_refused = self._lent >= _MOST_LENT
            self._lent += not is_refused
        if is_refused:
            msg = (
                f"`{call}`: {_MOST_LENT} threads of system {self._name!r} already wait for its "
                f"runs. Make the tool `async def` and write `{instead}`."
            )
            raise UsageError(msg)
        try:
            self._fill()
            yield
        finally:
            with self._lock:
                self._lent -= 1

    # --- stopping ---

    def release(self) -> None:
        """End the idle threads now, and the others when they become idle."""
        if not self._threads and not self._waiting:
            return  # only code on the loop, where this is called, adds any
        with self._lock:
            self._retiring = True
            idle, self._idle = self._idle, []
            ending = [worker for worker in self._threads if worker.call is None]
            for worker in ending:
                self._threads.pop(worker, None)
            dropped = tuple(self._waiting)
            self._waiting.clear()
        for worker in idle:
            worker.wake.release()
        for call in dropped:
            call.drop()
        for worker in ending:
            worker.thread.join()  # takes no time

    async def leave(self) -> None:
        """Release the threads, and wait for running calls, within their time limit."""
        loop = asyncio.get_running_loop()
        quiet = loop.create_future()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed at this very moment
                loop.call_soon_threadsafe(_set, quiet)

        seconds, leaving = self._begin_to_leave(tell)
        if leaving:
            await asyncio.wait((quiet,), timeout=seconds)
        self._join(leaving)

    def leave_in_thread(self) -> None:
        """Release the threads, wait in this blocking thread, then abandon the remaining calls."""
        quiet = threading.Event()
        seconds, leaving = self._begin_to_leave(quiet.set)
        try:
            if leaving:
                quiet.wait(seconds)
        finally:
            self.leave_behind()

    def _join(self, workers: Iterable[_Worker]) -> None:
        """Wait for the ending threads: they only deliver their last result, which takes no time."""
        with self._lock:
            ending = [worker.thread for worker in workers if worker not in self._threads]
        for thread in ending:
            thread.join()

    def _begin_to_leave(self, on_quiet: Callable[[], object]) -> tuple[float, list[_Worker]]:
        """Return the seconds to wait for `on_quiet`, and the threads that run a call.

        Without such threads, there is nothing to wait for.
        """
        self.release()
        now = monotonic()
        with self._lock:
            leaving, instants = list(self._under_way()), []
            for worker in leaving:
                assert worker.call is not None
                if worker.call.given_up is None:
                    worker.call.given_up = now
                    self._stuck += 1
                instants.append(worker.call.given_up)
            if leaving:
                self._on_quiet.append(on_quiet)
            return max(0.0, max(instants, default=now) + self._patience - now), leaving

    def leave_behind(self) -> None:
        """Release the threads, without waiting for any.

        The log names the calls that are still running. They no longer count.
        """
        self.release()
        with self._lock:
            left = [worker.call.name for worker in self._under_way() if worker.call is not None]
            self._forget()
        for name in left:
            loggers.system.error(
                "%s has not returned from its thread within %g s. It is abandoned, and ends with "
                "the process at the latest.",
                name,
                self._patience,
            )

    def _under_way(self) -> Iterator[_Worker]:
        return (worker for worker in self._threads if worker.call is not None)

    def forget(self) -> None:
        """Forget all threads in a forked process, because none of them exists there."""
        self._forget()
        self._idle.clear()
        self._waiting.clear()

    def _forget(self) -> None:
        self._threads.clear()
        self._on_quiet.clear()
        self._stuck = 0


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
