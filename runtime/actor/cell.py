"""The inside of one actor: what outlives a restart.

Owns: the instance, the mailbox, the place in the tree, and the *phase*. How messages are handled is in `loop_cell.py` and `thread_cell.py`, one for each
kind of actor; how a life begins, fails, starts again and ends, in `lifecycle.py`. All runs on the system's loop, but for what is said to be for any thread.
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
from . import lifecycle, watching
from .envelope import Envelope, MailboxSettings, Notice
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
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        name: str | None,
        parent: Cell | None,
        supervision: Supervision | None,
        mailbox: MailboxSettings | None,
    ) -> None:
        self.system = system
        self.actor_class = actor_class
        self.args = args
        self.kwargs = kwargs or None  # an empty dictionary for each actor would be 64 bytes
        self.given_name = name
        self.serial = next(system.serials)
        self.urn: str | None = None  # made when somebody asks for it
        self.parent = parent
        self.supervision = supervision
        self.mailbox = Mailbox(mailbox, system.lock, engaged=True)  # until `begin`, nobody may wake it
        # A task's worth of isolation: what a handler sets in a context variable stays with its actor.
        self.context = contextvars.copy_context()
        self.ref: ActorRef[Any] | None = ActorRef(self)  # None when it has ended, so that the two do not keep each other
        self.actor: Actor | None = None  # None while there is no instance that messages could be given to
        self.phase = STARTING
        self.listed = False  # whether pykka's registry knows of it
        # Set once, under the system's lock, when the actor is to stop. Then it takes no more children, and no restart follows.
        self.closing = False
        self.children: dict[Cell, None] | None = None  # in the order of their spawning; written under the system's lock
        self.until_childless = False  # whether it is to stop as soon as it has no child
        self.children_gone: asyncio.Future[None] | None = None  # what `lifecycle` waits on while it stops the children
        self.task: asyncio.Task[Any] | None = None  # the handler or lifecycle procedure that is under way
        self.cancelling = False  # whether somebody asked for the end of the handler that is under way
        self.handling: str | None = None  # the handler or hook that is under way, if it may take long
        self.current: Envelope | None = None  # what is being handled, if that may take long
        self.failure: tuple[BaseException, str] | None = None  # what it failed with, while it is suspended
        self.escalated: tuple[BaseException, str] | None = None  # a child's failure that is to be its own, as soon as nothing is under way
        self.pause: asyncio.Future[None] | None = None  # the wait before a restart
        self.budget: RestartBudget | None = None
        self.ended: list[Callable[[bool], object]] | None = None  # what is called at the very end
        self.ending: Ending | None = None  # how it has ended
        self.watchers: dict[Cell, None] | None = None  # who gets `Terminated`; written under the system's lock
        self.watching: dict[Cell, None] | None = None  # whose end this one waits for; written under the system's lock

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
        """The ref of this actor; after its end, one that is equal to it."""
        return self.ref or ActorRef(self)

    @property
    def actor_urn(self) -> str:
        """pykka's universally unique name, made when it is asked for."""
        if self.urn is None:
            self.urn = uuid.uuid4().urn
        return self.urn

    @property
    def state(self) -> str:
        return self.phase.value

    @property
    def task_context(self) -> contextvars.Context:
        """What the tasks of this actor run in."""
        return self.context

    def build(self) -> Actor:
        """Make the instance, in the calling thread."""
        self.actor = actor = self.actor_class._construct(self, self.args, self.kwargs or {})
        return actor

    @abstractmethod
    def begin(self) -> None:
        """The instance is made: let messages come. From any thread."""

    @abstractmethod
    def visit(self) -> bool:
        """Handle some messages, if there are any. Returns whether there may be more."""

    @abstractmethod
    def handle(self, envelope: Envelope, started: float) -> float:
        """Handle one message, now. Returns when that ended, or an asynchronous handler was set going."""

    @abstractmethod
    def go_on(self) -> None:
        """Nothing is in the way of handling messages any more."""

    @abstractmethod
    def cancel_handler(self) -> None:
        """End the asynchronous handler that is under way, if there is one."""

    @abstractmethod
    def interrupt(self) -> None:
        """The system is being left: cut short what is under way, unless it is for cleaning up."""

    @abstractmethod
    def cut_off(self) -> None:
        """The time is over: cut short what is under way, whatever it is for."""

    @abstractmethod
    def decide_on(self, request: ChildFailed) -> None:
        """Have the actor say what becomes of its failed child, and tell `lifecycle.decided`."""

    @abstractmethod
    async def release(self) -> None:
        """Let go of whatever only a stopped actor may let go of."""

    @abstractmethod
    def is_idle(self) -> bool:
        """Whether a message could be handled at once, on the loop's thread."""

    def holds_thread(self) -> bool:
        """Whether there is a thread that has to be ended."""
        return False

    def is_own_thread(self, ident: int) -> bool:
        """Whether this is the thread that the actor alone runs in."""
        del ident
        return False

    # --- from any thread ---

    def post(self, envelope: Envelope) -> None:
        """Put into the work lane. Raises `MailboxClosed` or `Full`."""
        admission = self.mailbox.put(envelope)
        if admission is not _QUEUED:
            self.admitted(admission)

    def admitted(self, admission: Admission | Envelope) -> None:
        """Do what a put has said is to be done."""
        if admission is _WAKE:
            self.wake()
        elif admission is _ATTEND:
            self.system.dispatcher.attend(self)
        elif isinstance(admission, Envelope):
            refuse(self, admission, DROPPED)

    def wake(self) -> None:
        """Somebody has put, and nobody is about to take."""
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
        """Put a notice into the work lane, behind what its sender has sent before. One that comes too late is nobody's loss."""
        with contextlib.suppress(MailboxClosed):
            self.post(Notice(message))

    def is_busy(self) -> bool:
        """Whether there is something that it has to come to, or is at."""
        return len(self.mailbox) > 0

    def may_spawn(self) -> bool:
        return not self.closing and self.phase in (STARTING, OPEN, RUNNING)

    # --- control ---

    def attend(self) -> None:
        """See to the control lane, in the middle of whatever is under way."""
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

    def run_task(self, coro: Coroutine[Any, Any, Any], phase: Phase) -> None:
        """Go on in a task. Until `end_task`, the actor takes nothing but control."""
        self.phase = phase
        system = self.system
        system.running[self] = None
        self.task = asyncio.Task(coro, loop=system.loop, name=self.actor_class._traits.task_name, context=self.task_context)
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
        """Handle messages again; unless there is a reason not to that has come up meanwhile."""
        if self.closing:
            lifecycle.stop(self)
        elif self.escalated is not None:
            (error, during), self.escalated = self.escalated, None
            lifecycle.fail(self, error, during)
        else:
            self.go_on()

    def blocked_for(self, handler: str) -> Callable[[float], None]:
        """What takes the time of each step of a coroutine, and warns if it was long."""

        def held(seconds: float) -> None:
            monitor = self.system.monitor
            if seconds > monitor.slow_after:
                monitor.blocked_for(self.path, self.actor_class, handler, seconds)

        return held

    async def rebuild(self) -> BaseException | None:
        """Make a fresh instance. Returns what its `__init__` raised."""
        began = perf_counter()
        try:
            self.build()
        except BaseException as error:  # noqa: BLE001 -- goes to the supervisor
            return error
        finally:
            self.blocked_for("__init__")(perf_counter() - began)
        return None

    async def call(self, hook: str, *args: Any) -> BaseException | None:
        """Run a hook within a lifecycle procedure. Returns what it raised."""
        self.handling = hook
        started = perf_counter()
        try:
            result = getattr(self.actor, hook)(*args)
        except BaseException as error:  # noqa: BLE001 -- the procedure says what to do with it
            self.handling = None
            return error
        self.blocked_for(hook)(perf_counter() - started)
        return await self.finish_hook(hook, result)

    async def finish_hook(self, hook: str, result: Any) -> BaseException | None:
        """Await what a hook returned, if it was asynchronous. Returns what it raised."""
        if type(result) is not CoroutineType:
            self.handling = None
            return None
        self.handling = hook
        outcome = await Steps(result, self.blocked_for(hook))
        self.handling = None
        if isinstance(outcome.error, asyncio.CancelledError) and self.task is not None:
            # A hook that was cut short at the end of the system must not cut short what comes after it.
            while self.task.uncancel():
                pass
        return outcome.error

    # --- the end ---

    def when_ended(self, tell: Callable[[bool], object]) -> None:
        """Call it, with True, as the very last: when the actor has ended."""
        if self.ended is None:
            self.ended = []
        self.ended.append(tell)

    def resolve_left(self, envelopes: list[Envelope]) -> None:
        """Answer what was left in the mailbox."""
        if not envelopes:
            return
        for envelope in envelopes:
            if isinstance(envelope.message, StopRequest | WaitRequest) and envelope.reply_to is not None:
                self.when_ended(envelope.reply_to.resolve)
        refuse_all(self, envelopes, LEFT)

    def end(self, ending: Ending) -> None:
        """The very last: nobody will ever hear of this actor again."""
        if self.phase is STOPPED:
            return  # it had been given up, and its last hook has ended all the same
        self.phase = STOPPED
        if isinstance(ending, Failed):
            forget_frames(ending.error)  # which hold the instance; the log has them
        self.ending = ending
        self.actor = None
        system = self.system
        if not self.closing:
            system.leaving(self)
            self.closing = True
        ref = self.ref
        left = self.mailbox.close()
        if self.current is not None:
            left.append(self.current)  # it was given up in the middle of it
        if ref is not None:
            system.ended(self)
            watching.end(self, ref, ending)
        self.resolve_left(left)
        ended, self.ended = self.ended, None
        for tell in ended or ():
            tell(True)  # the reply of stop(), for one
        self.ref = None
        self.args, self.kwargs = (), None
