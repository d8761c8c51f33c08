"""The inside of a thread actor: an actor with its own thread, for code that blocks.

The thread does one of two things: *work* (take messages from the mailbox and handle them) or *jobs*
(run hooks and create instances for `lifecycle.py`, which runs on the loop for this kind of actor
too). The phase is `RUNNING` while the thread works. The thread never changes the phase, the tree or
anything else that belongs to the loop: it reports to the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from time import monotonic, perf_counter
from types import CoroutineType
from typing import Any

from . import lifecycle
from .actor import construct
from .cell import Cell
from .current import enter_thread
from .envelope import Envelope, Notice
from .extras.table import is_stashed
from .extras.timers import Tick
from .future import ActorFuture
from .mailbox import MailboxClosed
from .messages import (
    CancelRequest,
    ChildEscalated,
    ChildFailed,
    Control,
    Ending,
    Look,
    StopRequest,
    WaitRequest,
)
from .phase import OPEN, RUNNING, STARTING, STOPPED
from .receive import SPECIAL, handler_name
from .replies import answer, answer_error, cancelled_error, crashed_error
from .steps import StepResult, Steps
from .supervision import Stop

__all__ = ["ThreadCell"]


class ThreadCell(Cell):
    """One actor that owns a thread, from its spawn to its end."""

    __slots__ = (
        "_cancelled",
        "_deciding",
        "_failed",
        "_inner",
        "_jobs",
        "_runner",
        "_undecided",
        "_waiting",
        "_working",
        "thread",
    )

    owns_thread = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.thread: threading.Thread | None = None
        # None: the thread may end.
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        # For asynchronous handlers, created in the thread on first use.
        self._runner: asyncio.Runner | None = None
        # Current or last asynchronous handler in the thread.
        self._inner: asyncio.Task[object] | None = None
        # Failed children that the thread must decide about.
        self._undecided: deque[ChildFailed] = deque()
        # Current asynchronous decisions in the thread.
        self._deciding: set[asyncio.Task[object]] = set()
        # Why the thread stopped working; written by it, and taken by the loop.
        self._failed: tuple[BaseException, str] | None = None
        # True while the thread does work rather than jobs; written by the thread
        self._working = False
        # The thread blocks on it in a handler or hook that waits for a reply.
        self._waiting: threading.Event | None = None
        self._cancelled: asyncio.Task[object] | None = None  # the handler that was cancelled

    @property
    def state(self) -> str:
        if self.phase is RUNNING and self.handling is None:
            return OPEN.value
        return self.phase.value

    @property
    def task_context(self) -> contextvars.Context:
        # The thread uses the actor's own context, which two threads cannot enter at once.
        return contextvars.copy_context()

    def begin(self) -> None:
        self.thread = threading.Thread(
            target=self._main, name=self.name, daemon=self.actor_class.use_daemon_thread
        )
        self.thread.start()
        self.system.on_loop(self._start)

    def visit(self) -> bool:
        """Do nothing: the thread itself waits on the mailbox."""
        return False

    def reply_now(self, message: object) -> object:
        raise NotImplementedError  # only idle actors get this call, and this one is never idle

    def is_idle(self) -> bool:
        return False  # only the thread handles messages

    def is_busy(self) -> bool:
        return self.mailbox.is_engaged or len(self.mailbox) > 0

    def wake(self) -> None:
        """Do nothing: the thread itself waits on the mailbox."""

    def post_control(
        self, request: Control, reply_to: ActorFuture[object] | None = None, *, seal: bool = False
    ) -> bool:
        """Send a lifecycle request to the loop, and one that needs the instance to the thread."""
        envelope = Notice(request, reply_to)
        if isinstance(request, StopRequest | WaitRequest | CancelRequest):
            if seal:
                self.mailbox.seal()
            if self.phase is STOPPED:
                return False
            told = self.system.on_loop(self._control_or_ended, envelope)
            if seal:
                # The thread must take no more work either: this request in the control lane stops
                # it.
                with contextlib.suppress(MailboxClosed):
                    self.mailbox.put_control(Notice(StopRequest()))
            return told
        try:
            self.mailbox.put_control(envelope, seal=seal)
        except MailboxClosed:
            return False
        return True

    def holds_thread(self) -> bool:
        return self.thread is not None

    def is_own_thread(self, ident: int) -> bool:
        # Idents are reused: after this thread has ended, its ident may belong to another one.
        return self.thread is not None and self.thread.ident == ident and self.thread.is_alive()

    def go_on(self) -> None:
        self.phase = RUNNING
        self.mailbox.come_back()
        self._jobs.put(self._work)

    def cancel_handler(self) -> None:
        if self.phase is RUNNING:
            self._cancel_inner()

    def interrupt(self) -> None:
        if self.phase is STARTING:
            self.cancelling = True
        if self.phase in (RUNNING, STARTING):
            self._cancel_inner()
            self._cancel_decisions()

    def cut_off(self) -> None:
        self._cancelled = None  # again, if it was cancelled before
        self._cancel_inner()
        self._cancel_decisions()

    def _cancel_inner(self) -> None:
        inner = self._inner
        if (
            self.handling is not None
            and inner is not None
            and inner is not self._cancelled
            and not inner.done()
        ):
            self._cancelled = inner
            inner.get_loop().call_soon_threadsafe(inner.cancel)

    def _cancel_decisions(self) -> None:
        for task in tuple(self._deciding):
            task.get_loop().call_soon_threadsafe(task.cancel)

    def decide_on(self, request: ChildFailed) -> None:
        if self.closing or self.actor is None:
            lifecycle.decided(request, Stop(), None)
            return
        self._undecided.append(request)
        # Make the thread notice, whatever it is doing: it may wait for that very child.
        waiting, inner = self._waiting, self._inner
        if waiting is not None:
            waiting.set()
        if inner is not None and not inner.done():
            with contextlib.suppress(RuntimeError):  # it has ended, and its loop with it
                inner.get_loop().call_soon_threadsafe(self._decide)
        if self._working:
            self.post_control(Look())
        else:
            self._jobs.put(self._decide)

    # --- procedures on the loop ---

    def _start(self) -> None:
        self.system.threads[self] = None
        if self.phase is STARTING and self.task is None:
            self.run_task(self._starting(), STARTING)

    async def _starting(self) -> None:
        lifecycle.started(self, await self.call("on_start"), "on_start")

    def _control_or_ended(self, envelope: Envelope) -> None:
        if self.phase is STOPPED:
            if isinstance(envelope.reply_to, ActorFuture):
                envelope.reply_to.resolve(True)
        else:
            self.control(envelope)

    def _work_ended(self) -> None:
        """Handle the thread's change from work to jobs."""
        failed, self._failed = self._failed, None
        if self.phase is not RUNNING:
            return  # abandoned at the end of the system
        if failed is not None:
            lifecycle.fail(self, *failed)
        else:
            lifecycle.stop(self)

    async def call(self, hook: str, *args: Any) -> BaseException | None:
        return await self._in_thread(
            lambda: self._run(hook, lambda: getattr(self.actor, hook)(*args))
        )

    async def rebuild(self) -> BaseException | None:
        return await self._in_thread(lambda: self._run("__init__", lambda: construct(self)))

    async def release(self) -> None:
        if self.thread is None:
            return  # never started
        ended = self.system.loop.create_future()
        self._jobs.put(lambda: self._report(_set, ended, None))
        await ended
        self._jobs.put(None)
        self.thread.join()  # takes no time: the thread has nothing left to do

    def end(self, ending: Ending) -> None:
        super().end(ending)
        # If the actor was abandoned, the thread ends once its current job returns.
        self._jobs.put(None)
        self.system.threads.pop(self, None)

    async def _in_thread(self, job: Callable[[], StepResult]) -> BaseException | None:
        """Run a job in the thread. Returns its exception, if any."""
        done: asyncio.Future[BaseException | None] = self.system.loop.create_future()
        self._jobs.put(lambda: self._report(_set, done, job().error))
        return await done

    # --- in the thread ---

    def _main(self) -> None:
        enter_thread(self.system, self._wait)
        try:
            while (job := self._jobs.get()) is not None:
                job()
        finally:
            if self._runner is not None:
                self._runner.close()

    def _report(self, function: Callable[..., object], *args: Any) -> None:
        self.system.on_loop(function, *args)

    # No frame here may keep an error in a variable: these frames call the handler, so the traceback
    # of its error keeps them, and they would keep the error.

    def _work(self) -> None:
        self._working = True
        self._decide()
        self._take_and_handle()
        self._working = False
        self._decide()
        self._report(self._work_ended)

    def _take_and_handle(self) -> None:
        """Handle messages until the mailbox is closed or something fails."""
        while self._failed is None and (envelope := self._next()) is not None:
            message = envelope.message
            if isinstance(message, Look):
                self._decide()
            elif isinstance(message, ChildEscalated):
                self._failed = (message.error, message.during)
            elif isinstance(message, StopRequest):
                # The last envelope of the work lane. The loop already knows about one in the
                # control lane.
                if envelope.reply_to is not None:
                    self._report(self._control_or_ended, envelope)
                break
            elif type(envelope) is not Tick or envelope.is_due():
                self._handle_here(envelope)

    def _next(self) -> Envelope | None:
        envelope = self.mailbox.take()
        if envelope is None:
            if self.system.waiting_for_quiet:
                self._report(self.system.look_again)
            envelope = self.mailbox.wait_take()
        return envelope

    def _wait(
        self, event: threading.Event, done: Callable[[], bool], timeout: float | None
    ) -> bool:
        """Block in a handler or hook, and decide about children that fail meanwhile."""
        deadline = None if timeout is None else monotonic() + timeout
        outer, self._waiting = self._waiting, event
        try:
            self._decide()  # about children that failed before `_waiting` was set
            while not done():
                if not event.wait(None if deadline is None else max(0.0, deadline - monotonic())):
                    return done()
                event.clear()
                self._decide()
        finally:
            self._waiting = outer
        return True

    def _decide(self) -> None:
        """Decide about failed children. Also called within a handler that waits."""
        while self._undecided:
            request = self._undecided.popleft()
            if self.closing:
                self._report(lifecycle.decided, request, Stop(), None)
                continue
            outer, self.handling = self.handling, "on_child_failure"
            try:
                # In a copy of the current context: the actor's own may already be entered, further
                # down this stack.
                result = contextvars.copy_context().run(
                    self.actor.on_child_failure,  # type: ignore[union-attr]
                    request.child.own_ref(),
                    request.error,
                )
                if type(result) is CoroutineType:
                    self._decide_async(request, result)
                    continue
            except BaseException as error:  # noqa: BLE001 -- goes to this actor's own supervisor
                self._report(lifecycle.decided, request, None, error)
            else:
                self._report(lifecycle.decided, request, result, None)
            finally:
                self.handling = outer

    def _decide_async(self, request: ChildFailed, coro: Coroutine[object, None, object]) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._report(lifecycle.decided, request, self._run_async(coro), None)
            return
        # The thread's loop is running, further down this stack; `_run_async` keeps it running until
        # this is done.
        task = loop.create_task(
            Steps(
                coro,
                lambda _seconds: None,
                lambda outcome: self._report(
                    lifecycle.decided, request, outcome.value, outcome.error
                ),
            )
        )
        self._deciding.add(task)
        task.add_done_callback(self._deciding.discard)
        if self.system.closing:
            task.cancel()  # the interruption came before it started

    def _handle_here(self, envelope: Envelope) -> None:
        message = envelope.message
        special = SPECIAL.get(type(message))
        receive: Callable[[], object] = (
            (lambda: special(self, message))
            if special
            else (lambda: self.actor.on_receive(message))  # type: ignore[union-attr]
        )
        started = perf_counter()
        self.current = envelope
        self._resolve(envelope, started, self._run(handler_name(message), receive))

    def _resolve(self, envelope: Envelope, started: float, outcome: StepResult) -> None:
        """Send the outcome of a handler to the asker.

        An error that is not an `Exception`, or that has no asker, goes to the supervisor only; an
        asker then receives `ActorFailed`.
        """
        self.current = None
        message, reply_to, error = envelope.message, envelope.reply_to, outcome.error
        seconds = perf_counter() - started
        monitor = self.system.monitor
        monitor.count_handled()
        # An asynchronous handler may have waited, in a thread that nothing else needs.
        if seconds > monitor.notable and self._inner is None:
            monitor.took(self.path, handler_name(message), seconds)
        if self.system.extras and is_stashed(self, envelope, failed=error is not None):
            pass
        elif error is None:
            self._answer(answer, reply_to, outcome.value)
        elif (
            isinstance(error, asyncio.CancelledError)
            and self._cancelled is not None
            and self._cancelled is self._inner
        ):
            self._answer(answer_error, reply_to, cancelled_error(self, message))
        elif reply_to is not None and isinstance(error, Exception):
            self._answer(answer_error, reply_to, error)
        else:
            self._answer(answer_error, reply_to, crashed_error(self, message, error))
            self._failed = (error, handler_name(message))
        self._inner = self._cancelled = None

    def _answer(self, how: Callable[[Any, Any], None], reply_to: Any, what: Any) -> None:
        if type(reply_to) is ActorFuture:
            how(reply_to, what)
        elif reply_to is not None:
            self._report(how, reply_to, what)

    def _run(self, handler: str, function: Callable[[], object]) -> StepResult:
        self.handling = handler
        try:
            result = self.context.run(function)
            if type(result) is CoroutineType:
                result = self._run_async(result)
        except BaseException as error:  # noqa: BLE001 -- the outcome is reported to the loop
            return StepResult(error)
        finally:
            self.handling = None
        return StepResult(None, result)

    def _run_async(self, coro: Coroutine[object, None, object]) -> object:
        async def run() -> object:
            self._inner = inner = asyncio.current_task()
            if self.system.closing and inner is not None and self.phase in (RUNNING, STARTING):
                self._cancelled = inner  # the interruption came before it started
                inner.cancel()
            return await coro

        async def decide() -> None:
            await asyncio.wait(self._deciding)

        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            return self._runner.run(run(), context=self.context)
        finally:
            outer, self.handling = self.handling, "on_child_failure"
            while self._deciding:
                self._runner.run(decide())
            self.handling = outer


def _set(future: asyncio.Future[object], value: object) -> None:
    if not future.done():
        future.set_result(value)
