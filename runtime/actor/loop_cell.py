"""The inside of an actor on the event loop: how it handles messages.

Synchronous handlers run in the dispatcher's turn. Each asynchronous handler runs in a separate
task, so that a cancellation never hits the next message. An idle actor holds no task and no thread,
and an exception of a handler never reaches the dispatcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from types import CoroutineType
from typing import Final

from . import lifecycle
from .cell import Cell
from .envelope import Envelope, Notice, Returned
from .extras.table import is_stashed
from .extras.timers import Tick
from .messages import ChildFailed, Control, Stopped
from .phase import OPEN, RUNNING, STARTING
from .receive import SPECIAL, handler_name
from .replies import answer, answer_error, cancelled_error, crashed_error
from .steps import StepResult, Steps
from .supervision import Stop

__all__ = ["Handling", "LoopCell"]

_STOPPED: Final = Stopped()

# The number of messages that one actor may handle before the next actor's turn.
_BATCH = 16

# Types that are not bare messages for `on_receive`.
_NOT_BARE: Final = frozenset((Envelope, Notice, Returned, Tick, *SPECIAL))


class Handling(Steps):
    """The steps of a handler.

    Its two callbacks are methods: closures would take half a kilobyte for each waiting actor.
    """

    __slots__ = ("_cell", "_envelope", "_handler", "_seconds")

    def __init__(
        self,
        coro: Coroutine[object, None, object],
        cell: LoopCell,
        envelope: Envelope,
        handler: str,
    ) -> None:
        self._begin = cell.system.monitor.begin
        self._coro = coro
        self._cell = cell
        self._envelope = envelope
        self._handler = handler
        self._seconds = 0.0  # total time for which its steps have blocked the loop

    def _held(self, seconds: float) -> None:
        self._seconds += seconds
        cell = self._cell
        if seconds > cell.system.monitor.slow_after:
            cell.system.monitor.blocked_for(cell.path, cell.actor_class, self._handler, seconds)

    def _done(self, outcome: StepResult) -> None:
        self._cell._finish(self._envelope, outcome, self._handler, self._seconds)


class LoopCell(Cell):
    """One actor on the event loop, from its spawn to its end."""

    __slots__ = ()

    def begin(self) -> None:
        if not self.actor_class.__actor_traits__.has_on_start:
            self.phase = OPEN
            if not self.mailbox.come_back():
                return
        self.wake()

    def is_idle(self) -> bool:
        return self.phase is OPEN and self.mailbox.is_idle

    def visit(self) -> bool:
        if self.phase is not OPEN and not (
            self.phase is STARTING and self.task is None and lifecycle.start(self)
        ):
            self.attend()
            return False
        left = _BATCH
        while self.phase is OPEN:
            left, envelope, outcome = self.context.run(self._receive, left)
            if envelope is None:
                return left == 0 and self.phase is OPEN
            if outcome is None:
                left -= 1
                self._notice(envelope)
            elif isinstance(outcome, BaseException):
                self._failed(envelope, outcome)
            else:
                self.begin_handler(outcome, envelope)
            # The exception's frames refer to this frame, so this frame must not refer to the
            # exception.
            del outcome
        return False

    def _receive(
        self, left: int
    ) -> tuple[int, Envelope | None, Coroutine[object, None, object] | BaseException | None]:
        """Handle up to `left` messages in the actor's context, which is entered once for all.

        Returns the remaining number, and the work to do outside of that context: an envelope that
        is not for `on_receive`, or an envelope with its handler's coroutine or exception.
        """
        mailbox, system, actor = self.mailbox, self.system, self.actor
        monitor = system.monitor
        started = monitor.begin()
        for still in range(left - 1, -1, -1):
            lane = mailbox.lane
            if lane and mailbox.control is None:
                message = lane.popleft()
            else:
                message = mailbox.take()
                if message is None:
                    return still + 1, None, None
            envelope = None
            kind = type(message)
            if kind in _NOT_BARE:
                if kind is not Envelope or type(message.message) in SPECIAL:
                    return (
                        still + 1,
                        message if issubclass(kind, Envelope) else Envelope(message),
                        None,
                    )
                envelope = message
                message = envelope.message
            monitor.handled += 1
            try:
                result = actor.on_receive(message)  # type: ignore[union-attr]  # open, so there is an instance
            except BaseException as error:  # noqa: BLE001 -- goes to the asker or to the supervisor
                self._note(handler_name(message), perf_counter() - started)
                return still, envelope or Envelope(message), error
            if type(result) is CoroutineType:
                return still, envelope or Envelope(message), result
            ended = perf_counter()
            if ended - started > monitor.notable:
                self._note(handler_name(message), ended - started)
            started = ended
            if system.extras and is_stashed(self, envelope or Envelope(message)):
                pass
            elif envelope is not None and envelope.reply_to is not None:
                answer(envelope.reply_to, result)
            if self.phase is not OPEN:
                return still, None, None
        return 0, None, None

    def _notice(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, Control):
            self.control(envelope)
        elif type(envelope) is not Tick or envelope.is_due():
            self.handle(envelope, self.system.monitor.begin())

    def handle(self, envelope: Envelope, started: float) -> float:
        """Handle one message now.

        Returns the time at which the handler ended or, if it is asynchronous, started.
        """
        message = envelope.message
        monitor = self.system.monitor
        monitor.handled += 1
        try:
            special = SPECIAL.get(type(message))
            run = self.context.run
            result = (
                run(self.actor.on_receive, message)  # type: ignore[union-attr]  # open
                if special is None
                else run(special, self, message)
            )
        except BaseException as error:  # noqa: BLE001 -- goes to the asker or to the supervisor
            ended = perf_counter()
            self._note(handler_name(message), ended - started)
            self._failed(envelope, error)
            return ended
        if type(result) is CoroutineType:
            self.begin_handler(result, envelope)
            return perf_counter()
        ended = perf_counter()
        if ended - started > monitor.notable:
            self._note(handler_name(message), ended - started)
        if self.system.extras and is_stashed(self, envelope):
            return ended
        reply_to = envelope.reply_to
        if reply_to is not None:
            answer(reply_to, result)
        return ended

    def reply_now(self, message: object) -> object:
        system = self.system
        monitor, special = system.monitor, SPECIAL.get(type(message))
        monitor.handled += 1
        started = monitor.begin()
        try:
            run = self.context.run
            result = (
                run(self.actor.on_receive, message)  # type: ignore[union-attr]  # open
                if special is None
                else run(special, self, message)
            )
        except BaseException as error:  # noqa: BLE001 -- goes to the asker, and perhaps to the supervisor
            ended = perf_counter()
            self._note(handler_name(message), ended - started)
            system.dispatcher.spend(ended - started)
            envelope = Envelope(message, system.loop.create_future())
            self._failed(envelope, error)
            return envelope
        ended = perf_counter()
        system.dispatcher.spend(ended - started)
        if type(result) is CoroutineType:
            envelope = Envelope(message, system.loop.create_future())
            self.begin_handler(result, envelope)
            return envelope
        if ended - started > monitor.notable:
            self._note(handler_name(message), ended - started)
        if system.extras and is_stashed(
            self, envelope := Envelope(message, system.loop.create_future())
        ):
            return envelope
        return result

    def _note(self, handler: str, seconds: float) -> None:
        """Record the time of a synchronous handler, which may be notably long."""
        self.system.monitor.took(self.path, handler, seconds)
        self.blocked_for(handler)(seconds)

    def begin_handler(self, coro: Coroutine[object, None, object], envelope: Envelope) -> None:
        self.handling = handler = handler_name(envelope.message)
        self.current = envelope
        self.run_task(Handling(coro, self, envelope, handler), RUNNING)

    def _finish(
        self, envelope: Envelope, outcome: StepResult, handler: str, seconds: float
    ) -> None:
        monitor = self.system.monitor
        if seconds > monitor.notable:
            monitor.took(self.path, handler, seconds)
        cancelled, self.cancelling = self.cancelling, False
        self.handling = self.current = None
        self.end_task()
        if self.until_childless and outcome.error is None and self.end_with_handler():
            return
        if self.system.extras and is_stashed(self, envelope, failed=outcome.error is not None):
            pass
        elif outcome.error is None:
            if envelope.reply_to is not None:
                answer(envelope.reply_to, outcome.value)
        elif cancelled and isinstance(outcome.error, asyncio.CancelledError):
            if envelope.reply_to is not None:
                answer_error(envelope.reply_to, cancelled_error(self, envelope.message))
        else:
            self._failed(envelope, outcome.error)
        if self.phase is RUNNING:
            self.reopen()

    def end_with_handler(self) -> bool:
        """End the actor, unless something that happened meanwhile prevents it.

        Messages left in the mailbox are answered.
        """
        with self.system.lock:
            if self.children or self.closing or self.escalated is not None:
                return False
            self.closing = True
        self.end(_STOPPED)
        return True

    def _failed(self, envelope: Envelope, error: BaseException) -> None:
        """Send an `Exception` to the asker.

        Without an asker, or if it is not an `Exception`, the supervisor receives it; the asker then
        receives `ActorFailed`.
        """
        reply_to = envelope.reply_to
        if self.system.extras:
            is_stashed(self, envelope, failed=True)
        if reply_to is not None:
            if isinstance(error, Exception):
                answer_error(reply_to, error)
                return
            answer_error(reply_to, crashed_error(self, envelope.message, error))
        lifecycle.fail(self, error, handler_name(envelope.message))

    def go_on(self) -> None:
        self.phase = OPEN
        if self.mailbox.come_back() and self.system.dispatcher.visiting is not self:
            self.system.dispatcher.ready(self)

    def cancel_handler(self) -> None:
        if self.phase is RUNNING and self.task is not None and not self.cancelling:
            self.cancelling = True
            self.task.cancel()

    def interrupt(self) -> None:
        if self.phase in (RUNNING, STARTING) and self.task is not None and not self.cancelling:
            self.cancelling = True
            self.task.cancel()

    def cut_off(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def decide_on(self, request: ChildFailed) -> None:
        # Even while a handler of this actor waits: it may wait for that very child.
        if self.closing or self.actor is None:
            lifecycle.decided(request, Stop(), None)
            return
        began = self.system.monitor.begin()
        try:
            result = self.context.run(
                self.actor.on_child_failure, request.child.own_ref(), request.error
            )
        except BaseException as error:  # noqa: BLE001 -- goes to this actor's own supervisor
            lifecycle.decided(request, None, error)
            return
        self.blocked_for("on_child_failure")(perf_counter() - began)
        if type(result) is not CoroutineType:
            lifecycle.decided(request, result, None)
            return

        def done(outcome: StepResult) -> None:
            lifecycle.decided(request, outcome.value, outcome.error)

        steps = Steps(
            result, self.blocked_for("on_child_failure"), done, begin=self.system.monitor.begin
        )
        self.system.run_task(
            steps, f"{self.path} is still in on_child_failure", self.context.copy()
        )

    async def release(self) -> None:
        """Release nothing, because there is nothing to release."""
