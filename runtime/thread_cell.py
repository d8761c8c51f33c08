"""The inside of a thread actor: an actor with a thread of its own, for code that blocks.

Owns: the thread. It does one of two things: *work* (take messages from the mailbox and handle them) or *jobs* (the hooks and the making of instances,
handed over by `lifecycle.py`, which runs on the loop for this kind of actor, too). Its phase is `RUNNING` while it works.
The thread never changes the phase, the tree or anything else that belongs to the loop: it reports there.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from time import perf_counter
from types import CoroutineType
from typing import Any

from . import lifecycle
from .cell import Cell
from .directory import enter_thread
from .envelope import Envelope, Notice
from .future import ActorFuture
from .mailbox import MailboxClosed
from .messages import CancelRequest, ChildEscalated, ChildFailed, Control, StopRequest, WaitRequest
from .phase import OPEN, RUNNING, STARTING, STOPPED
from .receive import SPECIAL, handler_name
from .replies import answer, answer_error, cancelled_error, crashed_error
from .steps import Outcome
from .supervision import Stop

__all__ = ["ThreadCell"]


class ThreadCell(Cell):
    """One actor that owns a thread, from its spawn to its end."""

    __slots__ = ("_inner", "_jobs", "_runner", "thread")

    owns_thread = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.thread: threading.Thread | None = None
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()  # None: the thread may end
        self._runner: asyncio.Runner | None = None  # for asynchronous handlers, made in the thread when the first one comes
        self._inner: asyncio.Task[Any] | None = None  # the asynchronous handler that is under way in the thread

    @property
    def state(self) -> str:
        if self.phase is RUNNING and self.handling is None:
            return OPEN.value
        return self.phase.value

    @property
    def task_context(self) -> contextvars.Context:
        # The actor's own context is the thread's: two threads cannot be in it at once.
        return contextvars.copy_context()

    def begin(self) -> None:
        self.thread = threading.Thread(target=self._main, name=self.name, daemon=self.actor_class.use_daemon_thread)
        self.thread.start()
        self.system.on_loop(self._start)

    def visit(self) -> bool:
        """The dispatcher never comes: the thread waits on the mailbox itself."""
        return False

    def handle(self, envelope: Envelope, started: float) -> float:
        raise NotImplementedError  # only an idle actor is asked to, and this one never says that it is

    def is_idle(self) -> bool:
        return False  # it is the thread that handles

    def is_busy(self) -> bool:
        return self.handling is not None or len(self.mailbox) > 0

    def wake(self) -> None:
        """The thread waits on the mailbox itself."""

    def post_control(self, request: Control, reply_to: ActorFuture[Any] | None = None, *, seal: bool = False) -> bool:
        """What concerns its life goes to the loop; what needs its instance, to the thread."""
        envelope = Notice(request, reply_to)
        if isinstance(request, StopRequest | WaitRequest | CancelRequest):
            if seal:
                self.mailbox.seal()
            if self.phase is STOPPED:
                return False
            self.system.on_loop(self._control_or_ended, envelope)
            return True
        try:
            self.mailbox.put_control(envelope, seal=seal)
        except MailboxClosed:
            return False
        return True

    def is_own_thread(self, ident: int) -> bool:
        return self.thread is not None and self.thread.ident == ident

    def go_on(self) -> None:
        self.phase = RUNNING
        self.mailbox.come_back()
        self._jobs.put(self._work)

    def cancel_handler(self) -> None:
        inner = self._inner
        if inner is not None and not self.cancelling:
            self.cancelling = True
            inner.get_loop().call_soon_threadsafe(inner.cancel)

    def decide_on(self, request: ChildFailed) -> None:
        if not self.post_control(request):
            lifecycle.decided(request, Stop(), None)

    # --- procedures on the loop ---

    def _start(self) -> None:
        self.system.threads[self] = None
        if self.phase is STARTING and self.task is None:
            self.run_task(self._starting(), STARTING)

    async def _starting(self) -> None:
        error = await self.call("on_start")
        self.end_task()
        if error is not None:
            lifecycle.fail(self, error, "on_start")
        else:
            self.reopen()

    def _control_or_ended(self, envelope: Envelope) -> None:
        if self.phase is STOPPED:
            if isinstance(envelope.reply_to, ActorFuture):
                envelope.reply_to.settle(True)
        else:
            self.control(envelope)

    def _work_ended(self, failure: tuple[BaseException, str] | None) -> None:
        """The thread has turned from work to jobs."""
        if self.phase is not RUNNING:
            return  # given up at the end of the system
        if failure is not None:
            lifecycle.fail(self, *failure)
        else:
            lifecycle.stop(self)

    async def call(self, hook: str, *args: Any) -> BaseException | None:
        return await self._in_thread(lambda: self._run(hook, lambda: getattr(self.actor, hook)(*args)))

    async def rebuild(self) -> BaseException | None:
        return await self._in_thread(lambda: self._run("__init__", self.build))

    async def release(self) -> None:
        if self.thread is None:
            return  # it was never begun
        ended = self.system.loop.create_future()
        self._jobs.put(lambda: self._report(_set, ended, None))
        await ended
        self._jobs.put(None)
        self.thread.join()  # it has nothing left to do but to end
        self.system.threads.pop(self, None)

    async def _in_thread(self, job: Callable[[], Outcome]) -> BaseException | None:
        """Have the thread do it. Returns what it raised."""
        done: asyncio.Future[BaseException | None] = self.system.loop.create_future()
        self._jobs.put(lambda: self._report(_set, done, job().error))
        return await done

    # --- in the thread ---

    def _main(self) -> None:
        enter_thread(self.system)
        try:
            while (job := self._jobs.get()) is not None:
                job()
        finally:
            if self._runner is not None:
                self._runner.close()

    def _report(self, function: Callable[..., object], *args: Any) -> None:
        self.system.on_loop(function, *args)

    def _work(self) -> None:
        """Take and handle until the mailbox is closed or something fails."""
        while (envelope := self._next()) is not None:
            message = envelope.message
            if isinstance(message, ChildFailed):
                self._decide(message)
            elif isinstance(message, ChildEscalated):
                self._report(self._work_ended, (message.error, message.during))
                return
            elif isinstance(message, StopRequest):
                self._report(self._control_or_ended, envelope)
            else:
                error = self._handle_here(envelope)
                if error is not None:
                    self._report(self._work_ended, (error, handler_name(message)))
                    return
        self._report(self._work_ended, None)

    def _next(self) -> Envelope | None:
        if self.system.quiet is not None and not len(self.mailbox):
            self._report(self.system.look_again)
        return self.mailbox.wait_take()

    def _decide(self, request: ChildFailed) -> None:
        assert self.actor is not None
        actor, child = self.actor, request.child.ref
        outcome = self._run("on_child_failure", lambda: actor.on_child_failure(child, request.error))  # type: ignore[arg-type]  # it lives
        self._report(lifecycle.decided, request, outcome.value, outcome.error)

    def _handle_here(self, envelope: Envelope) -> BaseException | None:
        """Handle one message. Returns the error that is the supervisor's business."""
        message, reply_to = envelope.message, envelope.reply_to
        handler = handler_name(message)
        special = SPECIAL.get(type(message))
        started = perf_counter()
        receive: Callable[[], Any] = (lambda: special(self, message)) if special else (lambda: self.actor.on_receive(message))  # type: ignore[union-attr]
        outcome = self._run(handler, receive)
        seconds = perf_counter() - started
        monitor = self.system.monitor
        monitor.count_handled()
        if seconds > monitor.notable:
            monitor.took(self.path, handler, seconds)
        cancelled, self.cancelling = self.cancelling, False
        error = outcome.error
        if error is None:
            self._answer(answer, reply_to, outcome.value)
            return None
        if cancelled and isinstance(error, asyncio.CancelledError):
            self._answer(answer_error, reply_to, cancelled_error(self.path, message))
            return None
        if reply_to is not None and isinstance(error, Exception):
            self._answer(answer_error, reply_to, error)
            return None
        self._answer(answer_error, reply_to, crashed_error(self.path, message, error))
        return error

    def _answer(self, how: Callable[[Any, Any], None], reply_to: Any, what: Any) -> None:
        if type(reply_to) is ActorFuture:
            how(reply_to, what)
        elif reply_to is not None:
            self._report(how, reply_to, what)

    def _run(self, handler: str, function: Callable[[], Any]) -> Outcome:
        self.handling = handler
        try:
            result = self.context.run(function)
            if type(result) is CoroutineType:
                result = self._run_async(result)
        except BaseException as error:  # noqa: BLE001 -- the outcome is reported to the loop
            return Outcome(error)
        finally:
            self.handling = None
        return Outcome(None, result)

    def _run_async(self, coro: Coroutine[Any, Any, Any]) -> Any:
        async def run() -> Any:
            self._inner = asyncio.current_task()
            try:
                return await coro
            finally:
                self._inner = None

        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(run(), context=self.context)


def _set(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
