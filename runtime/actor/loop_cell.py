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

# The types of envelopes. Everything else in a lane is a message that has none.
_ENVELOPES: Final = frozenset((Envelope, Notice, Returned, Tick))

_NOT_INVOKED: Final = object()


class Raised:
    """The outcome of a handler that raised at once.

    The frames of the exception's traceback refer to those that hold the outcome, so it must not
    keep the exception once that is settled.
    """

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def take(self) -> BaseException:
        """Return the exception. Only once."""
        error, self._error = self._error, None
        assert error is not None
        return error


# The outcomes of a message that are not its reply.
_UNSETTLED: Final = frozenset((CoroutineType, Raised))


class Handling(Steps):
    """The steps of a handler.

    Its two callbacks are methods: closures would take half a kilobyte for each waiting actor.
    """

    __slots__ = ("_cell", "envelope", "handler", "seconds")

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
        self.envelope = envelope
        self.handler = handler
        self.seconds = 0.0  # total time for which its steps have blocked the loop

    def _held(self, seconds: float) -> None:
        self.seconds += seconds
        cell = self._cell
        if seconds > cell.system.monitor.slow_after:
            cell.system.monitor.blocked_for(cell.path, cell.actor_class, self.handler, seconds)

    def _end(self, started: float, error: BaseException | None, value: object = None) -> None:
        self._held(perf_counter() - started)
        self._cell.finish(self, error, value)


class LoopCell(Cell):
    """One actor on the event loop, from its spawn to its end."""

    __slots__ = ()

    def begin(self) -> None:
        if self.actor_class.__actor_traits__.has_on_start or self.open():
            self.wake()

    def is_idle(self) -> bool:
        box = self.box
        return self.phase is OPEN and (box is None or box.is_idle)

    def visit(self) -> bool:
        if self.phase is not OPEN and not (
            self.phase is STARTING and self.task is None and lifecycle.start(self)
        ):
            self.attend()
            return False
        left = _BATCH
        while self.phase is OPEN:
            left, envelope, result = self.context.run(self._receive, left)
            if envelope is None:
                return left == 0 and self.phase is OPEN
            if result is not _NOT_INVOKED:
                self._settle(envelope, result)
            elif isinstance(envelope.message, Control):
                self.control(envelope)
            elif type(envelope) is not Tick or envelope.is_due():
                self.handle_measured(envelope)
            # The frames of a handler's exception refer to this frame, so this frame must not refer
            # to the exception.
            del result
        return False

    def _receive(self, left: int) -> tuple[int, Envelope | None, object]:
        """Handle up to `left` messages in the actor's context, which is entered once for all.

        Returns the remaining number, and what must happen outside of that context: an envelope that
        is more than a message, or an envelope with its handler's coroutine or exception.
        """
        mailbox, system = self.box, self.system
        if mailbox is None:
            return left, None, None
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
            if kind in _ENVELOPES:
                envelope = message
                if kind is not Envelope:
                    return still, envelope, _NOT_INVOKED
                message = envelope.message
            result = self._invoke(message)
            ended = perf_counter()
            if ended - started > monitor.notable:
                self.took(message, ended - started)
            started = ended
            if type(result) in _UNSETTLED:
                return still, envelope or Envelope(message), result
            if system.extras and is_stashed(self, envelope or Envelope(message)):
                pass
            elif envelope is not None and envelope.reply_to is not None:
                answer(envelope.reply_to, result)
            if self.phase is not OPEN:
                return still, None, None
        return 0, None, None

    def _invoke(self, message: object) -> object:
        """Run one message through the actor. Only in its context; the caller measures the time.

        Returns the reply, a coroutine that goes on to the reply, or `Raised`.
        """
        self.system.monitor.handled += 1
        special = SPECIAL.get(type(message))
        try:
            if special is None:
                return self.actor.on_receive(message)  # type: ignore[union-attr]  # open, so there is an instance
            return special(self, message)
        except BaseException as error:  # noqa: BLE001 -- goes to the asker or to the supervisor
            return Raised(error)

    def _settle(self, envelope: Envelope, result: object) -> None:
        """Answer a message that was run, go on with its handler, or fail."""
        if type(result) is CoroutineType:
            message = envelope.message
            # Nearly all: `handler_name` would look up the message's class.
            name = handler_name(message) if type(message) in SPECIAL else "on_receive"
            self.handling = name
            self.current = envelope
            self.run_task(Handling(result, self, envelope, name), RUNNING)
        elif type(result) is Raised:
            self._failed(envelope, result.take())
        elif self.system.extras and is_stashed(self, envelope):
            pass
        elif envelope.reply_to is not None:
            answer(envelope.reply_to, result)

    def handle(self, envelope: Envelope) -> None:
        """Handle one message now, because the actor is idle. The caller measures the time."""
        result = self.context.run(self._invoke, envelope.message)
        self._settle(envelope, result)
        del result  # see `visit`

    def handle_measured(self, envelope: Envelope) -> None:
        """Handle one message now, because the actor is idle, and record the time."""
        monitor = self.system.monitor
        started = monitor.begin()
        self.handle(envelope)
        seconds = perf_counter() - started
        if seconds > monitor.notable:
            self.took(envelope.message, seconds)

    def reply_now(self, message: object) -> object:
        result = self.context.run(self._invoke, message)
        if type(result) not in _UNSETTLED and not self.system.extras:
            return result
        envelope = Envelope(message, self.system.loop.create_future())
        self._settle(envelope, result)
        del result  # see `visit`
        return envelope

    def finish(self, handling: Handling, error: BaseException | None, value: object) -> None:
        """Settle a message whose asynchronous handler has ended, in the last step of its task."""
        envelope, seconds = handling.envelope, handling.seconds
        if seconds > self.system.monitor.notable:
            self.system.monitor.took(self.path, handling.handler, seconds)
        cancelled, self.cancelling = self.cancelling, False
        self.handling = self.current = None
        self.end_task()
        if self.until_childless and error is None and self._end_with_handler():
            return
        if self.system.extras and is_stashed(self, envelope, failed=error is not None):
            pass
        elif error is None:
            if envelope.reply_to is not None:
                answer(envelope.reply_to, value)
        elif cancelled and isinstance(error, asyncio.CancelledError):
            if envelope.reply_to is not None:
                answer_error(envelope.reply_to, cancelled_error(self, envelope.message))
        else:
            self._failed(envelope, error)
        if self.phase is RUNNING:
            self.reopen()

    def _end_with_handler(self) -> bool:
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
        if self.open() and self.system.dispatcher.visiting is not self:
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
