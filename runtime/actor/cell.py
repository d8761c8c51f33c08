"""The inside of one actor: everything that survives a restart.

A cell holds the instance, the mailbox, the position in the tree, and the *phase*. `loop_cell.py`
and `thread_cell.py` handle the messages of the two kinds of actors; `lifecycle.py` starts, fails,
restarts and ends an actor. Everything runs on the system's loop, except where a comment says "from
any thread". The supervisor, not the cell, decides what happens to a failed actor. User code is
never called under a lock.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..errors import forget_frames
from . import lifecycle
from .actor import construct
from .envelope import Envelope, Notice
from .extras import table, watching
from .future import ActorFuture
from .mailbox import Admission, Mailbox, MailboxClosed
from .messages import (
    CancelRequest,
    ChildEscalated,
    ChildFailed,
    Control,
    Ending,
    Failed,
    StopRequest,
    Terminated,
    WaitRequest,
)
from .phase import OPEN, RUNNING, STARTING, STOPPED, SUSPENDED, Phase
from .receive import handler_name
from .ref import ActorRef
from .replies import DROPPED, LEFT, refuse, refuse_all
from .steps import Steps

if TYPE_CHECKING:
    from .actor import Actor
    from .host import Host
    from .supervision import RestartBudget, Supervision

__all__ = ["Cell"]

_QUEUED: Final = Admission.QUEUED
_WAKE: Final = Admission.WAKE
_ATTEND: Final = Admission.ATTEND


class Cell(ABC):
    """One actor, from its spawn to its end."""

    owns_thread: ClassVar[bool] = False

    __slots__ = (
        "actor",
        "actor_class",
        "args",
        "box",
        "budget",
        "cancelling",
        "children",
        "children_gone",
        "closing",
        "context",
        "current",
        "ended",
        "ending",
        "escalated",
        "failure",
        "given_name",
        "handling",
        "kwargs",
        "listed",
        "parent",
        "pause",
        "phase",
        "ref",
        "serial",
        "supervision",
        "system",
        "task",
        "until_childless",
        "urn",
        "watchers",
        "watching",
    )

    def __init__(
        self,
        system: Host,
        actor_class: type[Actor],
        args: tuple[object, ...],
        kwargs: dict[str, object] | None,
        name: str | None,
        parent: Cell | None,
        supervision: Supervision | None,
        mailbox: Mailbox | None,
    ) -> None:
        self.system = system
        self.actor_class = actor_class
        self.args = args
        self.kwargs = kwargs  # None: an empty dictionary for each actor would be 64 bytes
        self.given_name = name
        self.serial = next(system.serials)
        self.urn: str | None = None  # created on first use
        self.parent = parent
        self.supervision = supervision
        self.box = mailbox  # None until `mailbox` creates it
        # Isolated like a task's context: a handler's variables are visible to this actor only.
        self.context = contextvars.copy_context()
        self.ref: ActorRef[Any] | None = (
            # Created on first use. None again after the end, which breaks the reference cycle.
            None
        )
        self.actor: Actor | None = None  # None while there is no instance
        self.phase = STARTING
        self.listed = False  # True if it is in pykka's registry
        # Set once, under the system's lock, when the actor must stop. From then on it accepts no
        # child, and no restart follows.
        self.closing = False
        self.children: dict[Cell, Any] | None = (
            # In the order of spawning, each with this actor's own note about it; written under the
            # system's lock.
            None
        )
        self.until_childless = False  # True if it must stop once it has no child
        # `lifecycle` awaits it while it stops the children.
        self.children_gone: asyncio.Future[None] | None = None
        # Of the current handler or lifecycle procedure.
        self.task: asyncio.Task[object] | None = None
        self.cancelling = False  # True if the current handler was cancelled
        self.handling: str | None = None  # current handler or hook, if it may take long
        self.current: Envelope | None = None  # message being handled, if that may take long
        # The error and the hook that raised it, while suspended.
        self.failure: tuple[BaseException, str] | None = None
        # A child's failure, which becomes the actor's own once nothing is running.
        self.escalated: tuple[BaseException, str] | None = None
        self.pause: asyncio.Future[None] | None = None  # wait before a restart
        self.budget: RestartBudget | None = None
        self.ended: tuple[Callable[[bool], object], ...] = ()  # called at the very end
        self.ending: Ending | None = None  # how it has ended
        # Receive this actor's `Terminated`; written under the system's lock.
        self.watchers: dict[Cell, None] | None = None
        # This actor receives their `Terminated`; written under the system's lock.
        self.watching: dict[Cell, None] | None = None

    def __repr__(self) -> str:
        return f"<Cell {self.path} {self.phase.value}>"

    @property
    def name(self) -> str:
        return self.given_name or f"{self.actor_class.__name__}-{self.serial}"

    @property
    def path(self) -> str:
        names = []
        cell: Cell | None = self
        while cell is not None:
            names.append(cell.name)
            cell = cell.parent
        return "/".join(reversed(names))

    def own_ref(self) -> ActorRef[Any]:
        """Return the ref of this actor; after the end, a new ref that equals the old one."""
        ref = self.ref
        if ref is None:
            ref = ActorRef(self)
            self.ref = None if self.phase is STOPPED else ref
        return ref

    @property
    def actor_urn(self) -> str:
        """pykka's universally unique name, created on first use."""
        if self.urn is None:
            with self.system.lock:  # two threads may compete
                self.urn = self.urn or uuid.uuid4().urn
        return self.urn

    @property
    def state(self) -> str:
        return self.phase.value

    # --- the mailbox ---
    #
    # Most actors are idle, or are only sent messages that they can handle at once, so a mailbox is
    # created on first use. Another thread may do that while the phase changes here. Therefore the
    # creating thread reads the phase under the system's lock, and each change of the phase is
    # followed by a look for the mailbox under that lock: either the mailbox is seen here, or it was
    # created for the new phase.

    @property
    def mailbox(self) -> Mailbox:
        """The mailbox, created on first use. From any thread."""
        box = self.box
        return self._make_mailbox() if box is None else box

    def _make_mailbox(self) -> Mailbox:
        lock = self.system.lock
        with lock:
            # Before the start everything waits, for there may be no instance yet. Beside a handler
            # control gets through, and work has its turn as soon as the handler has ended.
            starts = self.phase is STARTING and self.task is None
            away = self.phase is not OPEN and not starts
            made = Mailbox(None, lock, engaged=starts, away=away)
            if self.phase is STOPPED:
                made.close()
            elif self.closing:
                made.close_work()
            # Another thread may have been faster, or a signal handler in this one.
            if self.box is None:
                self.box = made
            return self.box

    @property
    def is_open(self) -> bool:
        """True if the actor accepts messages. From any thread."""
        box = self.box
        return not self.closing if box is None else box.is_open

    def queued(self) -> int:
        """Return the number of waiting messages. From any thread."""
        box = self.box
        return 0 if box is None else len(box)

    def open(self) -> bool:
        """Take messages from now on. Returns True if some wait."""
        with self.system.lock:
            self.phase = OPEN
            box = self.box
            return box is not None and box.come_back()

    def leave(self) -> None:
        """Let control reach the actor, which takes no messages now. Call it in the new phase."""
        with self.system.lock:
            box = self.box
            waits = box is not None and box.leave()
        if waits:
            self.system.dispatcher.attend(self)

    @property
    def task_context(self) -> contextvars.Context:
        return self.context  # for the tasks of this actor

    @abstractmethod
    def begin(self) -> None:
        """Open the mailbox, after the instance is created. From any thread."""

    @abstractmethod
    def visit(self) -> bool:
        """Handle some messages, if there are any. Returns True if there may be more."""

    @abstractmethod
    def reply_now(self, message: object) -> object:
        """Handle a request at once, because the actor is idle.

        Returns the reply. If the reply is pending or is an error, returns an envelope with its
        future.
        """

    @abstractmethod
    def go_on(self) -> None:
        """Continue to handle messages, because nothing prevents it any longer."""

    @abstractmethod
    def cancel_handler(self) -> None:
        """Cancel the current asynchronous handler, if there is one."""

    @abstractmethod
    def interrupt(self) -> None:
        """Cancel the current work because the system is stopping, but let cleanup hooks finish."""

    @abstractmethod
    def cut_off(self) -> None:
        """Cancel the current work because the time limit has passed, including cleanup hooks."""

    @abstractmethod
    def decide_on(self, request: ChildFailed) -> None:
        """Let the actor decide about its failed child, and report that to `lifecycle.decided`."""

    @abstractmethod
    async def release(self) -> None:
        """Release the resources that only a stopped actor may release."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Return True if a message can be handled at once, on the loop's thread."""

    def holds_thread(self) -> bool:
        """Return True if the actor has a thread that must end."""
        return False

    def is_own_thread(self, ident: int) -> bool:
        """Return True if `ident` is the actor's own thread."""
        del ident
        return False

    # --- from any thread ---

    def post(self, envelope: Envelope) -> None:
        """Put into the work lane. Raises `MailboxClosed` or `Full`."""
        admission = self.mailbox.put(envelope)
        if admission is not _QUEUED:
            self.admitted(admission)

    def admitted(self, admission: Admission | Envelope | list[Envelope]) -> None:
        """Act on the result of a put, or of `settle`."""
        if admission is _WAKE:
            self.wake()
        elif admission is _ATTEND:
            self.system.dispatcher.attend(self)
        elif isinstance(admission, list):
            refuse_all(self, admission, LEFT)
        elif isinstance(admission, Envelope):
            refuse(self, admission, DROPPED)

    def wake(self) -> None:
        """Make the actor take messages: one was put while it was idle."""
        self.system.dispatcher.ready(self)

    def post_control(
        self, request: Control, reply_to: ActorFuture[Any] | None = None, *, seal: bool = False
    ) -> bool:
        """Put into the control lane. Returns False if the actor has ended."""
        try:
            admission = self.mailbox.put_control(Notice(request, reply_to), seal=seal)
        except MailboxClosed:
            return False
        self.admitted(admission)
        return True

    def notify(self, message: Terminated) -> None:
        """Put a notice into the work lane, after the earlier messages of its sender.

        A closed mailbox drops it.
        """
        with contextlib.suppress(MailboxClosed):
            self.post(Notice(message))

    def is_busy(self) -> bool:
        """Return True if messages wait in the mailbox, or if a thread actor is handling one."""
        return self.queued() > 0

    def may_spawn(self) -> bool:
        return not self.closing and self.phase in (STARTING, OPEN, RUNNING)

    # --- control ---

    def attend(self) -> None:
        """Handle the control lane, even while a handler is running."""
        box = self.box
        while box is not None and (envelope := box.take_control()) is not None:
            self.control(envelope)

    def control(self, envelope: Envelope) -> None:
        request = envelope.message
        if isinstance(request, StopRequest):
            if envelope.reply_to is not None:
                self.when_ended(envelope.reply_to.resolve)
            lifecycle.begin_stop(self)
        elif isinstance(request, WaitRequest):
            self.when_ended(envelope.reply_to.resolve)
        elif isinstance(request, CancelRequest):
            self.cancel_handler()
        elif isinstance(request, ChildEscalated):
            if self.phase is OPEN:
                lifecycle.fail(self, request.error, request.during)
            elif self.phase in (STARTING, RUNNING, SUSPENDED):
                self.escalated = (request.error, request.during)

    # --- tasks ---

    def run_task(self, coro: Coroutine[object, None, object], phase: Phase) -> None:
        """Continue in a task. Until `end_task`, the actor takes control messages only."""
        self.phase = phase
        system = self.system
        system.running[self] = None
        self.task = asyncio.Task(
            coro,
            loop=system.loop,
            name=self.actor_class.__actor_traits__.task_name,
            context=self.task_context,
        )
        self.leave()

    def end_task(self) -> None:
        """Call this in the last step of the task."""
        self.task = None
        system = self.system
        system.running.pop(self, None)
        if system.waiting_for_quiet:
            system.look_again()

    def reopen(self) -> None:
        """Handle messages again, unless the actor must stop or fail."""
        if self.closing:
            lifecycle.stop(self)
        elif self.escalated is not None:
            (error, during), self.escalated = self.escalated, None
            lifecycle.fail(self, error, during)
        else:
            self.go_on()

    def took(self, message: object, seconds: float) -> None:
        """Record the time for which a handler has blocked the loop, which is notably long."""
        handler = handler_name(message)
        self.system.monitor.took(self.path, handler, seconds)
        self.blocked_for(handler)(seconds)

    def blocked_for(self, handler: str) -> Callable[[float], None]:
        """Return a callback for the duration of each step of a coroutine.

        It warns if a step blocked the loop for too long.
        """

        def held(seconds: float) -> None:
            if seconds > (monitor := self.system.monitor).slow_after:
                monitor.blocked_for(self.path, self.actor_class, handler, seconds)

        return held

    async def rebuild(self) -> BaseException | None:
        """Create a new instance. Returns the exception of its `__init__`, if any."""
        began = self.system.monitor.begin()
        try:
            construct(self)
        except BaseException as error:  # noqa: BLE001 -- goes to the supervisor
            return error
        finally:
            self.blocked_for("__init__")(perf_counter() - began)
        return None

    async def call(self, hook: str, *args: Any) -> BaseException | None:
        """Run a hook within a lifecycle procedure. Returns its exception, if any."""
        self.handling = hook
        started = self.system.monitor.begin()
        try:
            result = getattr(self.actor, hook)(*args)
        except BaseException as error:  # noqa: BLE001 -- the procedure decides what to do with it
            self.handling = None
            return error
        self.blocked_for(hook)(perf_counter() - started)
        return await self.finish_hook(hook, result)

    async def finish_hook(self, hook: str, result: object) -> BaseException | None:
        """Await the result of a hook, if the hook is asynchronous.

        Returns its exception, if any.
        """
        if type(result) is not CoroutineType:
            self.handling = None
            return None
        self.handling = hook
        outcome = await Steps(result, self.blocked_for(hook), begin=self.system.monitor.begin)
        self.handling = None
        if isinstance(outcome.error, asyncio.CancelledError) and self.task is not None:
            # The end of the system may cancel a hook, but not the steps after the hook.
            while self.task.uncancel():
                pass
        return outcome.error

    # --- the end ---

    def when_ended(self, tell: Callable[[bool], object]) -> None:
        """Call `tell(True)` at the very end, when the actor has ended."""
        self.ended += (tell,)

    def resolve_left(self, envelopes: list[Envelope]) -> None:
        """Answer the envelopes left in the mailbox."""
        for envelope in envelopes:
            if (
                isinstance(envelope.message, StopRequest | WaitRequest)
                and envelope.reply_to is not None
            ):
                self.when_ended(envelope.reply_to.resolve)
        if envelopes:
            refuse_all(self, envelopes, LEFT)

    def end(self, ending: Ending) -> None:
        """Finish: answer the remaining envelopes, notify parent and watchers, drop references."""
        if self.phase is STOPPED:
            return  # abandoned earlier, and only now its last hook has ended
        if type(ending) is Failed:
            forget_frames(ending.error)  # they hold the instance; the log has them
        system = self.system
        if not self.closing:
            system.leaving(self)
        parent = self.parent
        with system.lock:
            self.phase = STOPPED
            self.closing = True
            box = self.box
            siblings = None if parent is None else parent.children
            if siblings is not None:
                siblings.pop(self, None)
        self.ending, self.actor = ending, None
        left = [] if box is None else box.close()
        if system.extras:
            left += table.end(self)
        if self.current is not None:
            left.append(self.current)  # abandoned while it handled this message
        if parent is None:
            system.ended(self)
        elif not siblings:
            lifecycle.childless(parent)
        # Read after `ended` took the lock: an actor that starts to watch from then on sees the end.
        if self.watchers is not None or self.watching is not None:
            watching.end(self, ending)
        if left:
            self.resolve_left(left)
        told, self.ended, self.ref, self.args, self.kwargs = self.ended, (), None, (), None
        for tell in told:
            tell(True)  # for example the reply of stop()
