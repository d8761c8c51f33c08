"""The actor system: bound to one event loop from its start to its stop.

It contains the roots of the tree, the dispatcher, the clock, the counters, the worker threads, and
the shutdown. It stops children before parents, and leaves no actor, task or thread behind. It does
not handle messages or decide about failed actors.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractContextManager, suppress
from functools import partial
from threading import get_ident
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

from ..actor import current as directory
from ..actor import lifecycle
from ..actor.actor import Actor, construct, construct_simply, is_born_simply, start_loop
from ..actor.cell import Cell
from ..actor.envelope import MailboxSettings
from ..actor.extras.pool import ActorPool, Strategy, spawn_pool
from ..actor.extras.table import Extras
from ..actor.future import ActorFuture
from ..actor.loop_cell import LoopCell
from ..actor.mailbox import Mailbox
from ..actor.phase import OPEN
from ..actor.report import ActorNode, DeadLetter, DrainReport, SystemStats
from ..actor.supervision import Supervision
from ..actor.thread_cell import ThreadCell
from ..clock import Clock, LoopClock, use_clock
from ..errors import UsageError
from ..log import loggers
from ..option_names import suggests_options
from ..tasks import start_task
from . import fork, registry
from .dispatcher import Dispatcher
from .draining import drain
from .full_collections import FullCollections
from .monitor import Monitor
from .names import Names
from .options import SystemOptions, check_options
from .shutdown import Shutdown
from .spawning import attach, check_spawn, check_takes, new_cell, put
from .state import SystemState
from .stats import take_stats, take_tree, walk
from .workers import Workers

if TYPE_CHECKING:
    from types import TracebackType

    from ..actor.ref import ActorRef
    from .threaded import ThreadedSystem

__all__ = ["ActorSystem"]

A = TypeVar("A", bound=Actor)
P = ParamSpec("P")
T = TypeVar("T")
_Rule: TypeAlias = Supervision | None
_Box: TypeAlias = MailboxSettings | None


@suggests_options
class ActorSystem:
    """A tree of actors on one event loop.

        async with ActorSystem() as system:             # on the running loop
            ref = system.spawn(MyActor)
            reply = await ref.request("hello")

        with ActorSystem.in_thread() as system:         # on a separate loop, in a thread
            reply = system.spawn(MyActor).ask("hello")

    Leaving the block stops everything, children before parents, and cancels running asynchronous
    handlers. To finish the work first, use `drain`.

    * `mailbox_capacity` bounds the mailboxes of actors that are spawned without `mailbox=`.
    * `slow_handler`: the seconds that a handler may block the loop before a warning names it.
    * `worker_threads` (200): the number of concurrent blocking calls, including tools that are a
      plain `def`. Threads start on demand, and end after half a minute without work; beyond the
      limit, calls wait.
    * `stop_timeout`: the wait for hooks and threads that do not end. Then an error in the log names
      them, and they are abandoned: they do not prevent the process from ending.
    * `lease_seconds`: the time after which a store considers a silent system dead. If its loss
      cannot be proven, other processes continue its runs only after this time.
    * `full_collections="paced"` makes Python's full garbage collections when the loop has little to
      do, or when memory has grown by half since the last one. It changes the third threshold of
      `gc`, which is the process's, until the last such system is left. Nothing is changed if the
      collector is disabled, or if the program has set that threshold.
    """

    def __init__(
        self,
        name: str = "offbook",
        *,
        mailbox_capacity: int | None = None,
        worker_threads: int | None = None,
        clock: Clock | None = None,
        slow_handler: float = 0.1,
        stop_timeout: float = 10.0,
        lease_seconds: float = 30.0,
        full_collections: Literal["paced"] | None = None,
    ) -> None:
        check_options(worker_threads, slow_handler, stop_timeout, lease_seconds, full_collections)
        self.name = name
        self.state = SystemState.NEW
        # True unless RUNNING or DRAINING: comparing the state itself takes half a microsecond.
        self.closing = True
        self.lease_seconds = lease_seconds
        self.belongings: dict[
            type, object
        ] = {}  # objects of higher packages for this system, by class
        self.monitor = Monitor(slow_handler)
        self.serials = itertools.count(1)
        # Held only briefly, never while calling out. Guards the mailboxes, and the children and
        # watchers of each actor.
        self.lock = threading.RLock()
        self.roots: dict[Cell, None] = {}  # in the order of spawning; written under the lock
        self.names = Names()
        self.extras: dict[Cell, Extras] = {}  # only for actors that use them
        self.running: dict[
            Cell, None
        ] = {}  # actors with a running handler or lifecycle procedure; the loop's thread only
        self.loop: asyncio.AbstractEventLoop
        self.dispatcher: Dispatcher
        self.clock: Clock
        # Why nothing can be sent, if the loop is closed or the process was forked.
        self.fault: str | None = None
        self.refuses = True  # True if a spawn must check the state
        self._mailbox = MailboxSettings(mailbox_capacity) if mailbox_capacity is not None else None
        self._clock = clock
        self.workers = Workers(name, worker_threads, stop_timeout)
        self.tasks: set[asyncio.Task[object]] = set()
        self.threads: dict[
            ThreadCell, None
        ] = {}  # thread actors whose threads have not ended; the loop's thread only
        # During a drain: set when something has ended.
        self.waiting_for_quiet: set[asyncio.Future[None]] = set()
        self._stopped: asyncio.Event | None = None
        self._is_for_one = False
        self._at_last: list[Callable[[], object]] = []
        self._at_end: list[
            Callable[[], Coroutine[Any, Any, None]]
        ] = []  # called on stopping, after the last actor has stopped
        self._ends_with_loop: AsyncGenerator[None, None] | None = None
        self._paces = full_collections == "paced"
        self._collections: FullCollections | None = None  # while it runs, if it paces them
        self._shutdown = Shutdown(self, stop_timeout)
        fork.watch(self)

    def __repr__(self) -> str:
        return f"<ActorSystem {self.name!r} {self.state.value}, {len(self.roots)} roots>"

    # --- entering and leaving ---

    @classmethod
    def in_thread(
        cls,
        name: str = "offbook",
        *,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        **options: Unpack[SystemOptions],
    ) -> ThreadedSystem:
        """Return a system on a separate loop in a daemon thread.

        Use it as `with ActorSystem.in_thread() as system:`.
        """
        from .threaded import ThreadedSystem  # noqa: PLC0415 -- mutual import

        return ThreadedSystem(cls(name, **options), loop_factory)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Bind the system to the running loop, like entering `async with`."""
        if self.state not in (SystemState.NEW, SystemState.STOPPED):
            msg = (
                f"{self!r} has been entered already. Use it without entering it, or make another "
                "one for another loop."
            )
            raise UsageError(msg)
        loop = asyncio.get_running_loop()
        found = directory.enter_loop(loop, self)
        if found is not None:
            msg = (
                f"A second system cannot be entered inside the first: {found!r} runs on this "
                "loop already. Spawn in that one."
            )
            raise UsageError(msg)
        use_clock(loop, self._clock)
        self.bind(loop)
        if self._paces:
            self._collections = FullCollections(self.clock)

    def bind(self, loop: asyncio.AbstractEventLoop, *, for_one: bool = False) -> None:
        """Use that loop, from its thread.

        A system that is bound but not entered is never the current one. With `for_one` it need not
        be stopped: no thread is left when its last actor has ended, and its final callbacks run
        when its loop ends.
        """
        self._is_for_one = for_one
        self.loop = loop
        self.fault = None
        self.clock = self._clock or LoopClock(loop)
        self.dispatcher = Dispatcher(loop, on_closed=self._loop_is_closed, on_quiet=self.look_again)
        self.state = SystemState.RUNNING
        self.closing = self.refuses = False

    async def stop(self) -> None:
        """Stop everything, children before parents, like leaving `async with`."""
        if self.state in (SystemState.NEW, SystemState.STOPPED):
            return
        if asyncio.get_running_loop() is not self.loop:
            msg = f"{self!r} was entered on another event loop. Leave it on that loop."
            raise UsageError(msg)
        if self._stopped is not None:
            await self._stopped.wait()
            return
        self._stopped = asyncio.Event()
        try:
            try:
                await self._shutdown.let_end()
            finally:
                with self.lock:
                    self.state = SystemState.STOPPING
                    self.closing = self.refuses = True  # from now on, no root is added
            await self._shutdown.stop_all()
            await self._shutdown.call_last(self._at_end)
        finally:
            # Even if this task is cancelled, nothing may be left.
            self._shutdown.give_up_rest()
            for callback in self._at_last:
                callback()
            self.monitor.rest()
            self._leave_collections()
            if directory.leave_loop(self.loop, self):
                use_clock(self.loop, None)
            self.state = SystemState.STOPPED
            # Idents are reused: this one no longer means the loop's thread.
            self.dispatcher.thread = 0
            self._stopped.set()
            self._stopped = None

    def before_end(self, callback: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Call `callback` when the system stops, after its last actor has stopped.

        On the loop's thread. A system that need not be stopped stops when its loop ends:
        `asyncio.run`, and any other orderly end of a loop, closes the loop's generators.
        """
        if callback not in self._at_end:
            self._at_end.append(callback)
        self.end_with_loop()

    def end_with_loop(self) -> None:
        """Stop when the loop ends, if nobody else stops this system. On the loop's thread."""
        if self._is_for_one and self._ends_with_loop is None:
            self._ends_with_loop = self._stop_at_end()
            with suppress(StopIteration), warnings.catch_warnings():
                # A loop may continue after it has closed its generators, and close this one at its
                # next end.
                warnings.simplefilter("ignore", ResourceWarning)
                self._ends_with_loop.__anext__().send(None)  # from here on, the loop knows it

    def at_last(self, callback: Callable[[], object]) -> None:
        """Call `callback` each time the system has stopped, even if stopping was interrupted."""
        self._at_last.append(callback)

    async def _stop_at_end(self) -> AsyncGenerator[None, None]:
        """A generator that the loop closes at its end.

        If the loop continues afterwards, the system is as it was at first.
        """
        try:
            yield
        finally:
            await self.stop()
            self._ends_with_loop = None
            self.bind(self.loop, for_one=True)

    def _leave_collections(self) -> None:
        if self._collections is not None:
            self._collections.stop()
            self._collections = None

    def make_future(self) -> ActorFuture[object]:
        """Return a future for a reply that this system's loop will produce."""
        return ActorFuture(self.dispatcher.thread, self.look_at_loop)

    def look_at_loop(self) -> None:
        """Notice if the loop has been closed. From any thread."""
        if self.loop.is_closed():
            self._loop_is_closed()

    def _loop_is_closed(self) -> None:
        """Answer all messages after the loop was closed under a running system.

        No actor will ever handle them.
        """
        if self.fault is not None or not self.is_running:
            return
        self.fault = (
            f"The event loop of {self!r} was closed while the system was running. Leave the "
            "system before its loop ends: `async with ActorSystem()`."
        )
        loggers.system.error(self.fault)
        self._leave_collections()
        self.dispatcher.thread = 0
        for cell in self.cells():
            cell.resolve_left(
                cell.mailbox.close() + ([cell.current] if cell.current is not None else [])
            )
            for tell in cell.ended:
                tell(True)

    def locks(self) -> tuple[object, ...]:
        """Return all locks of this system."""
        return self.lock, self.monitor.lock, self.workers.lock

    @property
    def is_running(self) -> bool:
        return self.state in (SystemState.RUNNING, SystemState.DRAINING) and self.fault is None

    # --- spawning ---

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
        """Spawn a root actor, from any thread.

        The other arguments go to its `__init__`, which runs before this returns. `supervision`
        decides the actor's fate when it fails; the default is `Stop()`.
        """
        return self.spawn_under(
            None,
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
        """Spawn `size` actors of a class that share the work, as `Actor.spawn_pool` does."""
        return spawn_pool(
            self,
            None,
            actor_class,
            size,
            args,
            kwargs,
            strategy=strategy,
            name=name,
            supervision=supervision,
            mailbox=mailbox,
        )

    def spawn_under(
        self,
        parent: Cell | None,
        actor_class: type[A],
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        name: str | None,
        supervision: Supervision | None,
        mailbox: MailboxSettings | None,
    ) -> ActorRef[A]:
        """Spawn an actor under that parent; None is the system itself."""
        if self.refuses:
            check_takes(self, actor_class, parent)
        if self.fault is not None:
            self.check()
        traits = check_spawn(actor_class, name, mailbox, supervision)
        box = self._mailbox if mailbox is None else mailbox
        if is_born_simply(actor_class):
            simple = new_cell(
                self, actor_class, args, kwargs, name, parent, supervision, box, waits=False
            )
            construct_simply(simple)
            ref = simple.own_ref()
            attach(self, simple, parent, listed=True)
            return ref
        if traits.owns_thread:
            cell: Cell = ThreadCell(
                self,
                actor_class,
                args,
                kwargs or None,
                name,
                parent,
                supervision,
                Mailbox(box, self.lock, engaged=True),
            )
        else:
            cell = new_cell(self, actor_class, args, kwargs, name, parent, supervision, box)
        ref = cell.own_ref()
        start_loop(put(self, cell, parent, listed=True))  # opens the mailbox, too
        return ref

    def spawn_own(
        self,
        actor_class: type[Actor],
        args: tuple[object, ...],
        name: str | None,
        parent: Cell | None,
    ) -> LoopCell:
        """Spawn an actor of this library with an unbounded mailbox, and return its cell.

        It is not in pykka's registry.
        """
        if self.refuses:
            check_takes(self, actor_class, parent)
        if self.fault is not None:
            self.check()
        starts = actor_class.__actor_traits__.has_on_start
        cell = LoopCell(self, actor_class, args, None, name, parent, None, None)
        if not starts:
            cell.phase = OPEN  # nobody else refers to it yet
        try:
            construct(cell)
            attach(self, cell, parent)
        except BaseException:
            self.on_loop(lifecycle.abandon, cell)
            raise
        if starts:
            cell.begin()
        return cell

    def ended(self, cell: Cell) -> None:
        """Remove a root that has ended."""
        with self.lock:
            known = self.roots.pop(cell, self) is None
            if cell.given_name is not None:
                self.names.release(cell)
        if known and not self.roots:
            if self.closing:
                self._shutdown.roots_are_gone()
            if self._is_for_one:
                self.workers.release()
                self.monitor.rest()

    def leaving(self, cell: Cell) -> None:
        """Remove an actor that is about to stop from pykka's registry. From any thread."""
        if cell.listed:
            cell.listed = False
            registry.discard(cell)

    # --- looking, from any thread ---

    @property
    def not_entered(self) -> str:
        """The error text for use before the system is entered."""
        return (
            f"{self!r} has not been entered. Write `async with ActorSystem() as system:`, or "
            "`with ActorSystem.in_thread() as system:`."
        )

    def cells(self) -> list[Cell]:
        """Return all actors, parents before children."""
        return list(walk(self))

    def actor_of(self, path: str) -> ActorRef[Any] | None:
        """Return the living root of that name, or a child by its path, such as `"parent/child"`.

        None if there is none. From any thread.
        """
        with self.lock:
            found = self.names.find(path)
        return None if found is None else found.own_ref()

    def stats(self) -> SystemStats:
        """Return the number of actors by class and state, and their counters.

        From any thread.
        """
        return take_stats(self)

    def tree(self) -> ActorNode:
        """Return all actors as a tree. `print(system.tree())` draws it. From any thread."""
        return take_tree(self)

    def subscribe_dead_letters(
        self, callback: Callable[[DeadLetter], object]
    ) -> Callable[[], None]:
        """Call `callback(letter)` for every message that is not handled.

        Returns a function that ends the subscription. The callback runs in the thread that lost the
        message, and should be quick. A callback that raises is logged and removed.
        """
        return self.monitor.subscribe(callback)

    # --- draining ---

    async def drain(self, timeout: float) -> DrainReport:
        """Accept no new roots, and wait until no actor has work, at most `timeout` seconds.

        The actors still exist afterwards; stopping the system ends them.
        """
        if not self.is_running:
            msg = (
                f"{self!r} is not running, so it has nothing to drain. Call drain() while the "
                "system is entered."
            )
            raise UsageError(msg)
        self.refuse_roots()
        return await drain(self, timeout)

    def refuse_roots(self) -> None:
        """Accept no new roots, because the system is about to drain. From any thread."""
        with self.lock:
            if self.is_running:
                self.state = SystemState.DRAINING
                self.refuses = True

    def look_again(self) -> None:
        """Make a drain check again, because something has ended."""
        for quiet in self.waiting_for_quiet:
            if not quiet.done():
                quiet.set_result(None)

    # --- for the rest of the runtime ---

    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking function in a worker thread, with the caller's context variables."""
        return await self.workers.run(
            partial(function, *args, **kwargs),
            getattr(function, "__qualname__", None) or repr(function),
        )

    async def run_named(
        self, function: Callable[[], T], name: str, began: Callable[[], object] | None = None
    ) -> T:
        """Run a blocking function in a worker thread, with a name for the log.

        `began` is called on the loop when a thread has started it.
        """
        return await self.workers.run(function, name, began)

    def waiting_for_a_run(self, call: str, instead: str) -> AbstractContextManager[None]:
        """Return a context for a thread that waits for a run of this system."""
        return self.workers.lending(call, instead)

    def run_task(
        self, coro: Coroutine[Any, None, T], name: str, context: contextvars.Context
    ) -> asyncio.Task[T]:
        """Run a coroutine in a task of the system itself.

        On the loop's thread. If the task does not end, the log shows its name.
        """
        task = start_task(coro, name, name=name, loop=self.loop, context=context)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def on_loop(self, function: Callable[..., object], *args: object) -> bool:
        """Call a function on the loop's thread, immediately if this is that thread.

        Returns False if the loop is closed, or belongs to another process.
        """
        if get_ident() == self.dispatcher.thread:
            function(*args)
            return True
        if self.fault is not None:
            # In a forked process, the loop still has the parent's file descriptors.
            return False
        try:
            self.loop.call_soon_threadsafe(partial(function, *args))
        except RuntimeError:
            if not self.loop.is_closed():
                raise
            self._loop_is_closed()
            return False
        return True

    def check(self) -> None:
        """Raise if no message can be sent any longer."""
        if self.fault is not None:
            raise UsageError(self.fault)
