"""The inside of one actor: what outlives a restart, and the handling of its messages.

Owns: the instance, the mailbox, the place in the tree, and the *phase*. An idle cell holds no task and no thread. It handles synchronous handlers
where it stands, in the dispatcher's turn, and makes a task for each asynchronous one: so a cancellation can never hit the next message.
How a life begins, fails, starts again and ends is told in `lifecycle.py`.

All of it runs on the system's loop, but for what is said to be for any thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Callable, Coroutine
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from pykka import messages as pykka_messages
from pykka._introspection import get_attr_directly

from . import lifecycle
from .errors import ActorDeadError, ActorFailed, HandlerCancelled, MailboxFull
from .future import ActorFuture
from .mailbox import Admission, Envelope, Mailbox, MailboxClosed, MailboxSettings, Notice
from .messages import CancelRequest, ChildEscalated, ChildFailed, Control, Ending, StopRequest, Terminated, WaitRequest
from .phase import Phase
from .ref import ActorRef
from .replies import DROPPED, LEFT, answer, answer_error, handler_name, refuse
from .steps import Outcome, Steps

if TYPE_CHECKING:
    from .actor import Actor
    from .supervision import RestartBudget, Supervision
    from .system import ActorSystem

__all__ = ["Cell"]

# Messages that one actor may handle before it is another's turn.
_BATCH = 16


_STARTING: Final = Phase.STARTING
_OPEN: Final = Phase.OPEN
_RUNNING: Final = Phase.RUNNING
_WAKE: Final = Admission.WAKE
_ATTEND: Final = Admission.ATTEND


class Cell:
    """One actor, from its spawn to its end."""

    owns_thread = False

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
        "ended",
        "escalated",
        "failure",
        "given_name",
        "handling",
        "kwargs",
        "mailbox",
        "parent",
        "pause",
        "phase",
        "ref",
        "serial",
        "supervision",
        "system",
        "task",
        "urn",
        "watchers",
        "watching",
    )

    def __init__(
        self,
        system: ActorSystem,
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
        self.phase = _STARTING
        # Set once, under the system's lock, when the actor is to stop. Then it takes no more children, and no restart follows.
        self.closing = False
        self.children: dict[Cell, None] | None = None  # in the order of their spawning; written under the system's lock
        self.children_gone: asyncio.Future[None] | None = None  # what `lifecycle` waits on while it stops the children
        self.task: asyncio.Task[Any] | None = None  # the handler or lifecycle procedure that is under way
        self.cancelling = False  # whether somebody asked for the end of the handler that is under way
        self.handling: str | None = None  # the handler or hook that is under way, if it may take long
        self.failure: tuple[BaseException, str] | None = None  # what it failed with, while it is suspended
        self.escalated: tuple[BaseException, str] | None = None  # a child's failure that is to be its own, as soon as nothing is under way
        self.pause: asyncio.Future[None] | None = None  # the wait before a restart
        self.budget: RestartBudget | None = None
        self.ended: list[ActorFuture[Any]] | None = None  # who waits for the end
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
        """The phase, as it is shown."""
        return self.phase.value

    @property
    def task_context(self) -> contextvars.Context:
        """What the tasks of this actor run in."""
        return self.context

    def build(self) -> Actor:
        """Make the instance, in the calling thread."""
        self.actor = actor = self.actor_class._construct(self, self.args, self.kwargs or {})
        return actor

    def begin(self) -> None:
        """The instance is made: let messages come. From any thread."""
        if not self.actor_class._traits.has_on_start:
            self.phase = _OPEN
            if self.mailbox.rest():
                return
        self.wake()

    # --- from any thread ---

    def post(self, envelope: Envelope) -> None:
        """Put into the work lane. Raises `MailboxClosed` or `Full`."""
        admission = self.mailbox.put(envelope)
        if admission is _WAKE:
            self.wake()
        elif type(admission) is not Admission:
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
        if admission is _WAKE:
            self.wake()
        elif admission is _ATTEND:
            self.system.dispatcher.attend(self)
        return True

    def notify(self, message: Terminated) -> None:
        """Put a notice into the work lane, behind what its sender has sent before. One that comes too late is nobody's loss."""
        try:
            self.post(Notice(message))
        except MailboxClosed:
            pass

    def is_busy(self) -> bool:
        """Whether there is something that it has to come to, or is at."""
        return len(self.mailbox) > 0

    def may_spawn(self) -> bool:
        return not self.closing and self.phase in (_STARTING, _OPEN, _RUNNING)

    def dead_error(self, message: Any, reason: str) -> ActorDeadError | MailboxFull:
        """What the sender of a message that nobody will handle is told."""
        path = self.path
        if reason == DROPPED:
            text = f"The mailbox of {path} was full (capacity={self.mailbox.capacity}), and dropped this message for a newer one."
            return MailboxFull(text, actor=path, message=message)
        text = f"{path}: {reason}. Spawn a new one, or watch() it to be told when it ends."
        return ActorDeadError(text, actor=path, message=message)

    # --- messages ---

    def visit(self) -> bool:
        """Handle some messages, if there are any. Returns whether there may be more."""
        if self.phase is not _OPEN and not (self.phase is _STARTING and self.task is None and lifecycle.start(self)):
            self.attend()
            return False
        take = self.mailbox.take
        for _ in range(_BATCH):
            envelope = take()
            if envelope is None:
                return False
            if type(envelope) is Envelope:
                self._handle(envelope)
            else:
                self._notice(envelope)
            if self.phase is not _OPEN:
                return False
        return True

    def attend(self) -> None:
        """See to the control lane, in the middle of whatever is under way."""
        while (envelope := self.mailbox.take_control()) is not None:
            self._control(envelope)

    def _notice(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, Control):
            self._control(envelope)
        else:
            self._handle(envelope)

    def _control(self, envelope: Envelope) -> None:
        request = envelope.message
        if isinstance(request, StopRequest):
            if envelope.reply_to is not None:
                self.when_ended(envelope.reply_to)
            lifecycle.begin_stop(self)
        elif isinstance(request, WaitRequest):
            self.when_ended(envelope.reply_to)
        elif isinstance(request, CancelRequest):
            self.cancel_handler()
        elif isinstance(request, ChildEscalated):
            if self.phase is _OPEN:
                lifecycle.fail(self, request.error, request.during)
            elif self.phase in (_STARTING, _RUNNING, Phase.SUSPENDED):
                self.escalated = (request.error, request.during)

    def _handle(self, envelope: Envelope) -> None:
        started = perf_counter()
        message = envelope.message
        try:
            special = SPECIAL.get(type(message))
            if special is None:
                result = self.context.run(self.actor.on_receive, message)  # type: ignore[union-attr]  # open: there is an instance
            else:
                result = self.context.run(special, self, message)
        except BaseException as error:  # noqa: BLE001 -- goes to the asker or to the supervisor
            self._time(message, perf_counter() - started)
            self._failed(envelope, error)
            return
        if type(result) is CoroutineType:
            self._begin(result, envelope, started)
            return
        self._time(message, perf_counter() - started)
        if envelope.reply_to is not None:
            answer(envelope.reply_to, result)

    def _begin(self, coro: Coroutine[Any, Any, Any], envelope: Envelope, started: float) -> None:
        handler = handler_name(envelope.message)

        def done(outcome: Outcome) -> None:
            self._finish(envelope, outcome, handler, perf_counter() - started)

        self.handling = handler
        self.run_task(Steps(coro, self.held_in(handler), done), _RUNNING)

    def _finish(self, envelope: Envelope, outcome: Outcome, handler: str, seconds: float) -> None:
        monitor = self.system.monitor
        monitor.handled += 1
        if seconds > monitor.slowest_seconds:
            monitor.took(self.path, handler, seconds)
        cancelled, self.cancelling = self.cancelling, False
        self.handling = None
        self.end_task()
        if outcome.error is None:
            if envelope.reply_to is not None:
                answer(envelope.reply_to, outcome.value)
        elif cancelled and isinstance(outcome.error, asyncio.CancelledError):
            if envelope.reply_to is not None:
                text = f"{self.path} was cancelled in {handler} before it had a reply."
                answer_error(envelope.reply_to, HandlerCancelled(text, actor=self.path, message=envelope.message))
        else:
            self._failed(envelope, outcome.error)
        if self.phase is _RUNNING:
            self.reopen()

    def _failed(self, envelope: Envelope, error: BaseException) -> None:
        """An ordinary exception goes to whoever asked; all else, to the supervisor and nobody else."""
        reply_to = envelope.reply_to
        if reply_to is not None:
            if isinstance(error, Exception):
                answer_error(reply_to, error)
                return
            text = (
                f"{self.path} crashed with {type(error).__name__} in {handler_name(envelope.message)} while it handled this message. "
                "Its supervisor decides what becomes of it."
            )
            answer_error(reply_to, ActorFailed(text, actor=self.path, message=envelope.message))
        lifecycle.fail(self, error, handler_name(envelope.message))

    def _time(self, message: Any, seconds: float) -> None:
        monitor = self.system.monitor
        monitor.handled += 1
        if seconds > monitor.slowest_seconds:
            monitor.took(self.path, handler_name(message), seconds)
        if seconds > monitor.slow_after:
            monitor.held(self.path, self.actor_class, handler_name(message), seconds)

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
        if system.quiet is not None:
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

    def go_on(self) -> None:
        self.phase = _OPEN
        self.mailbox.come_back()
        if self.system.dispatcher.visiting is not self:
            self.system.dispatcher.ready(self)

    def cancel_handler(self) -> None:
        """End the asynchronous handler that is under way, if there is one."""
        if self.phase is _RUNNING and self.task is not None and not self.cancelling:
            self.cancelling = True
            self.task.cancel()

    def decide_on(self, request: ChildFailed) -> None:
        """Have the actor say what becomes of its failed child: now, even if a handler of its own waits for something.

        It may wait for that very child.
        """
        assert self.actor is not None
        try:
            result = self.context.run(self.actor.on_child_failure, request.child.ref, request.error)  # type: ignore[arg-type]  # it lives
        except BaseException as error:  # noqa: BLE001 -- goes to its own supervisor
            lifecycle.decided(request, None, error)
            return
        if type(result) is not CoroutineType:
            lifecycle.decided(request, result, None)
            return
        held = self.held_in("on_child_failure")
        self.system.run_task(Steps(result, held, lambda outcome: lifecycle.decided(request, outcome.value, outcome.error)), self.context)

    def held_in(self, handler: str) -> Callable[[float], None]:
        """What takes the time of each step of a coroutine, and warns if it was long."""

        def held(seconds: float) -> None:
            monitor = self.system.monitor
            if seconds > monitor.slow_after:
                monitor.held(self.path, self.actor_class, handler, seconds)

        return held

    async def rebuild(self) -> BaseException | None:
        """Make a fresh instance. Returns what its `__init__` raised."""
        try:
            self.build()
        except BaseException as error:  # noqa: BLE001 -- goes to the supervisor
            return error
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
        self.held_in(hook)(perf_counter() - started)
        return await self.finish_hook(hook, result)

    async def finish_hook(self, hook: str, result: Any) -> BaseException | None:
        """Await what a hook returned, if it was asynchronous. Returns what it raised."""
        if type(result) is not CoroutineType:
            self.handling = None
            return None
        self.handling = hook
        outcome = await Steps(result, self.held_in(hook))
        self.handling = None
        if isinstance(outcome.error, asyncio.CancelledError) and self.task is not None:
            # A hook that was cut short at the end of the system must not cut short what comes after it.
            while self.task.uncancel():
                pass
        return outcome.error

    # --- the end ---

    def when_ended(self, future: ActorFuture[Any]) -> None:
        """Set the future to True when the actor has ended."""
        if self.ended is None:
            self.ended = []
        self.ended.append(future)

    def settle_left(self, envelopes: list[Envelope]) -> None:
        """Answer what was left in the mailbox."""
        for envelope in envelopes:
            if not isinstance(envelope.message, StopRequest | WaitRequest):
                refuse(self, envelope, LEFT)
            elif envelope.reply_to is not None:
                self.when_ended(envelope.reply_to)

    async def release(self) -> None:
        """Let go of whatever only a stopped actor may let go of."""

    def end(self, ending: Ending) -> None:
        """The very last: nobody will ever hear of this actor again."""
        self.phase = Phase.STOPPED
        self.actor = None
        system = self.system
        ref = self.ref
        left = self.mailbox.close()
        with system.lock:
            watchers, self.watchers = self.watchers, None
            watching, self.watching = self.watching, None
        for watched in watching or ():
            with watched.system.lock:
                if watched.watchers is not None:
                    watched.watchers.pop(self, None)
        if ref is not None:
            system.ended(self, ref)
            for watcher in watchers or ():
                watcher.notify(Terminated(ref, ending))
        self.settle_left(left)
        ended, self.ended = self.ended, None
        for future in ended or ():
            future.settle(True)  # the reply of stop()
        self.ref = None
        self.args, self.kwargs = (), None


def _call(cell: Cell, message: pykka_messages.ProxyCall) -> Any:
    return get_attr_directly(cell.actor, message.attr_path)(*message.args, **message.kwargs)


def _get(cell: Cell, message: pykka_messages.ProxyGetAttr) -> Any:
    return get_attr_directly(cell.actor, message.attr_path)


def _set(cell: Cell, message: pykka_messages.ProxySetAttr) -> None:
    setattr(get_attr_directly(cell.actor, message.attr_path[:-1]), message.attr_path[-1], message.value)


def _stop(cell: Cell, _message: pykka_messages._ActorStop) -> None:
    cell.post_control(StopRequest(), seal=True)


# What pykka's proxies and its own stop() send.
SPECIAL: Final[dict[type, Callable[[Cell, Any], Any]]] = {
    pykka_messages.ProxyCall: _call,
    pykka_messages.ProxyGetAttr: _get,
    pykka_messages.ProxySetAttr: _set,
    pykka_messages._ActorStop: _stop,  # noqa: SLF001 -- whoever sends it the pykka way
}
