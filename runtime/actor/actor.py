"""What users subclass: `Actor` on the system's event loop, and `ThreadActor` on a thread of its own.

Owns: the hooks, and what an actor can do from inside. Both are built on pykka's extension points (inbox, future, loop), so pykka's proxies work.
The cells (`loop_cell.py`, `thread_cell.py`) run it: this file must never handle a message, nor change a phase.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar, overload

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

__all__ = ["Actor", "InnerActor", "ThreadActor", "construct", "construct_simply", "is_born_simply", "start_loop"]

A = TypeVar("A", bound="Actor")
P = ParamSpec("P")
_Rule: TypeAlias = Supervision | None
_Box: TypeAlias = MailboxSettings | None


class Traits(NamedTuple):
    """Facts about an actor class, found once per class: looking them up for each actor would take time."""

    has_on_start: bool
    has_on_stop: bool
    has_on_failure: bool
    decides: bool  # overrides `on_child_failure`
    owns_thread: bool
    is_born_simply: bool  # no code of the user's runs until the first message, unless it has an `__init__` of its own
    task_name: str


class _Birth:
    """The cell of the instance that a thread is making: passes the cell around the user's `__init__`."""

    __slots__ = ("cell",)

    def __init__(self) -> None:
        self.cell: Cell | None = None


class _OfThread(threading.local):
    """To read from it takes as long as ten other reads: once for each birth and each `__init__`."""

    def __init__(self) -> None:
        self.birth = _Birth()


_of_thread = _OfThread()


def _forgotten(cls: type) -> str:
    return f"{cls.__name__}.__init__() does not call super().__init__(): add it as its first line, so that the actor gets its ref and mailbox."


class _TimersOfActor:
    """`self.timers`."""

    __slots__ = ()

    @overload
    def __get__(self, actor: None, owner: type[Actor]) -> Self: ...
    @overload
    def __get__(self, actor: Actor, owner: type[Actor]) -> Timers: ...
    def __get__(self, actor: Actor | None, owner: type[Actor]) -> Timers | Self:
        return self if actor is None else table.extras_of(actor._cell).timers


