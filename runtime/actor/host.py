"""An actor's system, as its actors see it.

The first half of the protocol `Host` is for custom actors (`self.actor_system`), and the second
half is for this library. `ActorSystem` in `system/` implements it. It contains only the parts that
actors need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    import asyncio
    import contextvars
    import threading
    from collections.abc import Callable, Coroutine, Iterator
    from contextlib import AbstractContextManager

    from ..clock import Clock
    from .actor import Actor
    from .cell import Cell
    from .envelope import MailboxSettings
    from .extras.table import Extras
    from .future import ActorFuture
    from .loop_cell import LoopCell
    from .ref import ActorRef
    from .report import ActorNode, DeadLetter, DrainReport, SystemStats
    from .supervision import Supervision
    from .thread_cell import ThreadCell

__all__ = ["Counters", "Host", "Scheduler"]

A = TypeVar("A", bound="Actor")
P = ParamSpec("P")
T = TypeVar("T")


class Scheduler(Protocol):
    """The scheduler, which chooses the next actor on the loop's thread."""

    @property
    def thread(self) -> int: ...
    @property
    def credit(self) -> float: ...
    @property
    def visiting(self) -> Cell | None: ...

    def ready(self, cell: Cell, /) -> None: ...
    def attend(self, cell: Cell, /) -> None: ...
    def spend(self, seconds: float, /) -> None: ...


class Counters(Protocol):
    """The counters of all actors of a system."""

    handled: int
    restarts: int

    @property
    def notable(self) -> float: ...
    @property
    def slow_after(self) -> float: ...

    def begin(self) -> float: ...
    def took(self, actor: str, handler: str, seconds: float, /) -> None: ...
    def blocked_for(
        self, actor: str, actor_class: type[Actor], handler: str, seconds: float, /
    ) -> None: ...
    def count_handled(self) -> None: ...
    def is_watched(self) -> bool: ...
    def count_dead_letters(self, count: int, /) -> None: ...
    def dead_letter(self, message: Any, ref: ActorRef[Any], reason: str, /) -> None: ...


class Host(Protocol):
    """An actor's system."""

    # --- for users' actors ---

    @property
    def name(self) -> str: ...
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def is_running(self) -> bool: ...

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
        supervision: Supervision | None = ...,
        mailbox: MailboxSettings | None = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    @overload
    def spawn(
        self,
        actor_class: type[A],
        *args: object,
        supervision: Supervision | None,
        name: str | None = ...,
        mailbox: MailboxSettings | None = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    @overload
    def spawn(
        self,
        actor_class: type[A],
        *args: object,
        mailbox: MailboxSettings | None,
        name: str | None = ...,
        supervision: Supervision | None = ...,
        **kwargs: object,
    ) -> ActorRef[A]: ...
    async def run_blocking(
        self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    def actor_of(self, path: str) -> ActorRef[Any] | None: ...
    def stats(self) -> SystemStats: ...
    def tree(self) -> ActorNode: ...
    def subscribe_dead_letters(
        self, callback: Callable[[DeadLetter], object]
    ) -> Callable[[], None]: ...
    async def drain(self, timeout: float) -> DrainReport: ...
    async def stop(self) -> None: ...

    # --- for the packages of this library ---

    @property
    def lease_seconds(self) -> float: ...
    @property
    def belongings(self) -> dict[type, object]: ...
    def before_end(self, callback: Callable[[], Coroutine[Any, Any, None]]) -> None: ...
    def at_last(self, callback: Callable[[], object]) -> None: ...
    @property
    def extras(self) -> dict[Cell, Extras]: ...
    @property
    def dispatcher(self) -> Scheduler: ...
    @property
    def monitor(self) -> Counters: ...
    @property
    def lock(self) -> threading.RLock: ...
    @property
    def closing(self) -> bool: ...
    @property
    def fault(self) -> str | None: ...
    @property
    def serials(self) -> Iterator[int]: ...
    @property
    def roots(self) -> dict[Cell, None]: ...
    @property
    def running(self) -> dict[Cell, None]: ...
    @property
    def tasks(self) -> set[asyncio.Task[object]]: ...
    @property
    def threads(self) -> dict[ThreadCell, None]: ...
    @property
    def waiting_for_quiet(self) -> set[asyncio.Future[None]]: ...

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
    ) -> ActorRef[A]: ...
    def spawn_own(
        self,
        actor_class: type[Actor],
        args: tuple[object, ...],
        name: str | None,
        parent: Cell | None,
    ) -> LoopCell: ...
    def waiting_for_a_run(self, call: str, instead: str) -> AbstractContextManager[None]: ...
    async def run_named(
        self, function: Callable[[], T], name: str, began: Callable[[], object] | None = None
    ) -> T: ...
    def make_future(self) -> ActorFuture[Any]: ...
    def check(self) -> None: ...
    def look_at_loop(self) -> None: ...
    def look_again(self) -> None: ...
    def leaving(self, cell: Cell, /) -> None: ...
    def ended(self, cell: Cell, /) -> None: ...
    def on_loop(self, function: Callable[..., object], *args: object) -> bool: ...
    def run_task(
        self, coro: Coroutine[Any, None, T], name: str, context: contextvars.Context
    ) -> asyncio.Task[T]: ...
