"""The system in which an actor lives, as its actors see it.

Owns: the protocol `Host`, whose first half is for users' actors (`self.actor_system`) and whose second half is for this room. `ActorSystem`, in the room
above, implements it. It must never contain more than an actor needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

if TYPE_CHECKING:
    import asyncio
    import contextvars
    import threading
    from collections.abc import Callable, Coroutine, Iterator

    from ..clock import Clock
    from .actor import Actor
    from .cell import Cell
    from .envelope import MailboxSettings
    from .future import ActorFuture
    from .ref import ActorRef
    from .report import ActorNode, DeadLetter, DrainReport, SystemStats
    from .supervision import Supervision
    from .thread_cell import ThreadCell

__all__ = ["Counters", "Host", "Scheduler"]

A = TypeVar("A", bound="Actor")
P = ParamSpec("P")
T = TypeVar("T")


class Scheduler(Protocol):
    """Decides which actor handles its messages next, on the loop's thread."""

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

    def took(self, actor: str, handler: str, seconds: float, /) -> None: ...
    def blocked_for(self, actor: str, actor_class: type, handler: str, seconds: float, /) -> None: ...
    def count_handled(self) -> None: ...
    def is_watched(self) -> bool: ...
    def count_dead_letters(self, count: int, /) -> None: ...
    def dead_letter(self, message: Any, ref: ActorRef[Any], reason: str, /) -> None: ...


class Host(Protocol):
    """The system in which an actor lives."""

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
    def spawn(self, actor_class: Callable[P, A], *args: P.args, **kwargs: P.kwargs) -> ActorRef[A]: ...
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
    async def run_blocking(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...
    def stats(self) -> SystemStats: ...
    def tree(self) -> ActorNode: ...
    def subscribe_dead_letters(self, callback: Callable[[DeadLetter], object]) -> Callable[[], None]: ...
    async def drain(self, timeout: float) -> DrainReport: ...
    async def stop(self) -> None: ...

    # --- for this room ---

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
    def threads(self) -> dict[ThreadCell, None]: ...
    @property
    def waiting_for_quiet(self) -> set[asyncio.Future[None]]: ...

    def spawn_under(
        self,
        parent: Cell | None,
        actor_class: type[A],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        name: str | None,
        supervision: Supervision | None,
        mailbox: MailboxSettings | None,
    ) -> ActorRef[A]: ...
    def spawn_own(self, actor_class: type[A], args: tuple[Any, ...], name: str | None, parent: Cell | None) -> ActorRef[A]: ...
    async def run_named(self, function: Callable[[], T], name: str, began: Callable[[], object] | None = None) -> T: ...
    def make_future(self) -> ActorFuture[Any]: ...
    def check(self) -> None: ...
    def look_at_loop(self) -> None: ...
    def look_again(self) -> None: ...
    def leaving(self, cell: Cell, /) -> None: ...
    def ended(self, cell: Cell, /) -> None: ...
    def on_loop(self, function: Callable[..., object], *args: Any) -> bool: ...
    def run_task(self, coro: Coroutine[Any, Any, Any], name: str, context: contextvars.Context) -> None: ...
