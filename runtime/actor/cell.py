"""The inside of one actor: everything that survives a restart.

Owns: the instance, the mailbox, the position in the tree, and the *phase*. `loop_cell.py` and `thread_cell.py`, one for each kind of actor, handle messages;
`lifecycle.py` starts, fails, restarts and ends the actor. Everything runs on the system's loop, except where a comment says "from any thread". It must never
decide what happens to a failed actor, nor call a user's code under a lock.
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
from .messages import CancelRequest, ChildEscalated, ChildFailed, Control, Ending, Failed, StopRequest, Terminated, WaitRequest
from .phase import OPEN, RUNNING, STARTING, STOPPED, SUSPENDED, Phase
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
        "mailbox",
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
        self.urn: str | None = None  # made on first use
        self.parent = parent
        self.supervision = supervision
        if mailbox is not None:  # else it is made when it is first looked for
            self.mailbox = mailbox
        self.context = contextvars.copy_context()  # as isolated as a task: a variable that a handler sets is visible to this actor only
        self.ref: ActorRef[Any] | None = None  # made on first use; None again after the end, so that the two do not keep each other alive
        self.actor: Actor | None = None  # None while there is no instance
        self.phase = STARTING
        self.listed = False  # whether it is in pykka's registry
        # Set once, under the system's lock, when the actor has to stop. From then on it accepts no child, and no restart follows.
        self.closing = False
        self.children: dict[Cell, Any] | None = None  # in the order of spawning, with what the actor notes of each; written under the system's lock
        self.until_childless = False  # whether to stop as soon as there is no child
        self.children_gone: asyncio.Future[None] | None = None  # `lifecycle` waits on it while it stops the children
        self.task: asyncio.Task[object] | None = None  # of the current handler or lifecycle procedure
        self.cancelling = False  # whether the current handler was told to end
        self.handling: str | None = None  # the current handler or hook, if it may take long
        self.current: Envelope | None = None  # the message that is being handled, if that may take long
        self.failure: tuple[BaseException, str] | None = None  # the error and the hook that raised it, while suspended
        self.escalated: tuple[BaseException, str] | None = None  # a child's failure, which becomes its own as soon as nothing is under way
        self.pause: asyncio.Future[None] | None = None  # the wait before a restart
        self.budget: RestartBudget | None = None
        self.ended: tuple[Callable[[bool], object], ...] = ()  # called at the very end
        self.ending: Ending | None = None  # how it has ended
        self.watchers: dict[Cell, None] | None = None  # they get `Terminated`; written under the system's lock
        self.watching: dict[Cell, None] | None = None  # this one gets their `Terminated`; written under the system's lock

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
        """The ref of this actor; after the end, a new one that equals it."""
        ref = self.ref
        if ref is None:
            ref = ActorRef(self)
            self.ref = None if self.phase is STOPPED else ref
        return ref

    @property
    def actor_urn(self) -> str:
        """pykka's universally unique name, made on first use."""
        if self.urn is None:
            with self.system.lock:  # two threads may be the first
                self.urn = self.urn or uuid.uuid4().urn
        return self.urn

    @property
    def state(self) -> str:
        return self.phase.value

    def queued(self) -> int:
        return len(self.mailbox)

    @property
    def task_context(self) -> contextvars.Context:
        return self.context  # in which the tasks of this actor run

    @abstractmethod
    def begin(self) -> None:
        """Let messages in, after the instance is made. From any thread."""

    @abstractmethod
    def visit(self) -> bool:
        """Handle some messages, if there are any. Returns whether there may be more."""

    @abstractmethod
    def reply_now(self, message: object) -> object:
        """Handle a request at once, as it is idle. Returns the reply; or, if that is still to come or is an error, an envelope with a future of it."""

    @abstractmethod
    def go_on(self) -> None:
        """Handle messages again, because nothing prevents it any more."""

    @abstractmethod
    def cancel_handler(self) -> None:
        """Cancel the current asynchronous handler, if there is one."""

    @abstractmethod
    def interrupt(self) -> None:
        """Cancel what is under way because the system is being left, but let hooks that clean up finish."""

    @abstractmethod
    def cut_off(self) -> None:
        """Cancel what is under way because the time limit has passed, hooks that clean up included."""

    @abstractmethod
    def decide_on(self, request: ChildFailed) -> None:
        """Let the actor decide about its failed child, and report the decision to `lifecycle.decided`."""

    @abstractmethod
    async def release(self) -> None:
        """Release what only a stopped actor may release."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Whether a message could be handled at once, on the loop's thread."""

    def holds_thread(self) -> bool:
        """Whether the actor has a thread to end."""
        return False

    def is_own_thread(self, ident: int) -> bool:
        """Whether this is the actor's own thread."""
        del ident
        return False

    # --- from any thread ---

    def post(self, envelope: Envelope) -> None:
        """Put into the work lane. Raises `MailboxClosed` or `Full`."""
        admission = self.mailbox.put(envelope)
        if admission is not _QUEUED:
            self.admitted(admission)

    def admitted(self, admission: Admission | Envelope | list[Envelope]) -> None:
        """Act on the result of a put, or of what settles one."""
        if admission is _WAKE:
            self.wake()
        elif admission is _ATTEND:
            self.system.dispatcher.attend(self)
        elif isinstance(admission, list):
            refuse_all(self, admission, LEFT)
        elif isinstance(admission, Envelope):
            refuse(self, admission, DROPPED)

    def wake(self) -> None:
        """Get the actor to take: a message was put while it was idle."""
        self.system.dispatcher.ready(self)

    def post_control(self, request: Control, reply_to: ActorFuture[Any] | None = None, *, seal: bool = False) -> bool:
        """Put into the control lane. Returns False if the actor has ended."""
        try:
            admission = self.mailbox.put_control(Notice(request, reply_to), seal=seal)
        except MailboxClosed:
            return False
        self.admitted(admission)
        return True

    def notify(self, message: Terminated) -> None:
        """Put a notice into the work lane, behind the earlier messages of its sender. A closed mailbox drops it."""
        with contextlib.suppress(MailboxClosed):
            self.post(Notice(message))

    def is_busy(self) -> bool:
        """Whether messages wait in the mailbox; for a thread actor, also whether the thread handles one."""
        return self.queued() > 0

    def may_spawn(self) -> bool:
        return not self.closing and self.phase in (STARTING, OPEN, RUNNING)

    # --- control ---

    def attend(self) -> None:
        """Handle the control lane, even while a handler is under way."""
        while (envelope := self.mailbox.take_control()) is not None:
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
        self.task = asyncio.Task(coro, loop=system.loop, name=self.actor_class.__actor_traits__.task_name, context=self.task_context)
        if self.mailbox.leave():
            system.dispatcher.attend(self)

    def end_task(self) -> None:
        """To be called in the last step of the task."""
        self.task = None
        system = self.system
        system.running.pop(self, None)
        if system.waiting_for_quiet:
            system.look_again()

    def reopen(self) -> None:
        """Handle messages again, unless the actor was told to stop or to fail meanwhile."""
        if self.closing:
            lifecycle.stop(self)
        elif self.escalated is not None:
            (error, during), self.escalated = self.escalated, None
            lifecycle.fail(self, error, during)
        else:
            self.go_on()

    def blocked_for(self, handler: str) -> Callable[[float], None]:
        """A callback for the seconds of each step of a coroutine. It warns if a step held the loop for too long."""

        def held(seconds: float) -> None:
            if seconds > (monitor := self.system.monitor).slow_after:
                monitor.blocked_for(self.path, self.actor_class, handler, seconds)

        return held

    async def rebuild(self) -> BaseException | None:
        """Make a fresh instance. Returns the exception of its `__init__`, if any."""
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
        """Await the result of a hook, if the hook is asynchronous. Returns its exception, if any."""
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
        """Answer the envelopes that were left in the mailbox."""
        for envelope in envelopes:
            if isinstance(envelope.message, StopRequest | WaitRequest) and envelope.reply_to is not None:
                self.when_ended(envelope.reply_to.resolve)
        if envelopes:
            refuse_all(self, envelopes, LEFT)

    def end(self, ending: Ending) -> None:
        """The last step of a life: answer the envelopes that are left, tell parent and watchers, and drop every reference."""
        if self.phase is STOPPED:
            return  # it was given up earlier, and only now its last hook has ended
        self.phase = STOPPED
        if isinstance(ending, Failed):
            forget_frames(ending.error)  # they hold the instance; the log has them
        self.ending, self.actor = ending, None
        system = self.system
        if not self.closing:
            system.leaving(self)
            self.closing = True
        left = self.mailbox.close() + (table.end(self) if system.extras else [])
        if self.current is not None:
            left.append(self.current)  # it was given up while it handled this one
        system.ended(self)
        # Read behind the lock that `ended` takes: who begins to watch from then on finds that it has ended.
        if self.watchers is not None or self.watching is not None:
            watching.end(self, ending)
        if left:
            self.resolve_left(left)
        told, self.ended, self.ref, self.args, self.kwargs = self.ended, (), None, (), None
        for tell in told:
            tell(True)  # for example the reply of stop()
