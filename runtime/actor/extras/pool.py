"""A pool: several actors of one class that share the work, used like one ref.

The members are children of an actor that does nothing else, so they are supervised, stopped and
shown like all actors. A message never goes to a second member, because the first one may have
handled it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from ...errors import ActorDeadError, UsageError
from .. import lifecycle
from ..actor import Actor
from ..ref import ActorRef, cell_of
from ..supervision import Restart

if TYPE_CHECKING:
    from ..cell import Cell
    from ..envelope import MailboxSettings
    from ..future import ActorFuture
    from ..host import Host
    from ..supervision import Supervision

__all__ = ["ActorPool", "Strategy", "spawn_pool"]

A = TypeVar("A", bound=Actor)

Strategy: TypeAlias = Literal["round_robin", "least_busy"]
"""The receiver of the next message: members in turn, or the one with the fewest messages."""


class Pool(Actor):
    """The parent of the members."""

    def on_receive(self, message: Any) -> Any:
        msg = (
            f"{self.actor_ref.path} is the parent of a pool, and handles no messages "
            f"({message!r}). Send to the pool that spawn_pool() returned."
        )
        raise UsageError(msg, actor=self.actor_ref.path, message=message)


class ActorPool(Generic[A]):
    """Several actors of one class, used as one.

    `tell`, `ask`, `send` and `request` pass the message to one of them.
    """

    __slots__ = ("_cells", "_parent", "_strategy", "_turns", "members")

    def __init__(
        self, parent: ActorRef[Pool], members: tuple[ActorRef[A], ...], strategy: Strategy
    ) -> None:
        self._parent = parent
        self._cells: tuple[Cell, ...] = tuple(cell_of(member) for member in members)
        self._strategy = strategy
        self._turns: Iterator[int] = itertools.count()
        self.members = members
        """The refs of all members, in the order of their numbers."""

    def __repr__(self) -> str:
        return (
            f"<ActorPool of {len(self.members)} {self.members[0].actor_class.__name__} "
            f"({self._parent.path})>"
        )

    def __len__(self) -> int:
        return len(self.members)

    @property
    def name(self) -> str:
        """The name from the spawn, or one with a number."""
        return self._parent.name

    @property
    def path(self) -> str:
        """The names from the root to the pool."""
        return self._parent.path

    def is_alive(self) -> bool:
        """Return True if one of the members takes messages."""
        return any(member.is_alive() for member in self.members)

    def next(self) -> ActorRef[A]:
        """Return the member for the next message. Related messages can be sent to the same member.

        Raises `ActorDeadError` if no member is alive.
        """
        count, first = len(self.members), next(self._turns)
        order = [(first + index) % count for index in range(count)]
        alive = [index for index in order if self._cells[index].is_open]
        if not alive:
            msg = f"{self!r}: all its actors have ended. Spawn a new pool."
            raise ActorDeadError(msg, actor=self.path)
        chosen = (
            alive[0]
            if self._strategy == "round_robin"
            else min(alive, key=lambda index: _load(self._cells[index]))
        )
        return self.members[chosen]

    def tell(self, message: object) -> None:
        """Send a message to one member, without waiting for a reply."""
        self.next().tell(message)

    async def send(self, message: object) -> None:
        """Send a message to one member; awaits room if its mailbox is bounded."""
        await self.next().send(message)

    def ask(self, message: object, *, block: bool = True, timeout: float | None = None) -> Any:
        """Send a message to one member, and block until the reply arrives.

        With `block=False`, return a future.
        """
        return self.next().ask(message, block=block, timeout=timeout)

    async def request(self, message: object, *, timeout: float | None = None) -> Any:
        """Send a message to one member, and await the reply."""
        return await self.next().request(message, timeout=timeout)

    def stop(
        self, *, block: bool | None = None, timeout: float | None = None, drain: bool = False
    ) -> Any:
        """Stop all members, as `ActorRef.stop` does.

        With `drain=True`, each member first handles its waiting messages.
        """
        if drain:
            stopping: list[ActorFuture[bool]] = [
                member.stop(block=False, drain=True) for member in self.members
            ]
            del stopping  # their parent waits for them
            parent = cell_of(self._parent)
            if parent.is_open and parent.system.on_loop(lifecycle.stop_when_childless, parent):
                return self._parent.stopped(block=block, timeout=timeout)
        return self._parent.stop(block=block, timeout=timeout)

    async def wait_stopped(self) -> None:
        """Wait until all members have ended."""
        await self._parent.wait_stopped()


def _load(cell: Cell) -> int:
    """Return the number of messages that the actor must handle, including the current one."""
    return cell.queued() + (cell.current is not None)


def spawn_pool(
    system: Host,
    parent: Cell | None,
    actor_class: type[A],
    size: int,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    strategy: Strategy,
    name: str | None,
    supervision: Supervision | None,
    mailbox: MailboxSettings | None,
) -> ActorPool[A]:
    """Spawn a pool under that parent; None is the system itself."""
    if not isinstance(size, int) or size < 1:
        msg = f"spawn_pool: size must be a number of actors, 1 or more, got {size!r}."
        raise UsageError(msg)
    if strategy not in get_args(Strategy):
        msg = f"spawn_pool: strategy must be 'round_robin' or 'least_busy', got {strategy!r}."
        raise UsageError(msg)
    pool = system.spawn_under(parent, Pool, (), {}, name=name, supervision=None, mailbox=None)
    rule = Restart() if supervision is None else supervision
    members: list[ActorRef[A]] = []
    try:
        for number in range(1, size + 1):
            member = system.spawn_under(
                cell_of(pool),
                actor_class,
                args,
                kwargs,
                name=str(number),
                supervision=rule,
                mailbox=mailbox,
            )
            members.append(member)
    except BaseException:
        pool.stop(block=False)
        raise
    return ActorPool(pool, tuple(members), strategy)
