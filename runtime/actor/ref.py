"""An actor as seen from outside: pykka's ref, with awaitable versions of `ask` and `tell`.

A ref only refers to a cell. Any thread may use all of it, and any event loop may use `request`,
`send` and `wait_stopped`. It never touches the instance, and never blocks the thread of the actor's
loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

import pykka

from ..errors import AskTimeout, UsageError
from .envelope import Envelope, Notice
from .future import ActorFuture
from .mailbox import Full, Mailbox, MailboxClosed
from .messages import CancelRequest, StopRequest, WaitRequest
from .phase import STOPPED
from .replies import GONE, full_error, refuse_late, room_error, timeout_error
from .waiting import wait_in_thread, wait_on_loop

if TYPE_CHECKING:
    from .actor import Actor
    from .cell import Cell

__all__ = ["ActorRef", "cell_of"]

A = TypeVar("A", bound="Actor")


class ActorRef(pykka.ActorRef[A], Generic[A]):
    """A reference to an actor. Refs of one actor are equal, also after a restart."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    # --- attributes of pykka's refs ---

    @property
    def actor_class(self) -> type[A]:  # type: ignore[override]  # an attribute there
        return self._cell.actor_class  # type: ignore[return-value]  # the cell is not generic

    @property
    def actor_urn(self) -> str:  # type: ignore[override]
        return self._cell.actor_urn

    @property
    def actor_inbox(self) -> Mailbox:  # type: ignore[override]
        return self._cell.mailbox

    @property
    def actor_stopped(self) -> StoppedEvent:  # type: ignore[override]
        return StoppedEvent(self)

    @property
    def name(self) -> str:
        """The name from the spawn, or the class and a number."""
        return self._cell.name

    @property
    def path(self) -> str:
        """The names from the root to this actor."""
        return self._cell.path

    def _actor_weakref(self) -> A | None:  # type: ignore[override]  # pykka's proxies read its attributes
        return self._cell.actor  # type: ignore[return-value]  # the cell is not generic

    def __eq__(self, other: object) -> bool:
        return self._cell is other._cell if isinstance(other, ActorRef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._cell)

    def __reduce__(self) -> NoReturn:
        msg = (
            f"{self!r} cannot be pickled or copied into another process: an actor exists in one "
            "process only. Send the data that the other process needs to find its own actor."
        )
        raise TypeError(msg)

    def __repr__(self) -> str:
        return f"<ActorRef for {self}>"

    def __str__(self) -> str:
        return f"{self._cell.actor_class.__name__} ({self._cell.path}, {self._cell.actor_urn})"

    def is_alive(self) -> bool:
        """Return True if the actor takes messages. False as soon as it must stop."""
        return self._cell.is_open

    # --- tell and send ---

    def tell(self, message: object) -> None:
        """Put a message into the mailbox, without waiting for a reply.

        If a full mailbox blocks senders, a thread waits here for room; the loop's own thread cannot
        wait, and `MailboxFull` is raised. Raises `ActorDeadError` or `MailboxFull`.
        """
        cell = self._cell
        if cell.system.fault is not None:
            cell.system.check()
        mailbox = cell.box
        if mailbox is None:
            mailbox = cell.mailbox
        lane = mailbox.lane
        if lane is not None:
            lane.append(message)
            if mailbox.lane is not lane:
                cell.admitted(mailbox.settle(lane))
            return
        try:
            cell.admitted(mailbox.put_bare(message))
        except MailboxClosed:
            raise refuse_late(cell, Envelope(message)) from None
        except Full:
            self._wait_in_thread(Envelope(message), None)

    async def send(self, message: object) -> None:
        """Put a message into the mailbox; awaits room if the mailbox is bounded.

        If it is cancelled while it waits, the message is not sent. Raises `ActorDeadError`.
        """
        cell = self._cell
        if cell.system.fault is not None:
            cell.system.check()
        await wait_on_loop(cell, Envelope(message))

    # --- ask and request ---

    @overload
    def ask(
        self, message: object, *, block: Literal[False], timeout: float | None = None
    ) -> ActorFuture[Any]: ...
    @overload
    def ask(
        self, message: object, *, block: Literal[True], timeout: float | None = None
    ) -> Any: ...
    @overload
    def ask(
        self, message: object, *, block: bool = True, timeout: float | None = None
    ) -> Any | ActorFuture[Any]: ...

    def ask(
        self, message: object, *, block: bool = True, timeout: float | None = None
    ) -> Any | ActorFuture[Any]:
        """Send a message, and block until the reply arrives; with `block=False`, return a future.

        Raises the handler's exception, `ActorDeadError`, `MailboxFull` or `AskTimeout`. Raises
        `UsageError` if it would block the thread of the event loop: write `await
        ref.request(message)` there.
        """
        cell = self._cell
        system = cell.system
        if block:
            system.look_at_loop()
        if system.fault is not None:
            system.check()
        if block:
            self._check_may_block("ask(...)", "await ref.request(message)")
        future: ActorFuture[object] = system.make_future()
        envelope = Envelope(message, future)
        left = timeout
        try:
            cell.post(envelope)
        except MailboxClosed:
            future.resolve(error=refuse_late(cell, envelope))
        except Full:
            if not block:
                future.resolve(error=full_error(cell, message))
            else:
                started = time.monotonic()
                self._wait_in_thread(envelope, timeout)
                left = None if timeout is None else max(0.0, timeout - (time.monotonic() - started))
        if block:
            try:
                return future.get(timeout=left)
            except AskTimeout:
                if future.done():
                    raise  # raised by the handler
                envelope.reply_to = GONE
                raise timeout_error(cell.path, message, timeout) from None
        return future

    async def request(self, message: object, *, timeout: float | None = None) -> Any:
        """Send a message and await the reply, on any event loop.

        Raises the handler's exception, `ActorDeadError`, `MailboxFull` or `AskTimeout`.
        """
        cell = self._cell
        system = cell.system
        if system.fault is not None:
            system.check()
        if get_ident() != system.dispatcher.thread:
            return await self._request_from_elsewhere(message, timeout)
        if cell.task is not None and cell.task is asyncio.current_task():
            msg = (
                f"{cell.path} asks itself while it handles a message, which would wait forever. "
                "Call the method directly, or use tell()."
            )
            raise UsageError(msg, actor=cell.path, message=message)
        if system.dispatcher.credit > 0 and cell.is_idle():
            # The receiver is idle, so it handles the message right here. This saves two turns of
            # the loop, four fifths of a request's time. Only for a limited time in one stretch:
            # then this task waits for its turn, so that all others get theirs.
            monitor = system.monitor
            started = monitor.begin()
            reply = cell.reply_now(message)
            seconds = time.perf_counter() - started
            system.dispatcher.spend(seconds)
            if seconds > monitor.notable:
                cell.took(message, seconds)
            if type(reply) is not Envelope:
                return reply
            envelope, future = reply, reply.reply_to
        else:
            future = system.loop.create_future()
            envelope = Envelope(message, future)
            try:
                cell.post(envelope)
            except MailboxClosed:
                raise refuse_late(cell, envelope) from None
            except Full:
                if not cell.mailbox.blocks:
                    raise full_error(cell, message) from None
                return await self._request_in_line(envelope, future, timeout)
        if timeout is None or future.done():
            try:
                return await future
            except asyncio.CancelledError:
                envelope.reply_to = GONE
                raise
        return await self._wait_for_reply(envelope, future, timeout, timeout)

    async def _wait_for_reply(
        self, envelope: Envelope, future: asyncio.Future[object], left: float, timeout: float
    ) -> object:
        timer = self._cell.system.clock.call_later(
            left, _time_out, future, timeout_error, self._cell, envelope.message, timeout
        )
        try:
            return await future
        finally:
            timer.cancel()
            envelope.reply_to = GONE

    async def _request_in_line(
        self, envelope: Envelope, future: asyncio.Future[object], timeout: float | None
    ) -> object:
        """Send a request that must first wait for room; one timeout covers both."""
        cell, clock = self._cell, self._cell.system.clock
        if timeout is None:
            await wait_on_loop(cell, envelope, future)
            return await future
        started = clock.monotonic()
        timer = clock.call_later(
            timeout, _time_out, future, room_error, cell, envelope.message, timeout
        )
        try:
            await wait_on_loop(cell, envelope, future)
        finally:
            timer.cancel()
            if future.done() and not future.cancelled():
                # It may have both timed out and been refused: then only the refusal is raised.
                future.exception()
        if future.done():
            return await future
        return await self._wait_for_reply(
            envelope, future, max(0.0, timeout - (clock.monotonic() - started)), timeout
        )

    def cancel(self) -> None:
        """Cancel the current asynchronous handler, if there is one.

        It overtakes the queued messages, which stay. The asker receives `HandlerCancelled`, and the
        actor lives on. A synchronous handler cannot be cancelled.
        """
        self._cell.post_control(CancelRequest())

    # --- stop ---

    @overload
    def stop(
        self, *, block: Literal[True], timeout: float | None = None, drain: bool = False
    ) -> bool: ...
    @overload
    def stop(
        self, *, block: Literal[False], timeout: float | None = None, drain: bool = False
    ) -> ActorFuture[bool]: ...
    @overload
    def stop(
        self, *, block: bool | None = None, timeout: float | None = None, drain: bool = False
    ) -> Any: ...

    def stop(
        self, *, block: bool | None = None, timeout: float | None = None, drain: bool = False
    ) -> Any:
        """Stop the actor.

        The current handler ends. Queued messages are answered with `ActorDeadError` or, with
        `drain=True`, handled first. From now on the actor accepts no message. Returns True when it
        has stopped, after its children; False if it was dead before. On the loop's own thread,
        where blocking is not possible, and with `block=False`, returns a future of that: `await
        ref.stop()`.
        """
        cell = self._cell
        if block is None:
            block = not self._must_not_block()
        elif block:
            self._check_may_block("stop(block=True)", "await ref.stop()")
        future: ActorFuture[bool] = cell.system.make_future()
        # If the system's loop is closed, its actors are gone too.
        if cell.system.fault is not None or not self._post_stop(future, drain=drain):
            future.resolve(False)
        return future.get(timeout=timeout) if block else future

    def stopped(self, *, block: bool | None = None, timeout: float | None = None) -> Any:
        """Wait for the end of an actor that is stopping, as `stop` does."""
        if block is None:
            block = not self._must_not_block()
        elif block:
            self._check_may_block("stop(block=True)", "await ref.stop()")
        future = self._stopped_future()
        return future.get(timeout=timeout) if block else future

    def _post_stop(self, future: ActorFuture[bool], *, drain: bool) -> bool:
        cell = self._cell
        if drain:
            try:
                admission = cell.mailbox.put_last(Notice(StopRequest(), future))
            except MailboxClosed:
                # It is already stopping: this call only waits for the end.
                return cell.post_control(WaitRequest(), future)
            cell.system.leaving(cell)
            cell.admitted(admission)
            return True
        cell.system.leaving(cell)
        return cell.post_control(StopRequest(), future, seal=True)

    async def wait_stopped(self) -> None:
        """Wait until the actor has ended, for any reason."""
        future = self._stopped_future()
        await future

    def _stopped_future(self) -> ActorFuture[bool]:
        future: ActorFuture[bool] = self._cell.system.make_future()
        if not self._cell.post_control(WaitRequest(), future):
            future.resolve(True)
        return future

    # --- helpers ---

    def _must_not_block(self) -> bool:
        cell, thread = self._cell, get_ident()
        return thread == cell.system.dispatcher.thread or (
            cell.owns_thread and cell.is_own_thread(thread)
        )

    def _check_may_block(self, call: str, instead: str) -> None:
        if self._must_not_block():
            where = (
                "the event loop's own thread"
                if get_ident() == self._cell.system.dispatcher.thread
                else "the actor's own thread"
            )
            msg = (
                f"{self._cell.path}: {call} on {where} would wait forever, because the "
                f"reply must come from there. Write `{instead}`."
            )
            raise UsageError(msg, actor=self._cell.path)

    def _wait_in_thread(self, envelope: Envelope, timeout: float | None) -> None:
        """Wait for room, if the mailbox and the calling thread both permit it."""
        cell = self._cell
        if not cell.mailbox.blocks or self._must_not_block():
            raise full_error(cell, envelope.message)
        wait_in_thread(cell, envelope, timeout)

    async def _request_from_elsewhere(self, message: object, timeout: float | None) -> object:
        """Send a request from another loop than the actor's, or from the loop of a thread actor."""
        cell = self._cell
        cell.system.look_at_loop()
        if self._must_not_block():
            self._check_may_block("request(...)", "self.actor_ref.tell(message)")
        future: ActorFuture[object] = cell.system.make_future()
        envelope = Envelope(message, future)
        sent = False
        try:
            async with asyncio.timeout(timeout) as limit:
                try:
                    cell.post(envelope)
                except MailboxClosed:
                    raise refuse_late(cell, envelope) from None
                except Full:
                    if not cell.mailbox.blocks:
                        raise full_error(cell, message) from None
                    await wait_on_loop(cell, envelope)
                sent = True
                return await future
        except TimeoutError:
            if limit.expired() and not future.done():
                envelope.reply_to = GONE
                raise (timeout_error if sent else room_error)(cell.path, message, timeout) from None
            raise


class StoppedEvent:
    """pykka's `actor_stopped`: callers can read it and wait for it, but only the actor sets it."""

    __slots__ = ("_ref",)

    def __init__(self, ref: ActorRef[Any]) -> None:
        self._ref = ref

    def is_set(self) -> bool:
        """Return True if the actor has ended.

        While it is stopping, `is_alive()` is already False.
        """
        return self._ref._cell.phase is STOPPED

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the actor has ended. Returns False on timeout."""
        try:
            self._ref._stopped_future().get(timeout=timeout)
        except AskTimeout:
            return False
        return True


def cell_of(ref: ActorRef[A]) -> Cell:
    """Return the cell of a ref. For this package only."""
    return ref._cell


def _time_out(
    future: asyncio.Future[Any],
    error: Callable[[str, Any, float | None], AskTimeout],
    cell: Cell,
    message: object,
    timeout: float,
) -> None:
    if not future.done():
        future.set_exception(error(cell.path, message, timeout))