class Actor(pykka.Actor):
    """An actor on the system's event loop. An idle one costs about a kilobyte, and has no task and no thread.

    Override `on_receive`, or write methods and call them through `ref.proxy()`. `on_start`, `on_receive`, `on_stop`, `on_failure` and the methods
    may be `def` or `async def`. It handles one message at a time: while one waits in an `await`, the next one waits in the mailbox.

    An exception raised by a handler goes to the asker. If there is none (the message came by `tell`), or if it is not an ordinary `Exception`, the actor
    has failed: its supervisor decides what happens to it.
    """

    __slots__ = ("_cell",)

    use_daemon_thread: ClassVar[bool] = True
    """Whether the program may exit while the thread of a `ThreadActor` is alive. With False, the actor has to be stopped first. Read at the spawn."""

    __when_slow__: ClassVar[str] = (
        "Await instead of blocking, hand the work to a thread (`await self.actor_system.run_blocking(...)`), or make it a ThreadActor."
    )
    """What the log advises where one of this class has held the event loop for long."""

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
            msg = f"{name} is an actor: spawn it with system.spawn({name}, ...), self.spawn({name}, ...) or {name}.start(...), instead of calling it."
            raise UsageError(msg)
        birth.cell = None
        self._cell: Cell = cell
        cell.actor = self  # set this early so that the user's `__init__` can make a proxy to the actor itself

    @classmethod
    def start(cls, *args: object, **kwargs: object) -> ActorRef[Self]:
        """Spawn a root actor, as in pykka, in the current system: that of the running loop, of the enclosing `in_thread()` block, or the default one."""
        return current_system().spawn(cls, *args, **kwargs)

    # --- pykka's extension points ---

    @staticmethod
    def _create_actor_inbox() -> Mailbox:  # type: ignore[override]  # ours takes our envelopes only
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

    # --- what an actor can do ---

    def stop(self) -> None:
        """Stop this actor when the current handler has ended, before any queued message. Does not wait."""
        self._cell.post_control(StopRequest(), seal=True)

    # Without one of its own options, a spawn checks its arguments against the actor's `__init__`. No signature can say both.
    @overload
    def spawn(self, actor_class: Callable[P, A], *args: P.args, **kwargs: P.kwargs) -> ActorRef[A]: ...
    @overload
    def spawn(self, actor_class: type[A], *args: object, name: str | None, supervision: _Rule = ..., mailbox: _Box = ..., **kwargs: object) -> ActorRef[A]: ...
    @overload
    def spawn(self, actor_class: type[A], *args: object, supervision: _Rule, name: str | None = ..., mailbox: _Box = ..., **kwargs: object) -> ActorRef[A]: ...
    @overload
    def spawn(self, actor_class: type[A], *args: object, mailbox: _Box, name: str | None = ..., supervision: _Rule = ..., **kwargs: object) -> ActorRef[A]: ...
    def spawn(  # type: ignore[misc]  # an `__init__` with a parameter that is named as one of these cannot be given it
        self,
        actor_class: Callable[..., A],
        *args: object,
        name: str | None = None,
        supervision: _Rule = None,
        mailbox: _Box = None,
        **kwargs: object,
    ) -> ActorRef[A]:
        """Spawn a child: this actor supervises it, and stops after it."""
        return self._cell.system.spawn_under(self._cell, actor_class, args, kwargs, name=name, supervision=supervision, mailbox=mailbox)  # type: ignore[arg-type]  # a class: it is checked

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
        """Spawn `size` actors of a class that share the work, as children; what is returned is used as one ref.

        `strategy`: who is given the next message. `"round_robin"`: one after the other; `"least_busy"`: who has the fewest to handle. Those that fail
        are replaced (`supervision`: `Restart()`); `mailbox` is each one's own.
        """
        from .extras.pool import spawn_pool  # noqa: PLC0415 -- built on actors

        own = self._cell
        return spawn_pool(own.system, own, actor_class, size, args, kwargs, strategy=strategy, name=name, supervision=supervision, mailbox=mailbox)

    # Not a property, so that a class may have an attribute of that name.
    timers: ClassVar[_TimersOfActor] = _TimersOfActor()
    """Messages to itself: `self.timers.after(seconds, message)`, `self.timers.every(seconds, message)`; each returns a handle with `cancel()`."""

    stash_capacity: ClassVar[int] = 1_000
    """How many messages may be put aside at once."""

    def stash(self) -> None:
        """Put the message that is being handled aside: it is not answered now, and handled again after `unstash_all()`.

        What its handler returns does not count; if the handler raises, the message is not put aside. Raises `MailboxFull` if there are `stash_capacity`.
        """
        table.extras_of(self._cell).stash(self._cell, self.stash_capacity)

    def unstash_all(self) -> None:
        """Handle what was put aside next, before all that waits, in the order in which it was put aside. A fresh instance after a failure does so, too."""
        table.extras_of(self._cell).give_back(self._cell)

    def watch(self, ref: ActorRef[Any]) -> None:
        """Receive `Terminated(ref, reason)`, once, when that actor ends; immediately if it has already ended."""
        watching.watch(self._cell, ref)

    def unwatch(self, ref: ActorRef[Any]) -> None:
        """Stop watching. A `Terminated` that is already in the mailbox still arrives."""
        watching.unwatch(self._cell, cell_of(ref))

    # --- what an actor may override; each may be `def` or `async def` ---

    def on_start(self) -> Any:
        """Set up, before the first message. If it raises, the actor has failed; neither `on_failure` nor `on_stop` is called."""

    def on_receive(self, message: Any) -> Any:
        """Handle a message and return the reply. If it raises, the exception is the reply; after a `tell`, the actor has failed."""
        loggers.actor.warning("%s does not know what to do with this message: %r. Override on_receive().", self, message)

    def on_stop(self) -> Any:
        """Clean up, after the last message and after all children have stopped. If it raises, the actor stops all the same, and its parent is told.

        Not called when the actor stops because it has failed: then `on_failure` is.
        """

    def on_failure(self, exception_type: type[BaseException] | None, exception_value: BaseException | None, traceback: TracebackType | None) -> Any:
        """Clean up this instance, which has failed and is stopped or replaced. If it raises, the exception is logged and has no other effect."""

    def on_child_failure(self, ref: ActorRef[Any], error: BaseException) -> Directive | Coroutine[Any, Any, Directive]:
        """Decide what happens to a failed child. By default: the `supervision=` of its spawn, or `Stop()` if there was none.

        Called immediately, even while a handler of this actor awaits something, because that may be the very child.
        If it raises, the child is stopped and this actor has failed.
        """
        del error
        return cell_of(ref).supervision or Stop()


Actor._set_traits()


class InnerActor(Actor):
    """An actor of this package that lives for one run, whose `__init__` is given its cell: so it comes without the detour that a user's needs."""

    __slots__ = ()

    _is_inner = True

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        cell.actor = self

    def on_ended(self) -> None:
        """The very last, when the actor has ended. Not called on one whose restart has failed."""


def is_born_simply(cls: type[Actor]) -> bool:
    """Whether no code of the user's runs before the first message."""
    return cls.__init__ is Actor.__init__ and cls.__actor_traits__.is_born_simply


def construct_simply(cell: Cell) -> None:
    """Make the instance for a cell of such a class: what `construct` does, in a third of the time."""
    cell.actor = actor = object.__new__(cell.actor_class)
    actor._cell = cell


def construct(cell: Cell) -> Actor:
    """Make the instance for a cell."""
    if cell.actor_class._is_inner:
        return cell.actor_class(cell, *cell.args)
    birth = _of_thread.birth
    outer, birth.cell = birth.cell, cell
    try:
        actor = cell.actor_class(*cell.args) if cell.kwargs is None else cell.actor_class(*cell.args, **cell.kwargs)
    except AttributeError as error:
        # Not by a `__getattr__`: with one, Python looks up each attribute of each actor in the slow way.
        if error.name == "_cell" and birth.cell is cell:
            raise UsageError(_forgotten(cell.actor_class), actor=cell.path) from error
        raise
    finally:
        unclaimed, birth.cell = birth.cell, outer
    if unclaimed is not None:
        raise UsageError(_forgotten(cell.actor_class), actor=cell.path)
    return actor


def start_loop(actor: Actor) -> None:
    """Call pykka's hook, by which an instance that is in its place begins to take messages."""
    actor._start_actor_loop()


class ThreadActor(Actor):
    """An actor with a thread of its own, for code that blocks. Everything else is as in `Actor`; its `__init__` runs in the spawning thread.

    Its asynchronous handlers run on an event loop of that thread.
    """

    __slots__ = ()

    _owns_thread = True
