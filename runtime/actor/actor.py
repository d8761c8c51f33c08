"""The base classes of actors: `Actor` on the event loop, and `ThreadActor` with its own thread.

They contain the hooks and the operations that an actor can use. Both build on pykka's extension
points (inbox, future, loop), so pykka's proxies work. The cells (`loop_cell.py`, `thread_cell.py`)
handle the messages and change the phase.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    overload,
)

import pykka

from ..errors import UsageError
from ..log import loggers
from .current import current_system
from .envelope import MailboxSettings
from .extras import table, watching
from .extras.timers import Timers
from .future import ActorFuture
from .mailbox import Mailbox
from .messages import StopRequest
from .ref import cell_of
from .supervision import Directive, Stop, Supervision

if TYPE_CHECKING:
    from types import TracebackType

    from .cell import Cell
    from .extras.pool import ActorPool, Strategy
    from .host import Host
    from .ref import ActorRef, StoppedEvent

__all__ = [
    "Actor",
    "InnerActor",
    "ThreadActor",
    "construct",
    "construct_simply",
    "is_born_simply",
    "start_loop",
]

A = TypeVar("A", bound="Actor")
P = ParamSpec("P")
_Rule: TypeAlias = Supervision | None
_Box: TypeAlias = MailboxSettings | None


class Traits(NamedTuple):
    """Facts about an actor class, computed once per class, because looking them up takes time."""

    has_on_start: bool
    has_on_stop: bool
    has_on_failure: bool
    decides: bool  # overrides `on_child_failure`
    owns_thread: bool
    # True if no user code runs before the first message, except a custom `__init__`.
    is_born_simply: bool
    task_name: str


class _Birth:
    """The cell of the instance that a thread is creating.

    It carries the cell around the user's `__init__`.
    """

    __slots__ = ("cell",)

    def __init__(self) -> None:
        self.cell: Cell | None = None


class _OfThread(threading.local):
    """Thread-local storage.

    One read takes as long as ten other reads, so each birth reads it once.
    """

    def __init__(self) -> None:
        self.birth = _Birth()


_of_thread = _OfThread()


def _forgotten(cls: type) -> str:
    return (
        f"{cls.__name__}.__init__() does not call super().__init__(): add it as its first line, "
        "so that the actor gets its ref and mailbox."
    )


class _TimersOfActor:
    """The descriptor behind `self.timers`."""

    __slots__ = ()

    @overload
    def __get__(self, actor: None, owner: type[Actor]) -> Self: ...
    @overload
    def __get__(self, actor: Actor, owner: type[Actor]) -> Timers: ...
    def __get__(self, actor: Actor | None, owner: type[Actor]) -> Timers | Self:
        return self if actor is None else table.extras_of(actor._cell).timers


class Actor(pykka.Actor):
    """An actor on the system's event loop.

    An idle actor takes less than a kilobyte, and has no task and no thread.

    Override `on_receive`, or write methods and call them through `ref.proxy()`. `on_start`,
    `on_receive`, `on_stop`, `on_failure` and the methods may be `def` or `async def`. The actor
    handles one message at a time: while a handler awaits something, the next message waits in the
    mailbox.

    If a handler raises, the asker receives the exception. If there is no asker (the message was
    sent with `tell`), or if it is not an `Exception`, the actor has failed, and its supervisor
    decides its fate.
    """

    __slots__ = ("_cell",)

    use_daemon_thread: ClassVar[bool] = True
    """True if the program may exit while the thread of a `ThreadActor` is alive.

    With False, the actor must be stopped first. Read on spawning.
    """

    __when_slow__: ClassVar[str] = (
        "Await instead of blocking, hand the work to a thread (`await "
        "self.actor_system.run_blocking(...)`), or make it a ThreadActor."
    )
    """The advice that is logged if an actor of this class blocks the event loop for long."""

    __actor_traits__: ClassVar[Traits]
    _owns_thread: ClassVar[bool] = False
    _is_inner: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._set_traits()

    @classmethod
    def _set_traits(cls) -> None:
        cls.__actor_traits__ = Traits(
            has_on_start=cls.on_start is not Actor.on_start,
            has_on_stop=cls.on_stop is not Actor.on_stop,
            has_on_failure=cls.on_failure is not Actor.on_failure,
            decides=cls.on_child_failure is not Actor.on_child_failure,
            owns_thread=cls._owns_thread,
            is_born_simply=not cls._owns_thread
            and cls.__new__ is object.__new__
            and type(cls) is type(Actor)
            and cls.on_start is Actor.on_start
            and cls._start_actor_loop is Actor._start_actor_loop,
            task_name=cls.__qualname__,
        )

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        birth = _of_thread.birth
        cell = birth.cell
        if cell is None or cell.actor_class is not type(self):
            name = type(self).__name__
            msg = (
                f"{name} is an actor class and must not be called. Spawn it: "
                f"system.spawn({name}, ...), self.spawn({name}, ...) or {name}.start(...)."
            )
            raise UsageError(msg)
        birth.cell = None
        self._cell: Cell = cell
        # Set early, so that the user's `__init__` can create a proxy to the actor itself.
        cell.actor = self

    @classmethod
    def start(cls, *args: object, **kwargs: object) -> ActorRef[Self]:
        """Spawn a root actor in the current system, as in pykka.

        The current system is that of the running loop, of the enclosing `in_thread()` block, or the
        default one.
        """
        return current_system().spawn(cls, *args, **kwargs)

    # --- pykka's extension points ---

    @staticmethod
    def _create_actor_inbox() -> Mailbox:  # type: ignore[override]  # takes only this package's envelopes
        return Mailbox()

    @staticmethod
    def _create_future() -> ActorFuture[object]:
        return ActorFuture()

    def _start_actor_loop(self) -> None:
        self._cell.begin()

    @property
    def actor_ref(self) -> ActorRef[Self]:
        """The ref of this actor. Pass it to others instead of `self`."""
        return self._cell.own_ref()

    @property
    def actor_urn(self) -> str:  # type: ignore[override]  # an attribute there
        return self._cell.actor_urn

    @property
    def actor_inbox(self) -> Mailbox:  # type: ignore[override]
        return self._cell.mailbox

    @property
    def actor_stopped(self) -> StoppedEvent:  # type: ignore[override]
        return self.actor_ref.actor_stopped

    @property
    def actor_system(self) -> Host:
        """The system in which this actor runs."""
        return self._cell.system

    @property
    def actor_children(self) -> tuple[ActorRef[Any], ...]:
        """The actors spawned by this one that have not ended."""
        with self._cell.system.lock:
            return tuple(child.own_ref() for child in self._cell.children or ())

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self._cell.path})"

    # --- operations of an actor ---

    def stop(self) -> None:
        """Stop this actor when the current handler has ended, before any queued message.

        Does not wait.
        """
        self._cell.post_control(StopRequest(), seal=True)

    # Without the options of `spawn`, its arguments are checked against the actor's `__init__`. No
    # single signature can express both.
    @overload
    def spawn(
        self, actor_class: Callable[P, A], *args: P.args, **kwargs: P.kwargs
    ) -> ActorRef[A]: ...
    @overload
    def spawn(
        self,
        actor_class: type[A],
        *args: object,
        name: str | None,
        supervision: _Rule = ...,
        mailbox: _Box = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    @overload
    def spawn(
        self,
        actor_class: type[A],
        *args: object,
        supervision: _Rule,
        name: str | None = ...,
        mailbox: _Box = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    @overload
    def spawn(
        self,
        actor_class: type[A],
        *args: object,
        mailbox: _Box,
        name: str | None = ...,
        supervision: _Rule = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    def spawn(  # type: ignore[misc]  # an `__init__` parameter with one of these names cannot be passed
        self,
        actor_class: Callable[..., A],
        *args: object,
        name: str | None = None,
        supervision: _Rule = None,
        mailbox: _Box = None,
        **kwargs: object,
    ) -> ActorRef[A]:
        """Spawn a child. This actor supervises it, and stops after it."""
        return self._cell.system.spawn_under(
            self._cell,
            actor_class,  # type: ignore[arg-type]  # a class, which is checked
            args,
            kwargs,
            name=name,
            supervision=supervision,
            mailbox=mailbox,
        )

    def spawn_pool(
        self,
        actor_class: type[A],
        size: int,
        *args: object,
        strategy: Strategy = "round_robin",
        name: str | None = None,
        supervision: _Rule = None,
        mailbox: _Box = None,
        **kwargs: object,
    ) -> ActorPool[A]:
        """Spawn `size` child actors of a class that share the work.

        Use the returned pool like one ref.

        `strategy` chooses the receiver of the next message: `"round_robin"` takes turns,
        `"least_busy"` takes the member with the fewest messages to handle. Failed members are
        replaced (`supervision` defaults to `Restart()`). Each member has its own `mailbox`.
        """
        from .extras.pool import spawn_pool  # noqa: PLC0415 -- imports this module

        own = self._cell
        return spawn_pool(
            own.system,
            own,
            actor_class,
            size,
            args,
            kwargs,
            strategy=strategy,
            name=name,
            supervision=supervision,
            mailbox=mailbox,
        )

    # A class attribute rather than a property, so that a subclass may redefine the name.
    timers: ClassVar[_TimersOfActor] = _TimersOfActor()
    """Messages to itself: `timers.after(seconds, message)` and `timers.every(seconds, message)`.

    Each returns a handle with `cancel()`.
    """

    stash_capacity: ClassVar[int] = 1_000
    """The largest number of stashed messages."""

    def stash(self) -> None:
        """Stash the current message: it is handled again after `unstash_all()`, and answered then.

        The handler's return value is ignored. If the handler raises, the message is not stashed.
        Raises `MailboxFull` if `stash_capacity` messages are stashed.
        """
        table.extras_of(self._cell).stash(self._cell, self.stash_capacity)

    def unstash_all(self) -> None:
        """Handle the stashed messages next, before all waiting ones, in their original order.

        After a failure, the new instance receives them too.
        """
        table.extras_of(self._cell).give_back(self._cell)

    def watch(self, ref: ActorRef[Any]) -> None:
        """Receive `Terminated(ref, reason)` once, when that actor ends.

        It comes immediately if the actor has already ended.
        """
        watching.watch(self._cell, ref)

    def unwatch(self, ref: ActorRef[Any]) -> None:
        """Stop watching. A `Terminated` that is already in the mailbox still arrives."""
        watching.unwatch(self._cell, cell_of(ref))

    # --- hooks to override; each may be `def` or `async def` ---

    def on_start(self) -> Any:
        """Set up, before the first message.

        If it raises, the actor has failed; neither `on_failure` nor `on_stop` is called.
        """

    def on_receive(self, message: Any) -> Any:
        """Handle a message and return the reply.

        If it raises, the exception is the reply; after a `tell`, the actor has failed.
        """
        loggers.actor.warning(
            "%s does not know what to do with this message: %r. Override on_receive().",
            self,
            message,
        )

    def on_stop(self) -> Any:
        """Clean up, after the last message and after all children have stopped.

        If it raises, the actor stops nevertheless, and the error goes to its parent. Not called
        when the actor stops because of a failure: then `on_failure` is called.
        """

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        """Clean up this instance, which has failed and is stopped or replaced.

        If it raises, the exception is logged and has no other effect.
        """

    def on_child_failure(
        self, ref: ActorRef[Any], error: BaseException
    ) -> Directive | Coroutine[Any, Any, Directive]:
        """Decide the fate of a failed child.

        The default is the `supervision=` of its spawn, or `Stop()`. Called immediately, even while
        a handler of this actor awaits something, because it may await that very child. If it
        raises, the child is stopped and this actor has failed.
        """
        del error
        return cell_of(ref).supervision or Stop()


Actor._set_traits()


class InnerActor(Actor):
    """An actor of this package that lives for one run.

    Its `__init__` receives its cell directly, which avoids the detour for custom actors.
    """

    __slots__ = ()

    _is_inner = True

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        cell.actor = self


def is_born_simply(cls: type[Actor]) -> bool:
    """Return True if no user code runs before the first message."""
    return cls.__init__ is Actor.__init__ and cls.__actor_traits__.is_born_simply


def construct_simply(cell: Cell) -> None:
    """Create the instance for such a cell, as `construct` does, in a third of the time."""
    cell.actor = actor = object.__new__(cell.actor_class)
    actor._cell = cell


def construct(cell: Cell) -> Actor:
    """Create the instance for a cell."""
    if cell.actor_class._is_inner:
        return cell.actor_class(cell, *cell.args)
    birth = _of_thread.birth
    outer, birth.cell = birth.cell, cell
    try:
        actor = (
            cell.actor_class(*cell.args)
            if cell.kwargs is None
            else cell.actor_class(*cell.args, **cell.kwargs)
        )
    except AttributeError as error:
        # Not with a `__getattr__`, because Python would then look up every attribute of every actor
        # the slow way.
        if error.name == "_cell" and birth.cell is cell:
            raise UsageError(_forgotten(cell.actor_class), actor=cell.path) from error
        raise
    finally:
        unclaimed, birth.cell = birth.cell, outer
    if unclaimed is not None:
        raise UsageError(_forgotten(cell.actor_class), actor=cell.path)
    return actor


def start_loop(actor: Actor) -> None:
    """Call pykka's hook for an instance that starts to take messages."""
    actor._start_actor_loop()


class ThreadActor(Actor):
    """An actor with its own thread, for code that blocks.

    Everything else is as in `Actor`; its `__init__` runs in the spawning thread. Its asynchronous
    handlers run on an event loop in the actor's thread.
    """

    __slots__ = ()

    _owns_thread = True
